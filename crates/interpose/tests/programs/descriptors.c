/* Device memory takes no file descriptors, however much there is of it; exportable memory takes one a block, as
 * far as the process may open files. */
#include "program.h"

#include <dirent.h>
#include <sys/resource.h>

enum { BLOCKS = 300, FILES = 64 };

static int open_files(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  CHECK(folder != NULL);
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

static CUmemGenericAllocationHandle exportable(CUresult expected) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  GIVES(cuMemCreate(&handle, 2 * MIB, &props, 0), expected);
  return handle;
}

int main(void) {
  CUdeviceptr blocks[BLOCKS];
  struct rlimit limit = {FILES, FILES};
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cuMemFree(must_alloc(100)));
  int before = open_files();
  for (int round = 0; round < 3; round++) {
    for (int at = 0; at < BLOCKS; at++)
      blocks[at] = at % 2 == 0 ? must_alloc((size_t)(at + 1) * 1000) : must_alloc_async(100000, stream);
    CHECK(open_files() <= before);
    for (int at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at]));
  }
  CHECK(open_files() <= before);
  for (int at = 0; at < 8; at++) OK(cuMemRelease(exportable(CUDA_SUCCESS)));
  CHECK(open_files() <= before);
  return 0;
}
