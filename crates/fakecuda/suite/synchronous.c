/* What copies and sets wait for before they return: "API synchronization behavior" in the driver's
 * documentation. */
#include "suite.h"

enum { BYTES = 4096 };

/* A blocking stream that is held up, so that whatever waits for the default stream's turn waits for
 * it. */
typedef struct {
  CUstream stream;
  gate_t gate;
  pthread_t opener;
} held_t;

static void hold(held_t *held) {
  held->stream = must_stream(CU_STREAM_DEFAULT);
  gate_close(&held->gate, held->stream);
}

static void *opens_later(void *argument) {
  sleep_ms(30);
  gate_open(&((held_t *)argument)->gate);
  return NULL;
}

/* From here on the stream goes on in a while. */
static void let_go_later(held_t *held) {
  CHECK(pthread_create(&held->opener, NULL, opens_later, held) == 0);
}

static void release(held_t *held) {
  gate_open(&held->gate);
  OK(cu.StreamSynchronize(held->stream));
  OK(cu.StreamDestroy(held->stream));
}

/* The call that was just made has waited for the stream. */
static void must_have_waited(held_t *held) {
  CHECK(atomic_load(&held->gate.passed));
  pthread_join(held->opener, NULL);
  OK(cu.StreamDestroy(held->stream));
}

/* "For transfers from device memory to device memory, no host-side synchronization is performed." */
RULE(device_to_device_copies_do_not_wait) {
  CUdeviceptr from = must_alloc(BYTES), to = must_alloc(BYTES);
  held_t held;
  OK(cu.MemsetD8(from, 1, BYTES));
  OK(cu.CtxSynchronize());
  hold(&held);
  OK(cu.MemcpyDtoD(to, from, BYTES));
  CHECK(!atomic_load(&held.gate.passed));
  GIVES(cu.StreamQuery(NULL), CUDA_ERROR_NOT_READY);
  release(&held);
  must_hold(to, 1, BYTES);
  OK(cu.MemFree(from));
  OK(cu.MemFree(to));
}

/* "The cudaMemset functions are asynchronous with respect to the host except when the target memory is pinned
 * host memory or a Unified Memory region, in which case they are fully synchronous with respect to the host." */
RULE(sets_of_device_memory_do_not_wait) {
  CUdeviceptr block = must_alloc(BYTES);
  held_t held;
  hold(&held);
  OK(cu.MemsetD8(block, 2, BYTES));
  CHECK(!atomic_load(&held.gate.passed));
  release(&held);
  must_hold(block, 2, BYTES);
  OK(cu.MemFree(block));
}

RULE(sets_of_pinned_memory_wait) {
  unsigned char *host = must_alloc_host(BYTES);
  held_t held;
  host[0] = host[BYTES - 1] = 0;
  hold(&held);
  let_go_later(&held);
  OK(cu.MemsetD8((CUdeviceptr)(uintptr_t)host, 3, BYTES));
  CHECK(host[0] == 3 && host[BYTES - 1] == 3);
  must_have_waited(&held);
  OK(cu.MemFreeHost(host));
}

/* "For transfers from pinned host memory to device memory, the function is synchronous with respect to the
 * host." */
RULE(copies_from_pinned_memory_wait) {
  unsigned char *host = must_alloc_host(BYTES);
  CUdeviceptr block = must_alloc(BYTES);
  held_t held;
  memset(host, 4, BYTES);
  hold(&held);
  let_go_later(&held);
  OK(cu.MemcpyHtoD(block, host, BYTES));
  memset(host, 0, BYTES);
  must_have_waited(&held);
  must_hold(block, 4, BYTES);
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}

/* "For transfers from device to either pageable or pinned host memory, the function returns only once the copy
 * has completed." */
RULE(copies_to_the_host_wait) {
  unsigned char *pinned = must_alloc_host(BYTES), pageable[BYTES];
  CUdeviceptr block = must_alloc(BYTES);
  for (int is_pinned = 0; is_pinned < 2; is_pinned++) {
    unsigned char *to = is_pinned ? pinned : pageable;
    held_t held;
    memset(to, 0, BYTES);
    OK(cu.MemsetD8(block, 5, BYTES));
    OK(cu.CtxSynchronize());
    hold(&held);
    let_go_later(&held);
    OK(cu.MemcpyDtoH(to, block, BYTES));
    CHECK(to[0] == 5 && to[BYTES - 1] == 5);
    must_have_waited(&held);
  }
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(pinned));
}

static void writes_sixes(void *memory) { memset(memory, 6, BYTES); }

/* "For transfers from pageable host memory to device memory, a stream sync is performed before the copy is
 * initiated." */
RULE(pageable_memory_is_read_in_turn) {
  static unsigned char host[BYTES];
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.LaunchHostFunc(NULL, writes_sixes, host));
  OK(cu.MemcpyHtoD(block, host, BYTES));
  memset(host, 0, BYTES);
  must_hold(block, 6, BYTES);
  OK(cu.MemFree(block));
}

/* "For all other transfers, the function should be fully asynchronous": page-locked memory is read in the
 * stream's turn. */
RULE(asynchronous_copies_from_pinned_memory_do_not_wait) {
  unsigned char *host = must_alloc_host(BYTES);
  CUdeviceptr block = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  gate_t gate;
  memset(host, 7, BYTES);
  gate_close(&gate, stream);
  OK(cu.MemcpyHtoDAsync(block, host, BYTES, stream));
  OK(cu.MemsetD8Async(block, 8, 1, stream));
  memset(host, 9, BYTES);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  must_hold(block, 8, 1);
  must_hold(block + 1, 9, BYTES - 1);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}

/* "For transfers from any host memory to any host memory, the function is fully synchronous with respect to the
 * host." */
RULE(copies_within_the_host_are_done) {
  unsigned char *from = must_alloc_host(BYTES), *to = must_alloc_host(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  memset(from, 10, BYTES);
  memset(to, 0, BYTES);
  OK(cu.MemcpyAsync((CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, BYTES, stream));
  CHECK(to[0] == 10 && to[BYTES - 1] == 10);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFreeHost(from));
  OK(cu.MemFreeHost(to));
}

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: "ensures that synchronous memory operations initiated on the memory region
 * that ptr points to will always synchronize." */
RULE(memory_can_be_marked_to_be_waited_for) {
  CUdeviceptr from = must_alloc(BYTES), to = must_alloc(BYTES);
  unsigned int on = 1;
  held_t held;
  OK(cu.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, to));
  OK(cu.CtxSynchronize());
  hold(&held);
  let_go_later(&held);
  OK(cu.MemcpyDtoD(to, from, BYTES));
  must_have_waited(&held);
  hold(&held);
  let_go_later(&held);
  OK(cu.MemsetD8(to, 0, BYTES));
  must_have_waited(&held);
  OK(cu.MemFree(from));
  OK(cu.MemFree(to));
}
