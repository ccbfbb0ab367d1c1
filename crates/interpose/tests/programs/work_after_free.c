/* Work that is queued after a free has nothing to do with the block: a request that needs the block's memory does not
 * wait for it. Here that work ends only when the program has got its memory, as a kernel does that waits for the host.
 *
 * Arguments, of which all hold without any: "idle", "queued", "ordered", "device". */
#include "program.h"

typedef struct {
  atomic_bool open;
  atomic_bool reached;
} gate_t;

static void CUDA_CB wait_for_the_host(void *argument) {
  gate_t *gate = argument;
  atomic_store(&gate->reached, true);
  while (!atomic_load(&gate->open)) sleep_ms(1);
}

static void close_gate(gate_t *gate, CUstream stream) {
  atomic_store(&gate->open, false);
  atomic_store(&gate->reached, false);
  OK(cuLaunchHostFunc(stream, wait_for_the_host, gate));
  /* Asking is what moves late queues. */
  while (!atomic_load(&gate->reached)) {
    GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    sleep_ms(1);
  }
}

static CUstream busy, own;
static gate_t gate;
static size_t most;

static void pass(void) {
  atomic_store(&gate.open, true);
  OK(cuStreamSynchronize(busy));
}

static void freed_on_an_idle_device(void) {
  OK(cuMemFree(must_alloc(most)));
  close_gate(&gate, busy);
  CUdeviceptr block = must_alloc(most);
  pass();
  OK(cuMemFree(block));
}

static void freed_while_work_is_queued(void) {
  CUdeviceptr block = must_alloc(most);
  delay(own, 2);
  OK(cuMemsetD8Async(block, 1, 4096, own));
  OK(cuMemFree(block));
  close_gate(&gate, busy);
  block = must_alloc(most);
  pass();
  OK(cuMemFree(block));
}

static void freed_in_the_order_of_a_stream(void) {
  close_gate(&gate, busy);
  for (int turn = 0; turn < 5; turn++) {
    CUdeviceptr ordered = must_alloc_async(most, own);
    OK(cuMemsetD8Async(ordered, 1, 4096, own));
    OK(cuMemFreeAsync(ordered, own));
  }
  OK(cuStreamSynchronize(own));
  CUdeviceptr block = must_alloc(most);
  pass();
  OK(cuMemFree(block));
}

/* The work is another device's, as that of a collective operation is, which waits for this device's part of it. */
static void work_of_another_device(void) {
  CUcontext here = NULL;
  CUstream saved = busy;
  OK(cuCtxGetCurrent(&here));
  CUdeviceptr block = must_alloc(most);
  OK(cuMemsetD8Async(block, 1, 4096, own));
  OK(cuMemFree(block));
  use_device(1);
  busy = must_stream(CU_STREAM_NON_BLOCKING);
  close_gate(&gate, busy);
  OK(cuCtxSetCurrent(here));
  block = must_alloc(most);
  pass();
  OK(cuMemFree(block));
  busy = saved;
}

int main(int count, char **arguments) {
  size_t unused = 0, total = 0;
  bool all = count == 1;
  start();
  alarm(20);
  busy = must_stream(CU_STREAM_NON_BLOCKING);
  own = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cuMemGetInfo(&unused, &total));
  most = unused / 10 * 6;
  for (int round = 0; round < 3; round++) {
    if (all || has_argument(count, arguments, "idle")) freed_on_an_idle_device();
    if (all || has_argument(count, arguments, "queued")) freed_while_work_is_queued();
    if (all || has_argument(count, arguments, "ordered")) freed_in_the_order_of_a_stream();
    if (all || has_argument(count, arguments, "device")) work_of_another_device();
  }
  return 0;
}
