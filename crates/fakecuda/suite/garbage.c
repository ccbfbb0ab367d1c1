/* Handles of things that are no more, of another kind, or of nothing. A board's driver may crash on them; the
 * double answers each with an error, so that a test finds the mistake. */
#include "suite.h"

/* What is passed in a handle's place. */
enum { NOTHING, ANYTHING, ANOTHER_KIND, DESTROYED, KINDS };

/* A call is refused: with the codes of handles, and nothing is written but what may be. */
#define MUST_REFUSE(call)                                                                          \
  do {                                                                                             \
    CUresult code_ = (call);                                                                       \
    if (code_ != CUDA_ERROR_INVALID_HANDLE && code_ != CUDA_ERROR_INVALID_VALUE &&                 \
        code_ != CUDA_ERROR_INVALID_CONTEXT && code_ != CUDA_ERROR_CONTEXT_IS_DESTROYED &&         \
        code_ != CUDA_ERROR_NOT_FOUND)                                                             \
      suite_fail(__FILE__, __LINE__, "%s of kind %d gives %s", #call, kind, suite_code(code_));    \
  } while (0)

static void *handle_of_kind(int kind, void *another, void *destroyed) {
  return kind == NOTHING ? NULL : kind == ANYTHING ? (void *)0x1230 : kind == DESTROYED ? destroyed : another;
}

RULE(streams) {
  ONLY_ON_THE_DOUBLE();
  need_pools();
  CUstream dead = must_stream(0);
  CUevent event = must_event(0);
  OK(cu.StreamDestroy(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUstream stream = handle_of_kind(kind, event, dead);
    /* NULL is the default stream, which is there but cannot be destroyed. */
    MUST_REFUSE(cu.StreamDestroy(stream));
    if (kind == NOTHING) continue;
    unsigned int flags = 0;
    int priority = 0;
    unsigned long long id = 0;
    CUcontext context = NULL;
    CUstreamCaptureStatus status;
    CUdeviceptr block = 0;
    CUgraph graph = NULL;
    MUST_REFUSE(cu.StreamSynchronize(stream));
    MUST_REFUSE(cu.StreamQuery(stream));
    MUST_REFUSE(cu.StreamGetFlags(stream, &flags));
    MUST_REFUSE(cu.StreamGetPriority(stream, &priority));
    MUST_REFUSE(cu.StreamGetId(stream, &id));
    MUST_REFUSE(cu.StreamGetCtx(stream, &context));
    MUST_REFUSE(cu.StreamIsCapturing(stream, &status));
    MUST_REFUSE(cu.StreamWaitEvent(stream, event, 0));
    MUST_REFUSE(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST_REFUSE(cu.StreamEndCapture(stream, &graph));
    MUST_REFUSE(cu.EventRecord(event, stream));
    MUST_REFUSE(cu.MemAllocAsync(&block, 4096, stream));
    CUdeviceptr live = must_alloc(4096);
    char host[16];
    MUST_REFUSE(cu.MemsetD8Async(live, 0, 16, stream));
    MUST_REFUSE(cu.MemcpyDtoHAsync(host, live, 16, stream));
    MUST_REFUSE(cu.MemcpyHtoDAsync(live, host, 16, stream));
    OK(cu.MemFree(live));
  }
  OK(cu.EventDestroy(event));
}

RULE(events) {
  ONLY_ON_THE_DOUBLE();
  CUevent dead = must_event(0), live = must_event(0);
  CUstream stream = must_stream(0);
  OK(cu.EventDestroy(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUevent event = handle_of_kind(kind, stream, dead);
    float time = 0;
    CUipcEventHandle handle;
    MUST_REFUSE(cu.EventQuery(event));
    MUST_REFUSE(cu.EventSynchronize(event));
    MUST_REFUSE(cu.EventRecord(event, stream));
    MUST_REFUSE(cu.EventElapsedTime(&time, event, live));
    MUST_REFUSE(cu.EventElapsedTime(&time, live, event));
    MUST_REFUSE(cu.StreamWaitEvent(stream, event, 0));
    MUST_REFUSE(cu.IpcGetEventHandle(&handle, event));
    MUST_REFUSE(cu.EventDestroy(event));
  }
  OK(cu.EventDestroy(live));
  OK(cu.StreamDestroy(stream));
}

RULE(contexts) {
  ONLY_ON_THE_DOUBLE();
  CUcontext dead = NULL;
  CUevent event = must_event(0);
  OK(cu.CtxCreate(&dead, NULL, 0, 0));
  OK(cu.CtxDestroy(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUcontext context = handle_of_kind(kind, event, dead);
    unsigned long long id = 0;
    unsigned int version = 0;
    MUST_REFUSE(cu.CtxDestroy(context));
    MUST_REFUSE(cu.CtxPushCurrent(context));
    MUST_REFUSE(cu.CtxEnablePeerAccess(context, 0));
    if (kind == NOTHING) continue;
    MUST_REFUSE(cu.CtxSetCurrent(context));
    MUST_REFUSE(cu.CtxGetId(context, &id));
    MUST_REFUSE(cu.CtxGetApiVersion(context, &version));
    CUdeviceptr block = must_alloc(64);
    MUST_REFUSE(cu.MemcpyPeer(block, context, block, context, 8));
    OK(cu.MemFree(block));
  }
  OK(cu.EventDestroy(event));
}

RULE(modules) {
  ONLY_ON_THE_DOUBLE();
  static const char image[] =
      ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
  CUmodule dead = NULL;
  CUfunction dead_function = NULL;
  CUstream stream = must_stream(0);
  OK(cu.ModuleLoadData(&dead, image));
  OK(cu.ModuleGetFunction(&dead_function, dead, "nothing"));
  OK(cu.ModuleUnload(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUmodule module = handle_of_kind(kind, stream, dead);
    CUfunction function = handle_of_kind(kind, stream, dead_function), found = NULL;
    CUdeviceptr at = 0;
    size_t bytes = 0;
    int value = 0;
    MUST_REFUSE(cu.ModuleUnload(module));
    MUST_REFUSE(cu.ModuleGetFunction(&found, module, "nothing"));
    MUST_REFUSE(cu.ModuleGetGlobal(&at, &bytes, module, "nothing"));
    MUST_REFUSE(cu.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    MUST_REFUSE(cu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    MUST_REFUSE(cu.LibraryUnload((CUlibrary)module));
  }
  OK(cu.StreamDestroy(stream));
}

RULE(graphs) {
  ONLY_ON_THE_DOUBLE();
  CUgraph dead = NULL, live = NULL, found = NULL;
  CUgraphNode dead_node = NULL, node = NULL;
  CUgraphExec dead_exec = NULL, exec_found = NULL;
  CUstream stream = must_stream(0);
  /* First, since handles come back. */
  OK(cu.GraphCreate(&live, 0));
  OK(cu.GraphCreate(&dead, 0));
  OK(cu.GraphAddEmptyNode(&dead_node, dead, NULL, 0));
  OK(cu.GraphInstantiateWithFlags(&dead_exec, dead, 0));
  OK(cu.GraphExecDestroy(dead_exec));
  OK(cu.GraphDestroy(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUgraph graph = handle_of_kind(kind, stream, dead);
    CUgraphExec exec = handle_of_kind(kind, stream, dead_exec);
    CUgraphNode unknown = handle_of_kind(kind, stream, dead_node);
    CUgraphNodeType type;
    size_t count = 0;
    MUST_REFUSE(cu.GraphDestroy(graph));
    MUST_REFUSE(cu.GraphGetNodes(graph, NULL, &count));
    MUST_REFUSE(cu.GraphGetEdges(graph, NULL, NULL, NULL, &count));
    MUST_REFUSE(cu.GraphClone(&found, graph));
    MUST_REFUSE(cu.GraphInstantiateWithFlags(&exec_found, graph, 0));
    MUST_REFUSE(cu.GraphAddEmptyNode(&node, graph, NULL, 0));
    MUST_REFUSE(cu.GraphAddChildGraphNode(&node, live, NULL, 0, graph));
    MUST_REFUSE(cu.GraphLaunch(exec, stream));
    MUST_REFUSE(cu.GraphExecDestroy(exec));
    MUST_REFUSE(cu.GraphNodeGetType(unknown, &type));
    MUST_REFUSE(cu.GraphDestroyNode(unknown));
    MUST_REFUSE(cu.GraphAddEmptyNode(&node, live, &unknown, 1));
    MUST_REFUSE(cu.UserObjectRelease((CUuserObject)graph, 1));
    MUST_REFUSE(cu.GraphRetainUserObject(live, (CUuserObject)graph, 1, 0));
  }
  OK(cu.GraphDestroy(live));
  OK(cu.StreamDestroy(stream));
}

RULE(pools) {
  ONLY_ON_THE_DOUBLE();
  need_pools();
  CUmemPoolProps props;
  CUmemoryPool dead = NULL;
  CUstream stream = must_stream(0);
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemPoolCreate(&dead, &props));
  OK(cu.MemPoolDestroy(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUmemoryPool pool = handle_of_kind(kind, stream, dead);
    CUdeviceptr block = 0;
    cuuint64_t value = 0;
    MUST_REFUSE(cu.MemPoolDestroy(pool));
    MUST_REFUSE(cu.MemPoolTrimTo(pool, 0));
    MUST_REFUSE(cu.MemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    MUST_REFUSE(cu.MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    MUST_REFUSE(cu.MemAllocFromPoolAsync(&block, 4096, pool, stream));
    MUST_REFUSE(cu.DeviceSetMemPool(0, pool));
  }
  OK(cu.StreamDestroy(stream));
}

RULE(memory_handles) {
  ONLY_ON_THE_DOUBLE();
  need_virtual_memory();
  CUmemAllocationProp prop;
  CUmemGenericAllocationHandle dead = 0, found = 0;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  CUstream stream = must_stream(0);
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  OK(cu.MemAddressReserve(&at, bytes, 0, 0, 0));
  OK(cu.MemCreate(&dead, bytes, &prop, 0));
  OK(cu.MemRelease(dead));
  for (int kind = 0; kind < KINDS; kind++) {
    CUmemGenericAllocationHandle handle =
        (CUmemGenericAllocationHandle)(uintptr_t)handle_of_kind(kind, stream, (void *)(uintptr_t)dead);
    int file = -1;
    MUST_REFUSE(cu.MemRelease(handle));
    MUST_REFUSE(cu.MemMap(at, bytes, 0, handle, 0));
    MUST_REFUSE(cu.MemGetAllocationPropertiesFromHandle(&prop, handle));
    MUST_REFUSE(cu.MemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    MUST_REFUSE(cu.MemImportFromShareableHandle(&found, (void *)(intptr_t)-1,
                                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  }
  OK(cu.MemAddressFree(at, bytes));
  OK(cu.StreamDestroy(stream));
}

/* Handles of other processes that are not such, and addresses that wrap. */
RULE(bytes_from_elsewhere) {
  ONLY_ON_THE_DOUBLE();
  need_virtual_memory();
  const int kind = ANYTHING;
  CUipcMemHandle memory;
  CUipcEventHandle event;
  CUevent opened = NULL;
  CUdeviceptr at = 0, block = must_alloc(4096);
  char host[64];
  memset(&memory, 0x5a, sizeof memory);
  memset(&event, 0x5a, sizeof event);
  MUST_REFUSE(cu.IpcOpenMemHandle(&at, memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  MUST_REFUSE(cu.IpcOpenEventHandle(&opened, event));
  MUST_REFUSE(cu.MemcpyDtoH(host, block, SIZE_MAX));
  MUST_REFUSE(cu.MemcpyDtoH(host, UINT64_MAX - 3, 64));
  MUST_REFUSE(cu.MemsetD8(block, 0, SIZE_MAX));
  MUST_REFUSE(cu.MemsetD32(block, 0, SIZE_MAX / 2));
  MUST_REFUSE(cu.MemsetD2D8(block, SIZE_MAX / 2, 0, 16, 4));
  GIVES_EITHER(cu.MemAddressReserve(&at, SIZE_MAX & ~(size_t)4095, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY,
               CUDA_ERROR_INVALID_VALUE);
  MUST_REFUSE(cu.MemUnmap(block, SIZE_MAX & ~(size_t)4095));
  CUDA_MEMCPY2D copy;
  memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = block;
  copy.srcPitch = SIZE_MAX / 2;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = 16;
  copy.WidthInBytes = 16;
  copy.Height = 4;
  MUST_REFUSE(cu.Memcpy2D(&copy));
  copy.srcMemoryType = (CUmemorytype)77;
  MUST_REFUSE(cu.Memcpy2D(&copy));
  OK(cu.MemFree(block));
}
