/* What most rules need: a context, memory, streams, threads, processes. See suite.h. */
#include "suite.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

CUcontext suite_begin(void) {
  CUdevice device;
  CUcontext context = NULL;
  OK(cu.Init(0));
  /* What the rule before has left on the thread's stack of contexts. */
  while (cu.CtxGetCurrent(&context) == CUDA_SUCCESS && context != NULL) OK(cu.CtxPopCurrent(NULL));
  OK(cu.DeviceGet(&device, 0));
  OK(cu.DevicePrimaryCtxRetain(&context, device));
  OK(cu.CtxSetCurrent(context));
  return context;
}

CUdevice second_device(void) {
  int count = 0;
  CUdevice device = 0;
  OK(cu.DeviceGetCount(&count));
  if (count < 2) suite_skip("one device");
  OK(cu.DeviceGet(&device, 1));
  return device;
}

CUcontext second_context(void) {
  CUcontext context = NULL;
  OK(cu.DevicePrimaryCtxRetain(&context, second_device()));
  return context;
}

int attribute(CUdevice_attribute which) {
  int value = -1;
  OK(cu.DeviceGetAttribute(&value, which, 0));
  return value;
}

bool suite_is_lazy(void) {
  const char *mode = getenv("FAKECUDA_EXEC");
  return fakecuda_present() && mode != NULL && strcmp(mode, "lazy") == 0;
}

bool suite_is_strict(void) {
  const char *strict = getenv("FAKECUDA_STRICT");
  return fakecuda_present() && strict != NULL && strcmp(strict, "1") == 0;
}

void must_hold(CUdeviceptr at, unsigned char value, size_t bytes) {
  unsigned char *copy = malloc(bytes);
  CHECK(copy != NULL);
  memset(copy, value ^ 0xff, bytes);
  OK(cu.MemcpyDtoH(copy, at, bytes));
  for (size_t byte = 0; byte < bytes; byte++)
    if (copy[byte] != value)
      suite_fail(__FILE__, __LINE__, "byte %zu of %zu at 0x%llx is 0x%02x, not 0x%02x", byte, bytes,
                 (unsigned long long)at, copy[byte], value);
  free(copy);
}

void sleep_ms(unsigned int milliseconds) {
  struct timespec left = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static void CUDA_CB wait_at_gate(void *argument) {
  gate_t *gate = argument;
  atomic_store(&gate->started, true);
  while (!atomic_load(&gate->open)) sleep_ms(1);
  atomic_store(&gate->passed, true);
}

void gate_close(gate_t *gate, CUstream stream) {
  atomic_store(&gate->open, false);
  atomic_store(&gate->started, false);
  atomic_store(&gate->passed, false);
  OK(cu.LaunchHostFunc(stream, wait_at_gate, gate));
}

void gate_reach(gate_t *gate, CUstream stream) {
  while (!atomic_load(&gate->started)) {
    /* Asking is what makes a late queue move. */
    GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
    sleep_ms(1);
  }
}

void gate_open(gate_t *gate) { atomic_store(&gate->open, true); }

typedef struct {
  void (*function)(void *);
  void *argument;
} call_t;

static void *call(void *argument) {
  call_t *call = argument;
  call->function(call->argument);
  return NULL;
}

void on_a_thread(void (*function)(void *), void *argument) {
  pthread_t thread;
  call_t what = {function, argument};
  CHECK(pthread_create(&thread, NULL, call, &what) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static int ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int in_a_child(void (*function)(void *), void *argument) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(SECONDS_FOR_A_RULE / 2);
    function(argument);
    _exit(0);
  }
  return ended(child);
}

void with_another_process(void (*ours)(int socket), void (*theirs)(int socket)) {
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(sockets[0]);
    alarm(SECONDS_FOR_A_RULE / 2);
    theirs(sockets[1]);
    _exit(0);
  }
  close(sockets[1]);
  ours(sockets[0]);
  close(sockets[0]);
  suite_follow(ended(child));
}

void send_bytes(int socket, const void *bytes, size_t count) {
  CHECK(send(socket, bytes, count, MSG_NOSIGNAL) == (ssize_t)count);
}

void receive_bytes(int socket, void *bytes, size_t count) {
  ssize_t got = recv(socket, bytes, count, MSG_WAITALL);
  /* The other process has ended, and said why. */
  if (got == 0) _exit(0);
  CHECK(got == (ssize_t)count);
}

void meet(int socket) {
  char byte = 1;
  send_bytes(socket, &byte, 1);
  receive_bytes(socket, &byte, 1);
}

enum { ONE_FILE = CMSG_SPACE(sizeof(int)) };

void send_file(int socket, int file) {
  char byte = 1;
  _Alignas(struct cmsghdr) char control[ONE_FILE] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                           .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  memcpy(CMSG_DATA(header), &file, sizeof file);
  CHECK(sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

int receive_file(int socket) {
  int file = -1;
  char byte = 0;
  _Alignas(struct cmsghdr) char control[ONE_FILE] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                           .msg_controllen = sizeof control};
  ssize_t got = recvmsg(socket, &message, 0);
  if (got == 0) _exit(0);
  CHECK(got == 1);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
  memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}
