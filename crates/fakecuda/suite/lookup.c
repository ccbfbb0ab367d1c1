/* cuGetProcAddress: which function a name means at which version. Asked for through the table, so itself
 * found in each of the three ways. */
#include "suite.h"

static int driver_version(void) {
  int version = 0;
  OK(cu.DriverGetVersion(&version));
  return version;
}

static void *find(const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult wanted) {
  void *function = (void *)&wanted;
  CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
  CUresult code = cu.GetProcAddress(name, &function, version, flags, &status);
  if (code != CUDA_SUCCESS || status != wanted || (function != NULL) != (wanted == 0))
    suite_fail(__FILE__, __LINE__, "%s at %d: %s, status %d, %s; not status %d", name, version,
               suite_code(code), (int)status, function ? "found" : "NULL", (int)wanted);
  return function;
}

static void *must_find(const char *name, int version) {
  return find(name, version, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_SUCCESS);
}

/* "If the specified CUDA version is greater than or equal to the CUDA version in which the driver symbol was
 * introduced, this API will return the function pointer to the corresponding versioned function." */
RULE(found_functions_work) {
  CUresult (*alloc)(CUdeviceptr *, size_t);
  CUresult (*release)(CUdeviceptr);
  CUdeviceptr block = 0;
  static const int versions[] = {3020, 4000, 11020, 12000};
  for (size_t at = 0; at < sizeof versions / sizeof versions[0]; at++) {
    *(void **)&alloc = must_find("cuMemAlloc", versions[at]);
    *(void **)&release = must_find("cuMemFree", versions[at]);
    OK(alloc(&block, 5000));
    OK(release(block));
  }
}

/* It may be asked for before anything else: it is how programs begin. */
FRESH_RULE(functions_are_found_before_init) {
  CUresult (*init)(unsigned int);
  *(void **)&init = must_find("cuInit", 12000);
  OK(init(0));
}

/* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND: "The requested symbol was not found". The base name is what counts,
 * not the symbol. */
