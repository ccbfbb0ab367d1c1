// Streams and events: forms, order, waiting, host functions, the default stream.
#include "check.h"

#include <cuda_runtime.h>
#include <atomic>
#include <thread>
#include <vector>

// Holds up the stream that it is launched on until it is opened.
struct Gate {
  std::atomic<bool> open{false};
  static void wait(void *gate) {
    while (!static_cast<Gate *>(gate)->open) std::this_thread::yield();
  }
};

static void forms() {
  cudaStream_t a, b, c;
  unsigned flags;
  int priority, least, greatest, device;
  unsigned long long id_a, id_b, id_default;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest < least);
  OK(cudaStreamCreateWithPriority(&c, cudaStreamNonBlocking, greatest));
  OK(cudaStreamGetFlags(a, &flags));
  CHECK(flags == cudaStreamDefault);
  OK(cudaStreamGetFlags(b, &flags));
  CHECK(flags == cudaStreamNonBlocking);
  OK(cudaStreamGetPriority(c, &priority));
  CHECK(priority == greatest);
  OK(cudaStreamGetId(a, &id_a));
  OK(cudaStreamGetId(b, &id_b));
  OK(cudaStreamGetId(nullptr, &id_default));
  CHECK(id_a != id_b && id_a != id_default && id_b != id_default);
  OK(cudaStreamGetDevice(a, &device));
  CHECK(device == 0);
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
  OK(cudaStreamDestroy(c));
  FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(a));
  FAILS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&a, 0x1000));
}

static void events_order_streams() {
  cudaStream_t a, b;
  cudaEvent_t event;
  Gate gate;
  int *p, *seen;
  OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  OK(cudaMalloc(&p, sizeof *p));
  OK(cudaMallocHost(&seen, sizeof *seen));
  OK(cudaMemset(p, 0, sizeof *p));
  OK(cudaDeviceSynchronize());
  OK(cudaLaunchHostFunc(a, Gate::wait, &gate));
  OK(cudaMemsetAsync(p, 1, sizeof *p, a));
  OK(cudaEventRecord(event, a));
  OK(cudaStreamWaitEvent(b, event));
  // To pinned memory: a copy to other memory of the host's waits for its end.
  OK(cudaMemcpyAsync(seen, p, sizeof *seen, cudaMemcpyDeviceToHost, b));
  GIVES(cudaErrorNotReady, cudaStreamQuery(b));
  GIVES(cudaErrorNotReady, cudaEventQuery(event));
  gate.open = true;
  OK(cudaStreamSynchronize(b));
  CHECK(*seen == 0x01010101);
  OK(cudaEventSynchronize(event));
  OK(cudaStreamQuery(a));
  OK(cudaEventDestroy(event));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
  OK(cudaFreeHost(seen));
  OK(cudaFree(p));
}

static void timing() {
  cudaEvent_t start, end, untimed;
  float milliseconds = -1;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&end));
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  OK(cudaEventRecord(start));
  OK(cudaLaunchHostFunc(nullptr, [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  OK(cudaEventRecord(end));
  OK(cudaEventSynchronize(end));
  OK(cudaEventElapsedTime(&milliseconds, start, end));
  CHECK(milliseconds >= 15 && milliseconds < 60000);
  FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, untimed));
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(end));
  OK(cudaEventDestroy(untimed));
}

static std::vector<int> order;

static void callbacks_in_order() {
  cudaStream_t stream;
  static int values[] = {0, 1, 2, 3};
  OK(cudaStreamCreate(&stream));
  for (int &value : values) {
    auto note = [](void *value) { order.push_back(*static_cast<int *>(value)); };
    OK(cudaLaunchHostFunc(stream, note, &value));
    OK(cudaStreamAddCallback(
        stream,
        [](cudaStream_t, cudaError_t status, void *value) {
          if (status == cudaSuccess) order.push_back(10 + *static_cast<int *>(value));
        },
        &value, 0));
  }
  OK(cudaStreamSynchronize(stream));
  CHECK((order == std::vector<int>{0, 10, 1, 11, 2, 12, 3, 13}));
  OK(cudaStreamDestroy(stream));
}

static void legacy_default_stream() {
  cudaStream_t blocking, free_running;
  Gate gate;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
  int *p, *seen;
  OK(cudaMalloc(&p, sizeof *p));
  OK(cudaMallocHost(&seen, sizeof *seen));
  OK(cudaMemset(p, 0, sizeof *p));
  OK(cudaLaunchHostFunc(blocking, Gate::wait, &gate));
  OK(cudaMemsetAsync(p, 2, sizeof *p, blocking));
  // The default stream waits for the blocking stream, and the one that is not does not.
  OK(cudaMemcpyAsync(seen, p, sizeof *seen, cudaMemcpyDeviceToHost, nullptr));
  GIVES(cudaErrorNotReady, cudaStreamQuery(nullptr));
  OK(cudaLaunchHostFunc(free_running, [](void *) {}, nullptr));
  OK(cudaStreamSynchronize(free_running));
  GIVES(cudaErrorNotReady, cudaStreamQuery(cudaStreamLegacy));
  gate.open = true;
  OK(cudaStreamSynchronize(nullptr));
  CHECK(*seen == 0x02020202);
  OK(cudaStreamDestroy(blocking));
  OK(cudaStreamDestroy(free_running));
  OK(cudaFreeHost(seen));
  OK(cudaFree(p));
}

int main() {
  forms();
  events_order_streams();
  timing();
  callbacks_in_order();
  legacy_default_stream();
  OK(cudaGetLastError());
  return 0;
}
