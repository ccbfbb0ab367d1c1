/* Each call of each function of the driver fails once, one at a time, whoever makes it. The program's own call
 * gives the code, or succeeds since the memory came another way; the next call of the same succeeds; all memory
 * holds what was written; nothing is lost, and nothing is left. */
#include "past.h"

#include <sys/mman.h>

enum { BYTES = 300000, MOST_NAMES = 1024, NAME_BYTES = 64 };

/* Codes of calls that fail: one that asks for less memory, and others. */
static const CUresult codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN, CUDA_ERROR_NOT_SUPPORTED};

/* What the process in which nothing fails tells about the functions that it calls. */
static struct {
  size_t count;
  struct {
    char name[NAME_BYTES];
    uint64_t calls;
  } names[MOST_NAMES];
} *called;

/* What fails in this process; NULL: nothing. */
static const char *failing;
static CUresult code;
static bool has_failed;

/* The call succeeds, or gives a code, once, and succeeds when it is made again. */
#define ONCE_WITH(call, fits)                                                                    \
  do {                                                                                           \
    CUresult given_ = (call);                                                                    \
    if (given_ == CUDA_SUCCESS) break;                                                           \
    if (failing == NULL || has_failed || !(fits))                                                \
      fail(__FILE__, __LINE__, "%s gives %d; what fails is %s with %d", #call, (int)given_, failing, \
           (int)code);                                                                           \
    has_failed = true;                                                                           \
    OK(call);                                                                                    \
  } while (0)

/* What fails is the call itself, or a part of it: the code is that of the failure. */
#define ONCE(call) ONCE_WITH(call, given_ == code)
/* Memory is asked for. What failed may have been the way to memory that was freed. */
#define TAKES(call) ONCE_WITH(call, given_ == code || given_ == CUDA_ERROR_OUT_OF_MEMORY)

static void check(CUdeviceptr block, unsigned char value, CUstream stream) {
  static unsigned char seen[BYTES];
  memset(seen, value ^ 0xff, sizeof seen);
  ONCE(cuMemcpyDtoHAsync(seen, block, BYTES, stream));
  ONCE(cuStreamSynchronize(stream));
  for (size_t at = 0; at < BYTES; at++) SAME(seen[at], value);
}

/* A block of each kind, on two streams, freed by each function, and asked about. */
static void allocate_and_free(CUstream one, CUstream two) {
  CUdeviceptr plain = 0, pitched = 0, ordered = 0, next = 0, base = 0;
  size_t pitch = 0, bytes = 0, total = 0;
  unsigned int type = 0;
  TAKES(cuMemAlloc(&plain, BYTES));
  ONCE(cuMemsetD8Async(plain, 1, BYTES, one));
  TAKES(cuMemAllocAsync(&ordered, BYTES, one));
  ONCE(cuMemsetD8Async(ordered, 2, BYTES, one));
  TAKES(cuMemAllocPitch(&pitched, &pitch, 1000, 300, 16));
  ONCE(cuMemsetD8Async(pitched, 3, BYTES, two));
  ONCE(cuMemGetInfo(&bytes, &total));
  CHECK(bytes <= total);
  ONCE(cuMemGetAddressRange(&base, &bytes, plain));
  CHECK(base <= plain && plain + BYTES <= base + bytes);
  ONCE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pitched));
  SAME(type, CU_MEMORYTYPE_DEVICE);
  check(ordered, 2, one);
  ONCE(cuMemFreeAsync(ordered, one));
  TAKES(cuMemAllocAsync(&next, BYTES, two));
  ONCE(cuMemsetD8Async(next, 4, BYTES, two));
  check(plain, 1, one);
  check(pitched, 3, two);
  ONCE(cuMemFree(plain));
  ONCE(cuMemFree(pitched));
  check(next, 4, two);
  ONCE(cuMemFree(next));
}

/* Work is queued on what is freed, and all memory is wanted. */
static void press(CUstream one, CUstream two, size_t most) {
  CUdeviceptr first = 0, second = 0;
  TAKES(cuMemAlloc(&first, most));
  ONCE(cuMemsetD8Async(first, 5, 4096, one));
  ONCE(cuMemFree(first));
  TAKES(cuMemAllocAsync(&second, most, two));
  ONCE(cuMemsetD8Async(second, 6, BYTES, two));
  check(second, 6, two);
  ONCE(cuMemFreeAsync(second, two));
  /* A pool's memory is nobody else's before that. */
  ONCE(cuStreamSynchronize(two));
  TAKES(cuMemAlloc(&first, most));
  ONCE(cuMemFree(first));
}