RULE(unknown_names_are_not_found) {
  find("cuNoSuchFunction", 12000, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  find("malloc", 12000, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

/* CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT: "The requested symbol was found but is not supported by
 * cudaVersion specified". */
RULE(old_versions_lack_new_names) {
  find("cuMemAllocAsync", 11010, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  find("cuMemCreate", 10000, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  find("cuStreamGetId", 11080, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  must_find("cuMemAllocAsync", 11020);
  must_find("cuMemCreate", 10020);
  must_find("cuStreamGetId", 12000);
}

/* "If the specified CUDA version is greater than the driver version, the API will return
 * CUDA_ERROR_INVALID_VALUE." */
RULE(later_versions_are_refused) {
  void *function = NULL;
  GIVES(cu.GetProcAddress("cuInit", &function, driver_version() + 1000, 0, NULL),
        CUDA_ERROR_INVALID_VALUE);
}

/* "symbolStatus: Optional location". */
RULE(the_status_is_optional) {
  void *function = NULL;
  OK(cu.GetProcAddress("cuMemAlloc", &function, 12000, 0, NULL));
  CHECK(function != NULL);
  GIVES(cu.GetProcAddress(NULL, &function, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.GetProcAddress("cuMemAlloc", NULL, 12000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* It finds itself, in the form of each version: before 12.0 without the status. */
RULE(it_finds_itself) {
  CUresult (*first)(const char *, void **, int, cuuint64_t);
  CUresult (*second)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
  CUresult (*count)(int *);
  CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
  int devices = 0;
  *(void **)&first = must_find("cuGetProcAddress", 11030);
  *(void **)&second = must_find("cuGetProcAddress", 12000);
  CHECK((void *)first != (void *)second);
  OK(first("cuDeviceGetCount", (void **)&count, 11030, 0));
  OK(count(&devices));
  CHECK(devices >= 1);
  count = NULL;
  OK(second("cuDeviceGetCount", (void **)&count, 12000, 0, &status));
  SAME(status, CU_GET_PROC_ADDRESS_SUCCESS);
  OK(count(&devices));
}

/* cuCtxCreate has four forms. */
RULE(contexts_are_created_by_each_form) {
  CUresult (*plain)(CUcontext *, unsigned int, CUdevice);
  CUresult (*affinity)(CUcontext *, CUexecAffinityParam *, int, unsigned int, CUdevice);
  CUresult (*with_params)(CUcontext *, CUctxCreateParams *, unsigned int, CUdevice);
  CUcontext context = NULL;
  unsigned int flags = 0;
  *(void **)&plain = must_find("cuCtxCreate", 3020);
  OK(plain(&context, CU_CTX_SCHED_YIELD, 0));
  OK(cu.CtxGetFlags(&flags));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
  OK(cu.CtxDestroy(context));
  *(void **)&affinity = must_find("cuCtxCreate", 11040);
  OK(affinity(&context, NULL, 0, CU_CTX_SCHED_SPIN, 0));
  OK(cu.CtxGetFlags(&flags));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
  OK(cu.CtxDestroy(context));
  if (driver_version() < 12050) return;
  *(void **)&with_params = must_find("cuCtxCreate", 12050);
  OK(with_params(&context, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
  OK(cu.CtxGetFlags(&flags));
  SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
  OK(cu.CtxDestroy(context));
}

/* cuCtxGetDevice and cuCtxSynchronize take a context from 13.0 on. */
RULE(context_questions_take_a_context_later) {
  CUresult (*device_old)(CUdevice *), (*synchronize_old)(void);
  CUresult (*device_new)(CUdevice *, CUcontext), (*synchronize_new)(CUcontext);
  CUdevice device = -1;
  CUcontext primary = NULL;
  OK(cu.CtxGetCurrent(&primary));
  *(void **)&device_old = must_find("cuCtxGetDevice", 12000);
  *(void **)&synchronize_old = must_find("cuCtxSynchronize", 12000);
  OK(device_old(&device));
  SAME(device, 0);
  OK(synchronize_old());
  if (driver_version() < 13000) return;
  *(void **)&device_new = must_find("cuCtxGetDevice", 13000);
  *(void **)&synchronize_new = must_find("cuCtxSynchronize", 13000);
  CHECK((void *)device_new != (void *)device_old);
  device = -1;
  OK(cu.CtxSetCurrent(NULL));
  OK(device_new(&device, primary));
  SAME(device, 0);
  OK(synchronize_new(primary));
  OK(cu.CtxSetCurrent(primary));
  device = -1;
  OK(device_new(&device, NULL));
  SAME(device, 0);
}

/* cuStreamGetCaptureInfo has three forms, which agree. */
RULE(capture_is_told_by_each_form) {
  CUresult (*first)(CUstream, CUstreamCaptureStatus *, cuuint64_t *);
  CUresult (*second)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **,
                     size_t *);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t one = 0, two = 0, three = 0;
  CUgraph graph = NULL, same = NULL;
  size_t count = 7;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  *(void **)&first = must_find("cuStreamGetCaptureInfo", 10010);
  *(void **)&second = must_find("cuStreamGetCaptureInfo", 11030);
  CHECK((void *)first != (void *)second);
  OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(first(stream, &status, &one));
  SAME(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(second(stream, &status, &two, &graph, NULL, &count));
  SAME(two, one);
  SAME(count, 0);
  OK(cu.StreamGetCaptureInfo(stream, &status, &three, &same, NULL, NULL, NULL));
  SAME(three, one);
  CHECK(same == graph);
  OK(cu.StreamEndCapture(stream, &graph));
  OK(cu.GraphDestroy(graph));
  OK(cu.StreamDestroy(stream));
}

/* "CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM: This will enable the search for all driver symbols that
 * match the requested driver symbol name including the per-thread versions. If a per-thread version is not
 * found, the API will return the legacy version." */
RULE(per_thread_forms_are_found) {
  void *legacy = find("cuStreamSynchronize", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                      CU_GET_PROC_ADDRESS_SUCCESS);
  void *own = find("cuStreamSynchronize", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                   CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(own != legacy);
  CHECK(must_find("cuStreamSynchronize", 12000) == legacy);
  void *alloc = find("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                     CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(alloc == must_find("cuMemAlloc", 12000));
  /* And they are what they are called. */
  gate_t gate;
  CUresult (*query)(CUstream), (*query_own)(CUstream);
  *(void **)&query = must_find("cuStreamQuery", 12000);
  *(void **)&query_own = find("cuStreamQuery", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                              CU_GET_PROC_ADDRESS_SUCCESS);
  gate_close(&gate, CU_STREAM_PER_THREAD);
  GIVES(query_own(NULL), CUDA_ERROR_NOT_READY);
  OK(query(NULL));
  gate_open(&gate);
  OK(cu.StreamSynchronize(CU_STREAM_PER_THREAD));
}

/* Every function that the suite uses, at the version that brought it. */
RULE(every_table_name_is_found) {
#define FIND(name, version) \
  if (version <= driver_version()) must_find("cu" #name, version);
  DRIVER_FUNCTIONS(FIND)
}
