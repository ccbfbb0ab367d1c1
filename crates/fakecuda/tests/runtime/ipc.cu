// Memory and an event shared with a process of its own.
#include "check.h"

#include <cuda_runtime.h>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

struct Message {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

static int child() {
  Message message;
  CHECK(read(0, &message, sizeof message) == sizeof message);
  void *p;
  cudaEvent_t event;
  char text[16] = {0};
  OK(cudaIpcOpenMemHandle(&p, message.memory, cudaIpcMemLazyEnablePeerAccess));
  OK(cudaIpcOpenEventHandle(&event, message.event));
  OK(cudaStreamWaitEvent(nullptr, event));
  OK(cudaMemcpy(text, p, 7, cudaMemcpyDeviceToHost));
  CHECK(!strcmp(text, "parent"));
  OK(cudaMemcpy(p, "child", 6, cudaMemcpyHostToDevice));
  OK(cudaEventDestroy(event));
  OK(cudaIpcCloseMemHandle(p));
  FAILS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(p));
  return 0;
}

int main(int count, char **arguments) {
  if (count > 1 && !strcmp(arguments[1], "child")) return child();
  int ends[2];
  char text[16] = {0};
  void *p;
  Message message;
  cudaEvent_t event;
  OK(cudaMalloc(&p, 4096));
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
  OK(cudaMemcpy(p, "parent", 7, cudaMemcpyHostToDevice));
  OK(cudaEventRecord(event));
  OK(cudaIpcGetMemHandle(&message.memory, p));
  OK(cudaIpcGetEventHandle(&message.event, event));
  CHECK(pipe(ends) == 0);
  CHECK(write(ends[1], &message, sizeof message) == sizeof message);
  pid_t process = fork();
  if (process == 0) {
    dup2(ends[0], 0);
    execl("/proc/self/exe", arguments[0], "child", nullptr);
    _exit(9);
  }
  int status = -1;
  waitpid(process, &status, 0);
  CHECK(status == 0);
  OK(cudaMemcpy(text, p, 6, cudaMemcpyDeviceToHost));
  CHECK(!strcmp(text, "child"));
  OK(cudaEventDestroy(event));
  OK(cudaFree(p));
  return 0;
}