/* The program's own virtual memory, of all that is left when memory was freed. */
static void map_and_unmap(CUstream stream, size_t most) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr start = 0;
  CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t bytes = most / (2 * MIB) * (2 * MIB);
  TAKES(cuMemCreate(&handle, bytes, &props, 0));
  ONCE(cuMemAddressReserve(&start, bytes, 0, 0, 0));
  ONCE(cuMemMap(start, bytes, 0, handle, 0));
  ONCE(cuMemSetAccess(start, bytes, &access, 1));
  ONCE(cuMemRelease(handle));
  ONCE(cuMemsetD8Async(start, 8, BYTES, stream));
  check(start, 8, stream);
  ONCE(cuMemUnmap(start, bytes));
  ONCE(cuMemAddressFree(start, bytes));
}

/* What is destroyed takes its memory along, once that succeeds; a block outlives an attempt that failed. */
static void with_a_context(void) {
  CUcontext context = NULL;
  CUstream stream = NULL;
  CUdeviceptr block = 0;
  ONCE(cuCtxCreate(&context, NULL, 0, 0));
  ONCE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  TAKES(cuMemAlloc(&block, BYTES));
  ONCE(cuMemsetD8Async(block, 7, BYTES, stream));
  CUresult given = cuCtxDestroy(context);
  if (given == CUDA_SUCCESS) return;
  CHECK(given == code && !has_failed);
  has_failed = true;
  OK(cuCtxSetCurrent(context));
  check(block, 7, stream);
  OK(cuMemFree(block));
  OK(cuCtxDestroy(context));
}

static void work(void) {
  CUcontext context = NULL;
  CUstream one = NULL, two = NULL;
  size_t most = 0;
  alarm(20);
  ONCE(cuInit(0));
  ONCE(cuDevicePrimaryCtxRetain(&context, 0));
  ONCE(cuCtxSetCurrent(context));
  ONCE(cuDeviceTotalMem(&most, 0));
  most = most / 10 * 8;
  ONCE(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  ONCE(cuStreamCreate(&two, CU_STREAM_DEFAULT));
  for (int round = 0; round < 2; round++) {
    allocate_and_free(one, two);
    press(one, two, most);
    map_and_unmap(one, most);
  }
  with_a_context();
  ONCE(cuCtxSetCurrent(context));
  allocate_and_free(one, two);
  ONCE(cuCtxSynchronize());
  /* Nothing was lost on the way. */
  CUdeviceptr all = 0;
  TAKES(cuMemAlloc(&all, most / 8 * 9));
  ONCE(cuMemFree(all));
  ONCE(cuStreamDestroy(one));
  ONCE(cuStreamDestroy(two));
  ONCE(cuDevicePrimaryCtxRelease(0));
  SAME(fakecuda_live(FAKECUDA_LIVE_CONTEXTS), 0);
  SAME(fakecuda_used(0), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_ALLOCATIONS), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_STREAMS), 0);
  SAME(fakecuda_live(FAKECUDA_LIVE_EVENTS), 0);
}

/* Writes down which functions are called how often. */
static void count_calls(void) {
  struct table table = driver_symbols();
  work();
  for (size_t at = 0; at < table.count; at++) {
    const char *name = table.strings + table.symbols[at].st_name;
    if (table.symbols[at].st_value == 0 || strncmp(name, "cu", 2) != 0 || strlen(name) >= NAME_BYTES) continue;
    uint64_t calls = fakecuda_calls(name);
    /* A per-thread form is counted with the function that it is a form of. */
    size_t length = strlen(name);
    if (length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0)) continue;
    if (calls == 0 || called->count == MOST_NAMES) continue;
    snprintf(called->names[called->count].name, NAME_BYTES, "%s", name);
    called->names[called->count++].calls = calls;
  }
}

/* Whether the process did not end well; it has said why. */
static bool ends_badly(pid_t child, const char *name, uint64_t skip, CUresult with) {
  int status = ended(child);
  if (status != 0)
    fprintf(stderr, "status %d where call %llu of %s gives %d\n", status, (unsigned long long)skip, name, (int)with);
  return status != 0;
}

int main(void) {
  uint64_t failures = 0, bad = 0;
  called = mmap(NULL, sizeof *called, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(called != MAP_FAILED && fakecuda_present());
  pid_t child = fork();
  if (child == 0) {
    count_calls();
    _exit(0);
  }
  CHECK(!ends_badly(child, "nothing", 0, CUDA_SUCCESS));
  for (size_t at = 0; at < called->count; at++)
    for (size_t with = 0; with < COUNT_OF(codes); with++)
      for (uint64_t skip = 0; skip < called->names[at].calls; skip++) {
        child = fork();
        if (child == 0) {
          failing = called->names[at].name;
          code = codes[with];
          SAME(fakecuda_fail(failing, skip, code, 1), FAKECUDA_OK);
          work();
          _exit(0);
        }
        bad += ends_badly(child, called->names[at].name, skip, codes[with]);
        failures++;
      }
  fprintf(stderr, "%zu functions, %llu failures\n", called->count, (unsigned long long)failures);
  CHECK(called->count > 15 && bad == 0);
  return 0;
}
