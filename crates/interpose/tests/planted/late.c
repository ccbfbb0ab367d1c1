/* late KIND: frees memory that queued work still writes to, allocates again and writes by another stream. What is
 * read back is what was written last, or somebody got memory too early. On a driver whose queues run late, the work
 * that is still queued at the free runs after that of the next owner.
 *
 * Ends with status 1, and a line, where memory does not hold what it should. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long address_t;
typedef void *handle_t;

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(handle_t *context, int device);
int cuCtxSetCurrent(handle_t context);
int cuStreamCreate(handle_t *stream, unsigned flags);
int cuStreamSynchronize(handle_t stream);
int cuMemAlloc_v2(address_t *address, size_t bytes);
int cuMemFree_v2(address_t address);
int cuMemAllocAsync(address_t *address, size_t bytes, handle_t stream);
int cuMemFreeAsync(address_t address, handle_t stream);
int cuMemsetD8Async(address_t address, unsigned char value, size_t bytes, handle_t stream);
int cuMemcpyDtoH_v2(void *host, address_t address, size_t bytes);
int cuDeviceGetDefaultMemPool(handle_t *pool, int device);
int cuMemPoolTrimTo(handle_t pool, size_t kept);

/* The second stream takes so many times what the first one has freed: more than anything else that is free. */
enum { TIMES = 6, ROUNDS = 8, MOST_BLOCKS = 8 * TIMES, LARGEST = 4 << 20 };
enum { NON_BLOCKING = 1, FIRST = 0x11, SECOND = 0x22 };

#define OK(call)                                                          \
  do {                                                                    \
    int code_ = (call);                                                   \
    if (code_ != 0) {                                                     \
      fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, code_); \
      exit(2);                                                            \
    }                                                                     \
  } while (0)

static handle_t one, other, pool;

typedef struct {
  const char *name;
  size_t bytes;
  int blocks;
  /* Memory in the order of a stream, or of none. */
  int is_ordered;
} kind_t;

static const kind_t kinds[] = {
    {"small-unordered", 256 << 10, 8, 0},
    {"large-unordered", LARGEST, 2, 0},
    {"small-ordered", 256 << 10, 8, 1},
    {"large-ordered", LARGEST, 2, 1},
};

static address_t allocate(const kind_t *kind, handle_t stream, unsigned char value) {
  address_t block = 0;
  OK(kind->is_ordered ? cuMemAllocAsync(&block, kind->bytes, stream) : cuMemAlloc_v2(&block, kind->bytes));
  OK(cuMemsetD8Async(block, value, kind->bytes, stream));
  return block;
}

static void release(const kind_t *kind, address_t block, handle_t stream) {
  OK(kind->is_ordered ? cuMemFreeAsync(block, stream) : cuMemFree_v2(block));
}

static void try_once(const kind_t *kind, int round) {
  static unsigned char host[LARGEST];
  address_t blocks[MOST_BLOCKS];
  /* One free whose work is done comes before those whose work is queued. */
  release(kind, allocate(kind, one, FIRST), one);
  OK(cuStreamSynchronize(one));
  for (int at = 0; at < kind->blocks; at++) blocks[at] = allocate(kind, one, FIRST);
  for (int at = 0; at < kind->blocks; at++) release(kind, blocks[at], one);
  int count = kind->blocks * TIMES;
  for (int at = 0; at < count; at++) {
    blocks[at] = allocate(kind, other, SECOND);
    /* At once: questions about the first stream let its work run, too, and what runs later is seen. */
    OK(cuStreamSynchronize(other));
  }
  OK(cuStreamSynchronize(one));
  for (int at = 0; at < count; at++) {
    OK(cuMemcpyDtoH_v2(host, blocks[at], kind->bytes));
    if (host[0] != SECOND || memcmp(host, host + 1, kind->bytes - 1) != 0) {
      printf("corrupt in round %d\n", round);
      exit(1);
    }
  }
  for (int at = 0; at < count; at++) release(kind, blocks[at], other);
  OK(cuStreamSynchronize(other));
  /* What is kept goes: each round begins with nothing. */
  OK(cuMemPoolTrimTo(pool, 0));
}

int main(int argc, char **argv) {
  handle_t context;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  OK(cuStreamCreate(&one, NON_BLOCKING));
  OK(cuStreamCreate(&other, NON_BLOCKING));
  for (size_t at = 0; at < sizeof kinds / sizeof kinds[0]; at++) {
    if (argc != 2 || strcmp(argv[1], kinds[at].name) != 0) continue;
    for (int round = 0; round < ROUNDS; round++) try_once(&kinds[at], round);
    puts("intact");
    return 0;
  }
  return 3;
}
