/* Modules and libraries: functions, variables, and what the driver says of them. */
#include "kernels.h"

enum { BYTES = 5000, THREADS = 128, BLOCKS = (BYTES + THREADS - 1) / THREADS };

static CUresult fill(CUfunction function, CUstream stream, CUdeviceptr at, unsigned int count, int value) {
  void *params[] = {&at, &count, &value};
  return cu.LaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
}

/* On a board the kernel itself runs, on the double the function that is registered for its name. */
RULE(kernels_write_memory) {
  suite_kernels();
  CUmodule module = must_load();
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(fill(must_find(module, FILL), NULL, block, BYTES - 7, 6));
  OK(cu.CtxSynchronize());
  must_hold(block, 6, BYTES - 7);
  must_hold(block + BYTES - 7, 0, 7);
  OK(cu.MemFree(block));
  OK(cu.ModuleUnload(module));
}

/* A launch is work of its stream like any other. */
RULE(launches_are_stream_work) {
  gate_t gate;
  suite_kernels();
  unsigned char *seen = must_alloc_host(2);
  CUmodule module = must_load();
  CUfunction function = must_find(module, FILL);
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, stream);
  OK(fill(function, stream, block, BYTES, 1));
  OK(cu.MemcpyDtoHAsync(seen, block, 1, stream));
  OK(fill(function, stream, block, BYTES, 2));
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

/* Freed by the stream after a kernel that uses it: the kernel, which has not run yet, still has its
 * memory. */
RULE(memory_is_there_for_queued_kernels) {
  need_pools();
  gate_t gate;
  suite_kernels();
  unsigned char *seen = must_alloc_host(1);
  CUmodule module = must_load();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = 0;
  OK(cu.MemAllocAsync(&block, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  gate_close(&gate, stream);
  OK(fill(must_find(module, FILL), stream, block, BYTES, 7));
  OK(cu.MemcpyDtoHAsync(seen, block + BYTES - 1, 1, stream));
  OK(cu.MemFreeAsync(block, stream));
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  SAME(*seen, 7);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(seen));
  OK(cu.ModuleUnload(module));
}

/* ---- Functions ------------------------------------------------------------------------------------------------ */

/* "If no function of that name exists, cuModuleGetFunction() returns CUDA_ERROR_NOT_FOUND." */
RULE(unknown_functions_are_not_found) {
  CUmodule module = must_load();
  CUfunction function = NULL;
  GIVES(cu.ModuleGetFunction(&function, module, "fill"), CUDA_ERROR_NOT_FOUND);
  GIVES(cu.ModuleGetFunction(&function, module, "commented"), CUDA_ERROR_NOT_FOUND);
  GIVES(cu.ModuleGetFunction(&function, module, "numbers"), CUDA_ERROR_NOT_FOUND);
  OK(cu.ModuleUnload(module));
}

/* "Returns the number of functions within a module." */
RULE(functions_are_counted) {
  CUmodule module = must_load();
  CUfunction functions[3];
  unsigned int count = 0;
  OK(cu.ModuleGetFunctionCount(&count, module));
  SAME(count, 3);
  OK(cu.ModuleEnumerateFunctions(functions, 3, module));
  for (int at = 0; at < 3; at++) CHECK(functions[at] != NULL);
  OK(cu.ModuleUnload(module));
}

/* A function knows its name and its module. */
RULE(functions_know_where_they_are_from) {
  CUmodule module = must_load(), found = NULL;
  CUfunction function = must_find(module, FILL);
  const char *name = NULL;
  OK(cu.FuncGetName(&name, function));
  CHECK(name != NULL && strcmp(name, FILL) == 0);
  OK(cu.FuncGetModule(&found, function));
  CHECK(found == module);
  OK(cu.ModuleUnload(module));
}

/* "The maximum number of threads per block, beyond which a launch of the function would fail. This number
 * depends on both the function and the device." */
RULE(functions_have_attributes) {
  CUmodule module = must_load();
  int most = 0;
  OK(cu.FuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, must_find(module, FILL)));
  CHECK(most >= 32 && most <= attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  OK(cu.FuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, must_find(module, BOUNDED)));
  SAME(most, 128);
  OK(cu.ModuleUnload(module));
}

/* "Returns the offset and size of a kernel parameter in the device-side parameter layout"; "paramIndex must
 * be less than the number of parameters". */
