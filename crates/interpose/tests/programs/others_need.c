/* Memory that the program has freed is there for all functions of the driver that take device memory, not for
 * cuMemAlloc alone. */
#include "program.h"

static CUstream stream;
static size_t most;

/* Nearly all memory, freed again: in one block and in many, by both functions. */
static void use_and_free(int round) {
  CUdeviceptr blocks[40];
  size_t count = round % 2 == 0 ? 1 : COUNT_OF(blocks), bytes = most / count;
  for (size_t at = 0; at < count; at++) {
    blocks[at] = round % 3 == 0 ? must_alloc(bytes) : must_alloc_async(bytes, stream);
    OK(cuMemsetD8Async(blocks[at], 1, 4096, stream));
  }
  delay(stream, 1);
  for (size_t at = 0; at < count; at++)
    OK(round % 3 == 0 ? cuMemFree(blocks[at]) : cuMemFreeAsync(blocks[at], stream));
  /* cuMemFree needs no wait: it waits itself. */
  if (round % 3 != 0) OK(cuStreamSynchronize(stream));
}

static void by_create(void) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemCreate(&handle, most / (2 * MIB) * (2 * MIB), &props, 0));
  OK(cuMemRelease(handle));
}

static void by_own_pool(void) {
  CUmemoryPool pool = NULL;
  CUdeviceptr block = 0;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemPoolCreate(&pool, &props));
  OK(cuMemAllocFromPoolAsync(&block, most, pool, stream));
  OK(cuMemFreeAsync(block, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuMemPoolDestroy(pool));
}

/* A pool that the program made the device's. */
static void by_current_pool(void) {
  CUmemoryPool pool = NULL, before = NULL;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemPoolCreate(&pool, &props));
  OK(cuDeviceGetMemPool(&before, 0));
  OK(cuDeviceSetMemPool(0, pool));
  OK(cuMemFreeAsync(must_alloc_async(most, stream), stream));
  OK(cuStreamSynchronize(stream));
  OK(cuDeviceSetMemPool(0, before));
  OK(cuMemPoolDestroy(pool));
}

static void by_array(void) {
  CUarray array = NULL;
  CUDA_ARRAY_DESCRIPTOR descriptor = {.Width = 1024, .Height = most / 4096, .Format = CU_AD_FORMAT_FLOAT,
                                      .NumChannels = 1};
  OK(cuArrayCreate(&array, &descriptor));
  OK(cuArrayDestroy(array));
}

static void by_array_3d(void) {
  CUarray array = NULL;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = 1024, .Height = most / 4096 / 8, .Depth = 8,
                                        .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  OK(cuArray3DCreate(&array, &descriptor));
  OK(cuArrayDestroy(array));
}

static void by_mipmapped_array(void) {
  CUmipmappedArray array = NULL;
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = 1024, .Height = most / 4096, .Format = CU_AD_FORMAT_FLOAT,
                                        .NumChannels = 1};
  OK(cuMipmappedArrayCreate(&array, &descriptor, 1));
  OK(cuMipmappedArrayDestroy(array));
}

static void by_managed(void) {
  CUdeviceptr block = 0;
  OK(cuMemAllocManaged(&block, most, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemFree(block));
}

static void by_graph(void) {
  CUgraph graph = NULL;
  CUgraphNode allocation = NULL, set = NULL, end = NULL;
  CUgraphExec exec = NULL;
  CUcontext context = NULL;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = most};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cuCtxGetCurrent(&context));
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&allocation, graph, NULL, 0, &params));
  CUDA_MEMSET_NODE_PARAMS fill = {.dst = params.dptr, .value = 1, .elementSize = 1, .width = 4096, .height = 1};
  OK(cuGraphAddMemsetNode(&set, graph, &allocation, 1, &fill, context));
  OK(cuGraphAddMemFreeNode(&end, graph, &set, 1, params.dptr));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphUpload(exec, stream));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuDeviceGraphMemTrim(0));
}

static void by_module(void) {
  char image[512];
  CUmodule module = NULL;
  CUdeviceptr block = 0;
  size_t bytes = 0;
  snprintf(image, sizeof image,
           ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 large[%zu];\n", most);
  OK(cuModuleLoadData(&module, image));
  OK(cuModuleGetGlobal(&block, &bytes, module, "large"));
  SAME(bytes, most);
  OK(cuModuleUnload(module));
}

static void by_library(void) {
  char image[512];
  CUlibrary library = NULL;
  CUdeviceptr block = 0;
  snprintf(image, sizeof image,
           ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 4 .b8 large[%zu];\n", most);
  OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  OK(cuLibraryGetGlobal(&block, NULL, library, "large"));
  OK(cuLibraryUnload(library));
}

static void by_pitch(void) {
  CUdeviceptr block = 0;
  size_t pitch = 0;
  OK(cuMemAllocPitch(&block, &pitch, 4096, most / 4096, 16));
  OK(cuMemFree(block));
}

/* Another context of the device. */
static void by_context(void) {
  CUcontext context = NULL;
  OK(cuCtxCreate(&context, NULL, 0, 0));
  OK(cuMemFree(must_alloc(most)));
  OK(cuCtxDestroy(context));
}

int main(void) {
  static const struct {
    const char *name;
    void (*take)(void);
  } ways[] = {{"cuMemCreate", by_create},
              {"a pool", by_own_pool},
              {"the device's pool", by_current_pool},
              {"cuArrayCreate", by_array},
              {"cuArray3DCreate", by_array_3d},
              {"cuMipmappedArrayCreate", by_mipmapped_array},
              {"cuMemAllocManaged", by_managed},
              {"cuGraphLaunch", by_graph},
              {"cuModuleLoadData", by_module},
              {"cuLibraryLoadData", by_library},
              {"cuMemAllocPitch", by_pitch},
              {"another context", by_context}};
  int bad = 0;
  /* Each in a process of its own, so that all are tried. */
  for (size_t at = 0; at < COUNT_OF(ways); at++) {
    pid_t child = fork();
    if (child == 0) {
      size_t free_bytes = 0, total = 0;
      start();
      stream = must_stream(CU_STREAM_NON_BLOCKING);
      OK(cuMemGetInfo(&free_bytes, &total));
      most = free_bytes / 10 * 7;
      for (int round = 0; round < 6; round++) {
        use_and_free(round);
        ways[at].take();
      }
      OK(cuStreamDestroy(stream));
      _exit(0);
    }
    int status = ended(child);
    if (status != 0) fprintf(stderr, "%s: status %d\n", ways[at].name, status);
    bad += status != 0;
  }
  SAME(bad, 0);
  return 0;
}
