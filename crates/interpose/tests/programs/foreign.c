/* Memory that was not made by the allocation functions of a hook in front of the driver is freed as ever. */
#include "past.h"

static CUdeviceptr made_past_the_hook(void) {
  CUresult (*alloc)(CUdeviceptr *, size_t);
  CUdeviceptr block = 0;
  *(void **)&alloc = past("cuMemAlloc_v2");
  OK(alloc(&block, MIB));
  return block;
}

static CUdeviceptr made_by_a_graph(CUstream stream) {
  CUgraph graph = NULL;
  CUgraphNode node = NULL;
  CUgraphExec exec = NULL;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = MIB};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  OK(cuGraphCreate(&graph, 0));
  OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  return params.dptr;
}

static CUdeviceptr made_by_a_pool(CUmemoryPool pool, CUstream stream) {
  CUdeviceptr block = 0;
  OK(cuMemAllocFromPoolAsync(&block, MIB, pool, stream));
  OK(cuStreamSynchronize(stream));
  return block;
}

static CUmemoryPool new_pool(void) {
  CUmemoryPool pool = NULL;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  OK(cuMemPoolCreate(&pool, &props));
  return pool;
}

/* Usable, freed once, and then unknown. */
static void ends_well(CUdeviceptr block) {
  CHECK(block != 0);
  fill_now(block, 7, MIB);
  HOLDS(block, 7, MIB);
  GIVES(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFree(block));
  GIVES(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
  CUdeviceptr block = 0;
  void *pinned = NULL;
  char on_stack = 0;
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUmemoryPool pool = new_pool();
  for (int round = 0; round < 3; round++) {
    CUdeviceptr own = must_alloc(MIB);
    ends_well(made_past_the_hook());
    ends_well(made_by_a_graph(stream));
    ends_well(made_by_a_pool(pool, stream));
    OK(cuMemAllocManaged(&block, MIB, CU_MEM_ATTACH_GLOBAL));
    ends_well(block);
    /* Freed past the hook, too. */
    CUresult (*free_past)(CUdeviceptr);
    *(void **)&free_past = past("cuMemFree_v2");
    OK(free_past(made_past_the_hook()));
    OK(cuMemFree(own));
  }
  /* What is no device allocation is refused. */
  OK(cuMemHostAlloc(&pinned, MIB, 0));
  GIVES(cuMemFree((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemFreeHost(pinned));
  GIVES(cuMemFree((CUdeviceptr)(uintptr_t)&on_stack), CUDA_ERROR_INVALID_VALUE);
  GIVES(cuMemFree((CUdeviceptr)1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cuMemFree(~(CUdeviceptr)0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemPoolDestroy(pool));
  OK(cuStreamDestroy(stream));
  return 0;
}