RULE(functions_have_parameters) {
  static const size_t wanted[3][2] = {{0, 1}, {8, 24}, {32, 2}};
  CUmodule module = must_load();
  CUfunction function = must_find(module, BOUNDED);
  size_t offset = 0, size = 0;
  for (size_t at = 0; at < 3; at++) {
    OK(cu.FuncGetParamInfo(function, at, &offset, &size));
    SAME(offset, wanted[at][0]);
    SAME(size, wanted[at][1]);
  }
  GIVES(cu.FuncGetParamInfo(function, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  OK(cu.ModuleUnload(module));
}

/* ---- Variables ------------------------------------------------------------------------------------------------ */

/* "Returns the base pointer and size of the global of name name located in module hmod": with the values
 * that the code gives it, and zeros where it gives none. */
RULE(variables_are_memory) {
  static const uint32_t numbers[4] = {1, 2, 0xffffffff, 4};
  CUmodule module = must_load();
  CUdeviceptr at = 0, blank = 0;
  size_t bytes = 0;
  uint32_t words[4];
  OK(cu.ModuleGetGlobal(&at, &bytes, module, "numbers"));
  SAME(bytes, sizeof numbers);
  OK(cu.MemcpyDtoH(words, at, bytes));
  CHECK(memcmp(words, numbers, sizeof numbers) == 0);
  OK(cu.ModuleGetGlobal(&blank, &bytes, module, "blank"));
  SAME(bytes, 1000);
  must_hold(blank, 0, 1000);
  OK(cu.MemsetD8(blank, 9, bytes));
  must_hold(blank, 9, bytes);
  double half = 0;
  OK(cu.ModuleGetGlobal(&at, &bytes, module, "half"));
  SAME(bytes, sizeof half);
  OK(cu.MemcpyDtoH(&half, at, bytes));
  CHECK(half == 0.5);
  /* "One of the parameters dptr or bytes (not both) can be NULL in which case it is ignored." */
  bytes = 0;
  OK(cu.ModuleGetGlobal(NULL, &bytes, module, "blank"));
  SAME(bytes, 1000);
  GIVES(cu.ModuleGetGlobal(&at, &bytes, module, "nobody"), CUDA_ERROR_NOT_FOUND);
  OK(cu.ModuleUnload(module));
}

/* Each load is a module with variables of its own, as the code has them. */
RULE(modules_are_apart) {
  CUmodule one = must_load(), two = must_load();
  CUdeviceptr first = 0, second = 0;
  size_t bytes = 0;
  OK(cu.ModuleGetGlobal(&first, &bytes, one, "blank"));
  OK(cu.ModuleGetGlobal(&second, &bytes, two, "blank"));
  CHECK(first != second);
  OK(cu.MemsetD8(first, 7, bytes));
  must_hold(second, 0, bytes);
  OK(cu.ModuleUnload(one));
  OK(cu.ModuleUnload(two));
}

/* ---- Images and libraries -------------------------------------------------------------------------------------- */

/* What is no image is no module. */
RULE(images_are_checked) {
  CUmodule module = NULL;
  REFUSED(cu.ModuleLoadData(&module, "this is no image"));
  GIVES(cu.ModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.ModuleLoadData(NULL, KERNELS), CUDA_ERROR_INVALID_VALUE);
}

/* A library is loaded without a context, and its kernels run in the context that is current. */
RULE(libraries_give_kernels) {
  suite_kernels();
  CUcontext context = NULL;
  CUlibrary library = NULL;
  CUkernel kernel = NULL;
  CUfunction function = NULL;
  CUdeviceptr block = must_alloc(BYTES), at = 0;
  size_t bytes = 0;
  unsigned int count = 0;
  OK(cu.CtxPopCurrent(&context));
  OK(cu.LibraryLoadData(&library, KERNELS, NULL, NULL, 0, NULL, NULL, 0));
  OK(cu.LibraryGetKernel(&kernel, library, FILL));
  OK(cu.LibraryGetKernelCount(&count, library));
  SAME(count, 3);
  OK(cu.CtxPushCurrent(context));
  OK(fill((CUfunction)kernel, NULL, block, BYTES, 4));
  OK(cu.CtxSynchronize());
  must_hold(block, 4, BYTES);
  OK(cu.KernelGetFunction(&function, kernel));
  OK(fill(function, NULL, block, BYTES, 5));
  OK(cu.CtxSynchronize());
  must_hold(block, 5, BYTES);
  OK(cu.LibraryGetGlobal(&at, &bytes, library, "blank"));
  SAME(bytes, 1000);
  GIVES(cu.LibraryGetKernel(&kernel, library, "nobody"), CUDA_ERROR_NOT_FOUND);
  OK(cu.LibraryUnload(library));
  OK(cu.MemFree(block));
}
