/* Memory and events shared by two processes. Neither has called the driver when they part. */
#include "suite.h"

enum { BYTES = 1 << 20, HERE = 1, THERE = 2 };

static size_t granularity(CUmemAllocationProp *prop) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
    suite_skip("memory is not shared by file descriptor");
  memset(prop, 0, sizeof *prop);
  prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  size_t bytes = 0;
  OK(cu.MemGetAllocationGranularity(&bytes, prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, size_t bytes) {
  CUdeviceptr at = 0;
  CUmemAccessDesc desc;
  memset(&desc, 0, sizeof desc);
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  OK(cu.MemAddressReserve(&at, bytes, 0, 0, 0));
  OK(cu.MemMap(at, bytes, 0, handle, 0));
  OK(cu.MemSetAccess(at, bytes, &desc, 1));
  return at;
}

static void unmap(CUdeviceptr at, size_t bytes) {
  OK(cu.MemUnmap(at, bytes));
  OK(cu.MemAddressFree(at, bytes));
}

/* ---- Virtual memory, by file descriptor ------------------------------------------------------------------ */

/* Within one process the imported handle is the same memory, whichever value it has. */
RULE(memory_is_imported_where_it_was_exported) {
  CUmemAllocationProp prop;
  size_t bytes = granularity(&prop);
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  int file = -1;
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  CUdeviceptr one = map(handle, bytes);
  OK(cu.MemsetD8(one, HERE, bytes));
  OK(cu.CtxSynchronize());
  OK(cu.MemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CHECK(file >= 0);
  OK(cu.MemImportFromShareableHandle(&imported, (void *)(intptr_t)file,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  CHECK(close(file) == 0);
  CUdeviceptr two = map(imported, bytes);
  must_hold(two, HERE, bytes);
  OK(cu.MemRelease(handle));
  unmap(one, bytes);
  /* "The memory allocation will be freed when all outstanding mappings are unmapped and all outstanding
   * references to the handle (including its shareable counterparts) are also released." */
  must_hold(two, HERE, bytes);
  OK(cu.MemRelease(imported));
  unmap(two, bytes);
}

/* Memory that was not created for it is not exported; "flags: Reserved, must be zero". */
RULE(exports_are_checked) {
  CUmemAllocationProp prop;
  size_t bytes = granularity(&prop);
  CUmemGenericAllocationHandle handle = 0;
  int file = -1;
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  GIVES(cu.MemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
        CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemRelease(handle));
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  GIVES(cu.MemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemRelease(handle));
}

static void exports_memory(int socket) {
  suite_begin();
  CUmemAllocationProp prop;
  size_t bytes = granularity(&prop);
  CUmemGenericAllocationHandle handle = 0;
  int file = -1;
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  CUdeviceptr at = map(handle, bytes);
  OK(cu.MemsetD8(at, HERE, bytes));
  OK(cu.CtxSynchronize());
  OK(cu.MemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  send_bytes(socket, &bytes, sizeof bytes);
  send_file(socket, file);
  close(file);
  meet(socket);
  /* What the other process wrote. */
  must_hold(at, THERE, bytes / 2);
  must_hold(at + bytes / 2, HERE, bytes / 2);
  OK(cu.MemRelease(handle));
  unmap(at, bytes);
  meet(socket);
  meet(socket);
}

static void imports_memory(int socket) {
  suite_begin();
  size_t bytes = 0;
  receive_bytes(socket, &bytes, sizeof bytes);
  int file = receive_file(socket);
  CUmemGenericAllocationHandle handle = 0;
  OK(cu.MemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  CUdeviceptr at = map(handle, bytes);
  must_hold(at, HERE, bytes);
  OK(cu.MemsetD8(at, THERE, bytes / 2));
  OK(cu.CtxSynchronize());
  meet(socket);
  meet(socket);
  /* The exporting process has given it up; it is still here. */
  must_hold(at, THERE, bytes / 2);
  OK(cu.MemRelease(handle));
  unmap(at, bytes);
  meet(socket);
}

FRESH_RULE(memory_is_shared_by_file) { with_another_process(exports_memory, imports_memory); }

/* ---- Blocks, by IPC handle -------------------------------------------------------------------------------- */

static void exports_a_block(int socket) {
  suite_begin();
  CUdeviceptr block = must_alloc(2 * BYTES);
  CUipcMemHandle handle, inside;
  OK(cu.MemsetD8(block, HERE, 2 * BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.IpcGetMemHandle(&handle, block));
  /* "May be called multiple times on an allocation without adverse effects." */
  OK(cu.IpcGetMemHandle(&inside, block));
  send_bytes(socket, &handle, sizeof handle);
  meet(socket);
  must_hold(block, THERE, BYTES);
  must_hold(block + BYTES, HERE, BYTES);
  OK(cu.MemFree(block));
}

static void opens_a_block(int socket) {
  suite_begin();
  CUipcMemHandle handle;
  CUdeviceptr block = 0, again = 0, base = 0;
  size_t bytes = 0;
  receive_bytes(socket, &handle, sizeof handle);
  OK(cu.IpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  must_hold(block, HERE, 2 * BYTES);
  OK(cu.MemsetD8(block, THERE, BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.MemGetAddressRange(&base, &bytes, block + 5));
  SAME(base, block);
  SAME(bytes, 2 * BYTES);
  /* "If the memory handle has already been opened by the current context, the reference count on the
   * handle is incremented by 1 and the existing device pointer is returned." */
  OK(cu.IpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  SAME(again, block);
  OK(cu.IpcCloseMemHandle(block));
  must_hold(block, THERE, BYTES);
  OK(cu.IpcCloseMemHandle(block));
  /* "When the reference count reaches 0, this API unmaps the memory." */
  REFUSED(cu.IpcCloseMemHandle(block));
  meet(socket);
}

FRESH_RULE(blocks_are_shared_by_handle) { with_another_process(exports_a_block, opens_a_block); }

static void exports_an_inner_pointer(int socket) {
  suite_begin();
  CUdeviceptr block = must_alloc(2 * BYTES);
  CUipcMemHandle handle;
  OK(cu.MemsetD8(block, HERE, BYTES));
  OK(cu.MemsetD8(block + BYTES, THERE, BYTES));
  OK(cu.CtxSynchronize());
  CUresult code = cu.IpcGetMemHandle(&handle, block + BYTES);
  send_bytes(socket, &code, sizeof code);
  if (code == CUDA_SUCCESS) {
    send_bytes(socket, &handle, sizeof handle);
    meet(socket);
  }
  OK(cu.MemFree(block));
}

static void opens_an_inner_pointer(int socket) {
  suite_begin();
  CUresult code = CUDA_SUCCESS;
  CUipcMemHandle handle;
  CUdeviceptr block = 0;
  receive_bytes(socket, &code, sizeof code);
  /* "Takes a pointer to the base of an existing device memory allocation": another may be refused. */
  if (code != CUDA_SUCCESS) return;
  receive_bytes(socket, &handle, sizeof handle);
  OK(cu.IpcOpenMemHandle(&block, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  /* The handle names the whole block: what is opened is its base, not the inner pointer. */
  must_hold(block, HERE, BYTES);
  must_hold(block + BYTES, THERE, BYTES);
  OK(cu.IpcCloseMemHandle(block));
  meet(socket);
}

FRESH_RULE(handles_name_whole_blocks) {
  with_another_process(exports_an_inner_pointer, opens_an_inner_pointer);
}

/* "If a region of memory is freed with cuMemFree and a subsequent call to cuMemAlloc returns memory with
 * the same device address, cuIpcGetMemHandle will return a unique handle for the new memory." */
RULE(handles_are_never_used_again) {
  CUipcMemHandle first, second;
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.IpcGetMemHandle(&first, block));
  OK(cu.MemFree(block));
  block = must_alloc(BYTES);
  OK(cu.IpcGetMemHandle(&second, block));
  CHECK(memcmp(&first, &second, sizeof first) != 0);
  OK(cu.MemFree(block));
}

/* Only device memory is shared; "Flags must be specified as CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS". */
RULE(what_is_no_block_is_not_shared) {
  CUipcMemHandle handle;
  CUdeviceptr opened = 0;
  int on_stack = 0;
  GIVES(cu.IpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)&on_stack), CUDA_ERROR_INVALID_VALUE);
  REFUSED(cu.IpcCloseMemHandle((CUdeviceptr)(uintptr_t)&on_stack));
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.IpcGetMemHandle(&handle, block));
  GIVES(cu.IpcOpenMemHandle(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
  /* "Exported from another process": not the own. */
  REFUSED(cu.IpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  OK(cu.MemFree(block));
}

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static void exports_an_event(int socket) {
  suite_begin();
  CUevent event = must_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  CUevent plain = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUipcEventHandle handle;
  gate_t gate;
  REFUSED(cu.IpcGetEventHandle(&handle, plain));
  OK(cu.IpcGetEventHandle(&handle, event));
  gate_close(&gate, stream);
  OK(cu.EventRecord(event, stream));
  send_bytes(socket, &handle, sizeof handle);
  meet(socket);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  meet(socket);
  meet(socket);
  OK(cu.EventDestroy(event));
  OK(cu.EventDestroy(plain));
  OK(cu.StreamDestroy(stream));
}

static void opens_an_event(int socket) {
  suite_begin();
  CUipcEventHandle handle;
  CUevent event = NULL;
  receive_bytes(socket, &handle, sizeof handle);
  OK(cu.IpcOpenEventHandle(&event, handle));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  meet(socket);
  meet(socket);
  OK(cu.EventSynchronize(event));
  OK(cu.EventQuery(event));
  OK(cu.EventDestroy(event));
  meet(socket);
}

/* "[cuIpcOpenEventHandle] allow[s] efficient hardware synchronization between GPU work in different
 * processes": cuEventQuery and cuEventSynchronize see the other process's record. */
FRESH_RULE(events_are_shared_by_handle) { with_another_process(exports_an_event, opens_an_event); }

/* ---- Pools ------------------------------------------------------------------------------------------------------- */

static void exports_a_pool(int socket) {
  suite_begin();
  need_pools();
  if (!(attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES) &
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
    suite_skip("pools are not shared by file descriptor");
  CUmemPoolProps props;
  CUmemoryPool pool = NULL;
  CUdeviceptr block = 0;
  CUmemPoolPtrExportData data;
  int file = -1;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cu.MemPoolCreate(&pool, &props));
  OK(cu.MemAllocFromPoolAsync(&block, BYTES, pool, NULL));
  OK(cu.MemsetD8Async(block, HERE, BYTES, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.MemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  OK(cu.MemPoolExportPointer(&data, block));
  send_file(socket, file);
  close(file);
  send_bytes(socket, &data, sizeof data);
  meet(socket);
  must_hold(block, THERE, BYTES);
  OK(cu.MemFreeAsync(block, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.MemPoolDestroy(pool));
}

static void imports_a_pool(int socket) {
  suite_begin();
  CUmemoryPool pool = NULL;
  CUdeviceptr block = 0, other = 0;
  CUmemPoolPtrExportData data;
  int file = receive_file(socket);
  OK(cu.MemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)file,
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  close(file);
  receive_bytes(socket, &data, sizeof data);
  OK(cu.MemPoolImportPointer(&block, pool, &data));
  must_hold(block, HERE, BYTES);
  /* "Imported memory pools do not support creating new allocations." */
  REFUSED(cu.MemAllocFromPoolAsync(&other, BYTES, pool, NULL));
  OK(cu.MemsetD8(block, THERE, BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.MemFree(block));
  meet(socket);
  OK(cu.MemPoolDestroy(pool));
}

FRESH_RULE(pools_are_shared_by_file) { with_another_process(exports_a_pool, imports_a_pool); }
