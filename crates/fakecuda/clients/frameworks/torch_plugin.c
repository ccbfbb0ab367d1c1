/* An allocator for PyTorch's CUDAPluggableAllocator, on the runtime of the process. */
#include <stddef.h>
#include <sys/types.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

static int counts[2];

void *plugin_alloc(ssize_t bytes, int device, void *stream) {
  void *pointer = NULL;
  (void)device, (void)stream;
  if (bytes == 0 || cudaMalloc(&pointer, (size_t)bytes) != 0) return NULL;
  counts[0]++;
  return pointer;
}

void plugin_free(void *pointer, ssize_t bytes, int device, void *stream) {
  (void)bytes, (void)device, (void)stream;
  if (pointer != NULL && cudaFree(pointer) == 0) counts[1]++;
}

/* How many blocks were given (0) and taken back (1). */
int plugin_count(int which) { return counts[which]; }
