/* Two blocks shared with another process by legacy IPC handles.
 *
 * Arguments: "naive": the importer takes what it gets for the block. "offset": both ask for the range first and
 * carry the offset over, as communication libraries do; "base": and export what they were told is the base. "either": a naive export may be refused as not supported,
 * and is right otherwise. "alone": what the importer gets is the block alone, without its neighbours. */
#include "program.h"

#include <sys/socket.h>

enum { BLOCKS = 6, BYTES = 20000 };

typedef struct {
  CUipcMemHandle handle;
  size_t offset;
  int shared;
} message_t;

static int importer(int socket) {
  start();
  for (int at = 0; at < BLOCKS; at++) {
    message_t message;
    CUdeviceptr base = 0, start_of_range = 0;
    size_t bytes = 0;
    CHECK(read(socket, &message, sizeof message) == sizeof message);
    if (!message.shared) continue;
    OK(cuIpcOpenMemHandle(&base, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    HOLDS(base + message.offset, (unsigned char)(at + 1), BYTES);
    fill_now(base + message.offset, (unsigned char)(at + 101), BYTES);
    OK(cuMemGetAddressRange(&start_of_range, &bytes, base));
    SAME(start_of_range, base);
    OK(cuIpcCloseMemHandle(base));
    CHECK(write(socket, &message, 1) == 1);
  }
  return 0;
}

int main(int count, char **arguments) {
  bool offset = has_argument(count, arguments, "offset"), either = has_argument(count, arguments, "either");
  bool alone = has_argument(count, arguments, "alone"), by_base = has_argument(count, arguments, "base");
  int sockets[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  pid_t child = fork();
  if (child == 0) _exit(importer(sockets[1]));
  close(sockets[1]);
  start();
  /* What lies before the blocks is not there any more when they are shared. */
  CUdeviceptr blocks[BLOCKS], before = must_alloc(BYTES);
  for (int at = 0; at < BLOCKS; at++) {
    blocks[at] = must_alloc(BYTES);
    fill_now(blocks[at], (unsigned char)(at + 1), BYTES);
  }
  OK(cuMemFree(before));
  for (int at = 0; at < BLOCKS && alone; at++) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    OK(cuMemGetAddressRange(&base, &bytes, blocks[at]));
    SAME(base, blocks[at]);
    for (int other = 0; other < BLOCKS; other++)
      CHECK(other == at || blocks[other] < base || blocks[other] >= base + bytes);
  }
  for (int at = 0; at < BLOCKS; at++) {
    message_t message = {.offset = 0, .shared = 1};
    CUdeviceptr base = blocks[at];
    if (offset) {
      OK(cuMemGetAddressRange(&base, NULL, blocks[at]));
      message.offset = blocks[at] - base;
    }
    CUresult code = cuIpcGetMemHandle(&message.handle, by_base ? base : blocks[at]);
    if (code == CUDA_ERROR_NOT_SUPPORTED && either)
      message.shared = 0;
    else
      OK(code);
    CHECK(write(sockets[0], &message, sizeof message) == sizeof message);
    if (!message.shared) continue;
    /* 0: the importer failed, and said why. */
    CHECK(read(sockets[0], &code, 1) == 1);
    HOLDS(blocks[at], (unsigned char)(at + 101), BYTES);
  }
  SAME(ended(child), 0);
  for (int at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at]));
  /* What is no block has no handle. */
  CUipcMemHandle handle;
  int on_stack = 0;
  GIVES(cuIpcGetMemHandle(&handle, (CUdeviceptr)(uintptr_t)&on_stack), CUDA_ERROR_INVALID_VALUE);
  return 0;
}
