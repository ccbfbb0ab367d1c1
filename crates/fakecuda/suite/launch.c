/* Launches: parameters, limits, order; and the functions that stand in for kernels on the double. */
#include "kernels.h"

enum { BYTES = 1000, THREADS = 128, BLOCKS = 8 };

typedef struct {
  CUmodule module;
  CUfunction fill, add;
  CUdeviceptr block;
  CUstream stream;
} bench_t;

static bench_t must_begin(void) {
  bench_t bench = {0};
  suite_kernels();
  bench.module = must_load();
  bench.fill = must_find(bench.module, FILL);
  bench.add = must_find(bench.module, ADD);
  bench.block = must_alloc(BYTES);
  bench.stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8(bench.block, 0, BYTES));
  OK(cu.CtxSynchronize());
  return bench;
}

static void end(bench_t *bench) {
  OK(cu.StreamSynchronize(bench->stream));
  OK(cu.StreamDestroy(bench->stream));
  OK(cu.MemFree(bench->block));
  OK(cu.ModuleUnload(bench->module));
}

static CUresult launch(CUfunction function, CUstream stream, CUdeviceptr block, unsigned int count, int value) {
  void *parameters[] = {&block, &count, &value};
  return cu.LaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, stream, parameters, NULL);
}

/* "Each of kernelParams[0] through kernelParams[N-1] must point to a region of memory from which the
 * actual kernel parameter will be copied": by the time the call returns they may be gone. */
RULE(parameters_are_copied_at_the_call) {
  bench_t bench = must_begin();
  gate_t gate;
  CUdeviceptr block = bench.block;
  unsigned int count = 500;
  int value = 7;
  void *parameters[] = {&block, &count, &value};
  gate_close(&gate, bench.stream);
  OK(cu.LaunchKernel(bench.fill, BLOCKS, 1, 1, THREADS, 1, 1, 0, bench.stream, parameters, NULL));
  block = 0;
  count = 1000;
  value = 9;
  gate_open(&gate);
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 7, 500);
  must_hold(bench.block + 500, 0, BYTES - 500);
  end(&bench);
}

/* "Kernel parameters can also be packaged by the application into a single buffer that is passed in via the
 * extra parameter." */
RULE(parameters_come_in_a_buffer) {
  bench_t bench = must_begin();
  struct {
    CUdeviceptr block;
    unsigned int count;
    int value;
  } buffer = {bench.block, 300, 5};
  size_t bytes = sizeof buffer;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  OK(cu.LaunchKernel(bench.fill, BLOCKS, 1, 1, THREADS, 1, 1, 0, bench.stream, NULL, extra));
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 5, 300);
  must_hold(bench.block + 300, 0, BYTES - 300);
  end(&bench);
}

/* "The error CUDA_ERROR_INVALID_VALUE will be returned if kernel parameters are specified with both
 * kernelParams and extra." */
RULE(parameters_are_given_once) {
  bench_t bench = must_begin();
  CUdeviceptr block = bench.block;
  unsigned int count = 1;
  int value = 1;
  size_t bytes = 16;
  void *parameters[] = {&block, &count, &value};
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  GIVES(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 1, 1, 0, bench.stream, parameters, extra),
        CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 1, 1, 0, bench.stream, NULL, NULL),
        CUDA_ERROR_INVALID_VALUE);
  end(&bench);
}

/* A kernel takes its turn in its stream, and what follows waits for it. */
RULE(kernels_run_in_order) {
  bench_t bench = must_begin();
  unsigned char *host = must_alloc_host(BYTES);
  OK(cu.MemsetD8Async(bench.block, 1, BYTES, bench.stream));
  for (uint32_t term = 1; term <= 50; term++) OK(launch(bench.add, bench.stream, bench.block, 100, 2));
  OK(launch(bench.fill, bench.stream, bench.block + 400, 600, 3));
  OK(cu.MemcpyDtoHAsync(host, bench.block, BYTES, bench.stream));
  OK(cu.StreamSynchronize(bench.stream));
  for (size_t at = 0; at < 400; at += 4) SAME(*(uint32_t *)(host + at), 0x01010101 + 100);
  for (size_t at = 400; at < BYTES; at++) SAME(host[at], 3);
  OK(cu.MemFreeHost(host));
  end(&bench);
}

