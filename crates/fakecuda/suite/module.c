/* Modules, functions and launches. The kernel is real: on a board it runs, on the double the function that
 * is registered for its name stands in. */
#include "suite.h"

enum { BYTES = 5000, THREADS = 128, BLOCKS = (BYTES + THREADS - 1) / THREADS };

/* fill(bytes, count, value): sets `count` bytes. */
static const char IMAGE[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .global .align 4 .b8 table[64];\n"
    ".visible .entry fill(.param .u64 fill_param_0, .param .u32 fill_param_1, .param .u32 fill_param_2)\n"
    "{\n"
    "  .reg .pred %p<2>;\n"
    "  .reg .b32 %r<8>;\n"
    "  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [fill_param_0];\n"
    "  ld.param.u32 %r1, [fill_param_1];\n"
    "  ld.param.u32 %r2, [fill_param_2];\n"
    "  mov.u32 %r3, %ctaid.x;\n"
    "  mov.u32 %r4, %ntid.x;\n"
    "  mov.u32 %r5, %tid.x;\n"
    "  mad.lo.s32 %r6, %r3, %r4, %r5;\n"
    "  setp.ge.u32 %p1, %r6, %r1;\n"
    "  @%p1 bra DONE;\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  cvt.u64.u32 %rd3, %r6;\n"
    "  add.s64 %rd4, %rd2, %rd3;\n"
    "  st.global.u8 [%rd4], %r2;\n"
    "DONE:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry _Z7nothingv()\n"
    "{\n"
    "  ret;\n"
    "}\n";

static void fills(const fakecuda_launch_t *launch, void *user) {
  CUdeviceptr at;
  unsigned int count, value;
  (void)user;
  memcpy(&at, launch->params[0], sizeof at);
  memcpy(&count, launch->params[1], sizeof count);
  memcpy(&value, launch->params[2], sizeof value);
  size_t threads = (size_t)launch->grid[0] * launch->block[0];
  memset(fakecuda_host_pointer(at), (int)value, count < threads ? count : threads);
}

static CUmodule must_load(void) {
  static const size_t sizes[] = {sizeof(CUdeviceptr), sizeof(unsigned int), sizeof(unsigned int)};
  CUmodule module = NULL;
  if (fakecuda_present()) SAME(fakecuda_register_kernel("fill", fills, NULL, 3, sizes), FAKECUDA_OK);
  OK(cu.ModuleLoadData(&module, IMAGE));
  CHECK(module != NULL);
  return module;
}

static CUfunction must_get(CUmodule module, const char *name) {
  CUfunction function = NULL;
  OK(cu.ModuleGetFunction(&function, module, name));
  CHECK(function != NULL);
  return function;
}

static CUresult launch(CUfunction function, CUstream stream, CUdeviceptr at, unsigned int count,
                       unsigned int value) {
  void *params[] = {&at, &count, &value};
  CUresult code = cu.LaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
  /* "The actual kernel parameter will be copied": these may change at once. */
  at = 0;
  count = value = 0;
  return code;
}

RULE(kernels_write_memory) {
  CUmodule module = must_load();
  CUfunction fill = must_get(module, "fill");
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(launch(fill, NULL, block, BYTES - 7, 6));
  OK(cu.CtxSynchronize());
  must_hold(block, 6, BYTES - 7);
  must_hold(block + BYTES - 7, 0, 7);
  OK(cu.MemFree(block));
  OK(cu.ModuleUnload(module));
}

/* A launch is work of its stream like any other. */
RULE(launches_are_stream_work) {
  gate_t gate;
  unsigned char *seen = must_alloc_host(2);
  CUmodule module = must_load();
  CUfunction fill = must_get(module, "fill");
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, stream);
  OK(launch(fill, stream, block, BYTES, 1));
  OK(cu.MemcpyDtoHAsync(seen, block, 1, stream));
  OK(launch(fill, stream, block, BYTES, 2));
  OK(cu.MemcpyDtoHAsync(seen + 1, block, 1, stream));
  GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  SAME(seen[0], 1);
  SAME(seen[1], 2);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(seen));
  OK(cu.ModuleUnload(module));
}

/* "Kernel parameters can also be packaged by the application into a single buffer"; "the error
 * CUDA_ERROR_INVALID_VALUE will be returned if kernel parameters are specified with both". */
