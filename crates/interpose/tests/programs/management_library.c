/* The management library, opened by a program that calls what it finds there without a look: it says of the device
 * what is in use, kept memory included, and is no part of what stands in front of the driver. */
#include "program.h"

typedef struct {
  unsigned long long total, unused, used;
} memory_t;

typedef struct {
  int (*init)(void);
  int (*by_index)(unsigned int index, void **device);
  int (*memory)(void *device, memory_t *memory);
  int (*shutdown)(void);
} library_t;

int main(void) {
  library_t nvml;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
  memory_t memory = {0, 0, 0};
  CHECK(library != NULL);
  *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
  *(void **)&nvml.by_index = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
  *(void **)&nvml.memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
  *(void **)&nvml.shutdown = dlsym(library, "nvmlShutdown");
  start();
  SAME(nvml.init(), 0);
  SAME(nvml.by_index(0, &device), 0);
  for (int round = 0; round < 3; round++) {
    CUdeviceptr block = must_alloc(50 * MIB);
    SAME(nvml.memory(device, &memory), 0);
    CHECK(memory.used >= 50 * MIB && memory.used + memory.unused <= memory.total);
    OK(cuMemFree(block));
  }
  SAME(nvml.shutdown(), 0);
  return 0;
}