/* The default stream's kernels are ordered with those of blocking streams. */
RULE(the_default_stream_orders_kernels) {
  bench_t bench = must_begin();
  CUstream stream = must_stream(CU_STREAM_DEFAULT);
  gate_t gate;
  gate_close(&gate, stream);
  OK(launch(bench.fill, stream, bench.block, BYTES, 1));
  OK(launch(bench.fill, NULL, bench.block, BYTES, 2));
  OK(launch(bench.add, stream, bench.block, 10, 1));
  gate_open(&gate);
  OK(cu.CtxSynchronize());
  must_hold(bench.block + 40, 2, BYTES - 40);
  must_hold(bench.block, 3, 1);
  OK(cu.StreamDestroy(stream));
  end(&bench);
}

RULE(sizes_of_zero_are_refused) {
  bench_t bench = must_begin();
  void *parameters[] = {&bench.block, &(unsigned int){1}, &(int){1}};
  GIVES(cu.LaunchKernel(bench.fill, 0, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.LaunchKernel(bench.fill, 1, 1, 0, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 0, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
  end(&bench);
}

/* The device's and the function's limits hold. */
RULE(sizes_beyond_the_limits_are_refused) {
  bench_t bench = must_begin();
  void *parameters[] = {&bench.block, &(unsigned int){1}, &(int){1}};
  unsigned int grid_y = (unsigned int)attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  unsigned int block_z = (unsigned int)attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  unsigned int threads = (unsigned int)attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  unsigned int shared = (unsigned int)attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  REFUSED(cu.LaunchKernel(bench.fill, 1, grid_y + 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  REFUSED(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 1, block_z + 1, 0, NULL, parameters, NULL));
  REFUSED(cu.LaunchKernel(bench.fill, 1, 1, 1, threads, 2, 1, 0, NULL, parameters, NULL));
  REFUSED(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 1, 1, shared + 1024, NULL, parameters, NULL));
  OK(cu.FuncSetAttribute(bench.fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                         (int)shared + 1024));
  OK(cu.LaunchKernel(bench.fill, 1, 1, 1, 1, 1, 1, shared + 1024, NULL, parameters, NULL));
  OK(cu.CtxSynchronize());
  must_hold(bench.block, 1, 1);
  char first = 0, second[24] = {0};
  void *bounded[] = {&first, second, &(short){0}};
  CUfunction function = must_find(bench.module, BOUNDED);
  OK(cu.LaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, NULL, bounded, NULL));
  REFUSED(cu.LaunchKernel(function, 1, 1, 1, 129, 1, 1, 0, NULL, bounded, NULL));
  OK(cu.CtxSynchronize());
  end(&bench);
}

RULE(what_is_no_function_is_refused) {
  bench_t bench = must_begin();
  GIVES(launch(NULL, NULL, bench.block, 1, 1), CUDA_ERROR_INVALID_HANDLE);
  end(&bench);
}

/* "The CUDA context associated with this stream must match that associated with function f." */
RULE(functions_run_in_their_own_context) {
  bench_t bench = must_begin();
  CUcontext there = second_context();
  OK(cu.CtxPushCurrent(there));
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  REFUSED(launch(bench.fill, stream, bench.block, 1, 1));
  OK(cu.StreamDestroy(stream));
  OK(cu.CtxPopCurrent(NULL));
  end(&bench);
}

/* "The API can also be used to launch context-less kernel CUkernel [...] by casting to CUfunction." */
RULE(kernels_of_libraries_are_launched) {
  bench_t bench = must_begin();
  CUlibrary library = NULL;
  CUkernel kernel = NULL;
  OK(cu.LibraryLoadData(&library, KERNELS, NULL, NULL, 0, NULL, NULL, 0));
  OK(cu.LibraryGetKernel(&kernel, library, FILL));
  OK(launch((CUfunction)kernel, bench.stream, bench.block, BYTES, 4));
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 4, BYTES);
  OK(cu.LibraryUnload(library));
  end(&bench);
}

/* cuLaunchKernelEx: "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT records an event along with the kernel
 * launch." */
RULE(launches_record_events) {
  if (attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) < 9) suite_skip("before compute capability 9.0");
  bench_t bench = must_begin();
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUlaunchAttribute attributes[2];
  memset(attributes, 0, sizeof attributes);
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_IGNORE;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  attributes[1].value.programmaticEvent.event = event;
  CUlaunchConfig config = {.gridDimX = BLOCKS, .gridDimY = 1, .gridDimZ = 1, .blockDimX = THREADS,
                           .blockDimY = 1, .blockDimZ = 1, .hStream = bench.stream,
                           .attrs = attributes, .numAttrs = 2};
  void *parameters[] = {&bench.block, &(unsigned int){BYTES}, &(int){6}};
  gate_t gate;
  gate_close(&gate, bench.stream);
  OK(cu.LaunchKernelEx(&config, bench.fill, parameters, NULL));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.EventSynchronize(event));
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 6, BYTES);
  OK(cu.EventDestroy(event));
  end(&bench);
}