RULE(parameters_may_be_packed) {
  struct {
    CUdeviceptr at;
    unsigned int count, value;
  } packed;
  size_t size = sizeof packed;
  CUmodule module = must_load();
  CUfunction fill = must_get(module, "fill");
  CUdeviceptr block = must_alloc(BYTES);
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  packed.at = block;
  packed.count = BYTES;
  packed.value = 3;
  OK(cu.LaunchKernel(fill, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
  memset(&packed, 0, sizeof packed);
  OK(cu.CtxSynchronize());
  must_hold(block, 3, BYTES);
  void *params[] = {&packed.at, &packed.count, &packed.value};
  GIVES(cu.LaunchKernel(fill, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params, extra),
        CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
  OK(cu.ModuleUnload(module));
}

/* A launch of no threads, or of more than a block has, is refused. */
RULE(launch_sizes_are_checked) {
  CUmodule module = must_load();
  CUfunction nothing = must_get(module, "_Z7nothingv");
  int most = 0;
  OK(cu.FuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, nothing));
  CHECK(most >= 32 && most <= attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  OK(cu.LaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  GIVES(cu.LaunchKernel(nothing, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.LaunchKernel(nothing, 1, 1, 1, 0, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.LaunchKernel(nothing, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
  OK(cu.CtxSynchronize());
  OK(cu.ModuleUnload(module));
}

/* "If no function of that name exists, cuModuleGetFunction() returns CUDA_ERROR_NOT_FOUND." */
RULE(unknown_functions_are_not_found) {
  CUmodule module = must_load();
  CUfunction function = NULL;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  GIVES(cu.ModuleGetFunction(&function, module, "filled"), CUDA_ERROR_NOT_FOUND);
  GIVES(cu.ModuleGetGlobal(&at, &bytes, module, "no_table"), CUDA_ERROR_NOT_FOUND);
  OK(cu.ModuleUnload(module));
}

/* "Returns the base pointer and size of the global of name name located in module hmod." */
RULE(globals_are_memory) {
  CUmodule module = must_load();
  CUdeviceptr at = 0;
  size_t bytes = 0;
  OK(cu.ModuleGetGlobal(&at, &bytes, module, "table"));
  SAME(bytes, 64);
  OK(cu.MemsetD8(at, 9, bytes));
  must_hold(at, 9, bytes);
  bytes = 0;
  OK(cu.ModuleGetGlobal(NULL, &bytes, module, "table"));
  SAME(bytes, 64);
  OK(cu.ModuleUnload(module));
}

/* Launches are captured, and run with the parameters that they were captured with. */
RULE(launches_are_captured) {
  CUmodule module = must_load();
  CUfunction fill = must_get(module, "fill");
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(launch(fill, stream, block, BYTES, 5));
  OK(cu.StreamEndCapture(stream, &graph));
  must_hold(block, 0, BYTES);
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  for (int round = 0; round < 2; round++) {
    OK(cu.MemsetD8Async(block, 0, BYTES, stream));
    OK(cu.GraphLaunch(exec, stream));
    OK(cu.StreamSynchronize(stream));
    must_hold(block, 5, BYTES);
  }
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.ModuleUnload(module));
}

/* What is no image is no module. */
RULE(images_are_checked) {
  CUmodule module = NULL;
  REFUSED(cu.ModuleLoadData(&module, "this is no image"));
  GIVES(cu.ModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.ModuleLoadData(NULL, IMAGE), CUDA_ERROR_INVALID_VALUE);
}

/* A library is loaded without a context, and its kernels run in the context that is current. */
RULE(libraries_give_kernels) {
  CUlibrary library = NULL;
  CUkernel kernel = NULL;
  CUfunction function = NULL;
  CUdeviceptr block = must_alloc(BYTES), at = 0;
  size_t bytes = 0;
  OK(cu.ModuleUnload(must_load()));
  OK(cu.LibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0));
  OK(cu.LibraryGetKernel(&kernel, library, "fill"));
  OK(launch((CUfunction)kernel, NULL, block, BYTES, 4));
  OK(cu.CtxSynchronize());
  must_hold(block, 4, BYTES);
  OK(cu.KernelGetFunction(&function, kernel));
  OK(launch(function, NULL, block, BYTES, 5));
  OK(cu.CtxSynchronize());
  must_hold(block, 5, BYTES);
  OK(cu.LibraryGetGlobal(&at, &bytes, library, "table"));
  SAME(bytes, 64);
  GIVES(cu.LibraryGetKernel(&kernel, library, "filled"), CUDA_ERROR_NOT_FOUND);
  OK(cu.LibraryUnload(library));
  OK(cu.MemFree(block));
}

/* Freed by the stream after a kernel that uses it: the kernel, which has not run yet, still has its memory. */
RULE(memory_is_there_for_queued_kernels) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) suite_skip("no memory pools");
  gate_t gate;
  unsigned char *seen = must_alloc_host(1);
  CUmodule module = must_load();
  CUfunction fill = must_get(module, "fill");
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  gate_close(&gate, stream);
  OK(launch(fill, stream, block, BYTES, 7));
  OK(cu.MemcpyDtoHAsync(seen, block + BYTES - 1, 1, stream));
  OK(cu.MemFreeAsync(block, stream));
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  SAME(*seen, 7);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
  OK(cu.ModuleUnload(module));
}