/* "The total number of blocks launched cannot exceed the maximum number of blocks per multiprocessor [...]
 * times the number of multiprocessors." */
RULE(cooperative_launches_fit_the_device) {
  bench_t bench = must_begin();
  void *parameters[] = {&bench.block, &(unsigned int){BYTES}, &(int){8}};
  int each = 0;
  OK(cu.OccupancyMaxActiveBlocksPerMultiprocessor(&each, bench.fill, THREADS, 0));
  CHECK(each > 0);
  unsigned int most = (unsigned int)(each * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  GIVES(cu.LaunchCooperativeKernel(bench.fill, most + 1, 1, 1, THREADS, 1, 1, 0, bench.stream, parameters),
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  OK(cu.LaunchCooperativeKernel(bench.fill, most, 1, 1, THREADS, 1, 1, 0, bench.stream, parameters));
  OK(cu.StreamSynchronize(bench.stream));
  must_hold(bench.block, 8, BYTES);
  end(&bench);
}

/* "Returns in *blockSize a reasonable block size that can achieve the maximum occupancy, and in *minGridSize
 * the minimum grid size to achieve the maximum occupancy." */
RULE(a_block_size_is_suggested) {
  bench_t bench = must_begin();
  CUfunction bounded = must_find(bench.module, BOUNDED);
  int blocks = 0, threads = 0, each = 0;
  OK(cu.OccupancyMaxPotentialBlockSize(&blocks, &threads, bench.fill, NULL, 0, 0));
  OK(cu.OccupancyMaxActiveBlocksPerMultiprocessor(&each, bench.fill, threads, 0));
  SAME(blocks, each * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  OK(cu.OccupancyMaxPotentialBlockSize(&blocks, &threads, bench.fill, NULL, 0, 96));
  CHECK(threads > 0 && threads <= 96);
  OK(cu.OccupancyMaxPotentialBlockSize(&blocks, &threads, bounded, NULL, 0, 0));
  CHECK(threads > 0 && threads <= 128);
  end(&bench);
}

/* A captured launch has the parameters of the call, at each launch of the graph. */
RULE(captured_launches_keep_their_parameters) {
  bench_t bench = must_begin();
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUdeviceptr block = bench.block;
  unsigned int count = 10;
  int term = 3;
  void *parameters[] = {&block, &count, &term};
  OK(cu.StreamBeginCapture(bench.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cu.LaunchKernel(bench.add, 1, 1, 1, THREADS, 1, 1, 0, bench.stream, parameters, NULL));
  OK(cu.StreamEndCapture(bench.stream, &graph));
  OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
  block = 0;
  term = 100;
  must_hold(bench.block, 0, BYTES);
  for (int launches = 0; launches < 5; launches++) OK(cu.GraphLaunch(exec, bench.stream));
  OK(cu.StreamSynchronize(bench.stream));
  uint32_t words[11];
  OK(cu.MemcpyDtoH(words, bench.block, sizeof words));
  CHECK(words[0] == 15 && words[9] == 15 && words[10] == 0);
  OK(cu.GraphExecDestroy(exec));
  OK(cu.GraphDestroy(graph));
  end(&bench);
}

/* ---- Stand-ins ------------------------------------------------------------------------------------ */

static const char plain_text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry _ZN5outer5innerIiLi3EE4workIfNS_3tagEEEvPT_i(.param .u64 p) { ret; }\n"
    ".visible .entry _ZL6hiddenPf(.param .u64 p) { ret; }\n"
    ".visible .entry _ZN12_GLOBAL__N_16secretEv() { ret; }\n"
    ".visible .entry work() { ret; }\n";

typedef struct {
  int calls;
  char name[100];
  unsigned int grid[3], block[3];
  size_t shared, nparams;
  void *stream;
  CUresult inside;
} seen_t;

static void looks(const fakecuda_launch_t *launch, void *user) {
  seen_t *seen = user;
  seen->calls++;
  snprintf(seen->name, sizeof seen->name, "%s", launch->name);
  memcpy(seen->grid, launch->grid, sizeof seen->grid);
  memcpy(seen->block, launch->block, sizeof seen->block);
  seen->shared = launch->shared_bytes;
  seen->nparams = launch->nparams;
  seen->stream = launch->stream;
  seen->inside = cu.CtxSynchronize();
}

static void launches_once(CUmodule module, const char *name, const char *registered, bool stands_in) {
  seen_t seen = {0};
  CUdeviceptr parameter = 0;
  void *parameters[] = {&parameter};
  CUfunction function = must_find(module, name);
  OK((CUresult)fakecuda_register_kernel(registered, looks, &seen, 0, NULL));
  OK(cu.LaunchKernel(function, 2, 3, 4, 5, 6, 7, 800, CU_STREAM_LEGACY, parameters, NULL));
  OK(cu.CtxSynchronize());
  SAME(seen.calls, stands_in);
  OK((CUresult)fakecuda_register_kernel(registered, NULL, NULL, 0, NULL));
  OK(cu.LaunchKernel(function, 2, 3, 4, 5, 6, 7, 800, CU_STREAM_LEGACY, parameters, NULL));
  OK(cu.CtxSynchronize());
  SAME(seen.calls, stands_in);
  if (!stands_in) return;
  CHECK(strcmp(seen.name, name) == 0);
  CHECK(seen.grid[0] == 2 && seen.grid[1] == 3 && seen.grid[2] == 4);
  CHECK(seen.block[0] == 5 && seen.block[1] == 6 && seen.block[2] == 7);
  SAME(seen.shared, 800);
  CHECK(seen.stream == CU_STREAM_LEGACY);
  SAME(seen.inside, CUDA_ERROR_NOT_PERMITTED);
}

RULE(stand_ins_are_found_by_exact_or_plain_name) {
  ONLY_ON_THE_DOUBLE();
  static const char mangled[] = "_ZN5outer5innerIiLi3EE4workIfNS_3tagEEEvPT_i";
  CUmodule module = NULL;
  OK(cu.ModuleLoadData(&module, plain_text));
  launches_once(module, mangled, mangled, true);
  launches_once(module, mangled, "work", true);
  launches_once(module, mangled, "inner", false);
  launches_once(module, "_ZL6hiddenPf", "hidden", true);
  launches_once(module, "_ZN12_GLOBAL__N_16secretEv", "secret", true);
  launches_once(module, "work", "work", true);
  launches_once(module, "work", "wor", false);
  OK(cu.ModuleUnload(module));
}

RULE(an_exact_name_goes_before_a_plain_one) {
  ONLY_ON_THE_DOUBLE();
  seen_t exact = {0}, plain = {0};
  void *parameters[] = {&(CUdeviceptr){0}};
  CUmodule module = NULL;
  OK(cu.ModuleLoadData(&module, plain_text));
  OK((CUresult)fakecuda_register_kernel("hidden", looks, &plain, 0, NULL));
  OK((CUresult)fakecuda_register_kernel("_ZL6hiddenPf", looks, &exact, 0, NULL));
  OK(cu.LaunchKernel(must_find(module, "_ZL6hiddenPf"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
  OK(cu.CtxSynchronize());
  CHECK(exact.calls == 1 && plain.calls == 0);
  /* Without sizes, the parameters are those that the code declares. */
  SAME(exact.nparams, 1);
  OK(cu.ModuleUnload(module));
}

/* A kernel for which nothing stands in does nothing, in its turn, and is counted. */
RULE(other_kernels_do_nothing) {
  ONLY_ON_THE_DOUBLE();
  bench_t bench = must_begin();
  OK((CUresult)fakecuda_register_kernel("fill", NULL, NULL, 0, NULL));
  uint64_t before = fakecuda_launches();
  gate_t gate;
  gate_close(&gate, bench.stream);
  OK(launch(bench.fill, bench.stream, bench.block, BYTES, 1));
  GIVES(cu.StreamQuery(bench.stream), CUDA_ERROR_NOT_READY);
  SAME(fakecuda_launches(), before);
  gate_open(&gate);
  OK(cu.StreamSynchronize(bench.stream));
  SAME(fakecuda_launches(), before + 1);
  must_hold(bench.block, 0, BYTES);
  end(&bench);
}
