/* Host memory that the device can reach: pinned, registered, managed. */
#include "suite.h"

#include <sys/mman.h>

/* "The device pointer that may be used to access this host memory from those contexts is always equal
 * to the returned host pointer *pp." */
RULE(pinned_memory_has_one_address) {
  unsigned char *block = must_alloc_host(10000);
  CUdeviceptr mapped = 0;
  memset(block, 3, 10000);
  OK(cu.MemHostGetDevicePointer(&mapped, block, 0));
  SAME(mapped, (uintptr_t)block);
  must_hold(mapped, 3, 10000);
  OK(cu.MemsetD8(mapped, 4, 10000));
  OK(cu.CtxSynchronize());
  CHECK(block[0] == 4 && block[9999] == 4);
  OK(cu.MemFreeHost(block));
}

/* Inside a block, too. */
RULE(device_pointers_are_found_inside) {
  char *block = must_alloc_host(10000);
  CUdeviceptr mapped = 0;
  OK(cu.MemHostGetDevicePointer(&mapped, block + 777, 0));
  SAME(mapped, (uintptr_t)block + 777);
  OK(cu.MemFreeHost(block));
}

/* The flags are those of cuMemHostAlloc; "The flags CU_MEMHOSTALLOC_PORTABLE and DEVICEMAP" hold for
 * all contexts under unified addressing. */
RULE(pinned_memory_has_its_flags) {
  void *block = NULL;
  unsigned int flags = 0;
  OK(cu.MemHostAlloc(&block, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED));
  OK(cu.MemHostGetFlags(&flags, block));
  CHECK(flags & CU_MEMHOSTALLOC_PORTABLE);
  CHECK(flags & CU_MEMHOSTALLOC_WRITECOMBINED);
  OK(cu.MemFreeHost(block));
  OK(cu.MemHostAlloc(&block, 4096, 0));
  OK(cu.MemHostGetFlags(&flags, block));
  CHECK(!(flags & CU_MEMHOSTALLOC_WRITECOMBINED));
  OK(cu.MemFreeHost(block));
  GIVES(cu.MemHostAlloc(&block, 4096, 0x8000), CUDA_ERROR_INVALID_VALUE);
}

/* Only what cuMemAllocHost or cuMemHostAlloc gave is freed by cuMemFreeHost, and once. */
RULE(only_pinned_memory_is_freed) {
  int on_stack = 0;
  unsigned int flags = 0;
  void *block = must_alloc_host(4096);
  GIVES(cu.MemFreeHost(&on_stack), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFreeHost(block));
  GIVES(cu.MemFreeHost(block), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemHostGetFlags(&flags, &on_stack), CUDA_ERROR_INVALID_VALUE);
}

/* Pinned memory takes nothing of the device. */
RULE(pinned_memory_is_not_the_device_s) {
  size_t before = 0, during = 0, total = 0;
  OK(cu.MemGetInfo(&before, &total));
  void *block = must_alloc_host(64 * MIB);
  OK(cu.MemGetInfo(&during, &total));
  CHECK(during + 32 * MIB > before);
  OK(cu.MemFreeHost(block));
}

/* Memory of any origin can be registered, used by copies, and unregistered. */
RULE(registered_memory_is_reachable) {
  enum { BYTES = 3 * 65536 };
  unsigned char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  memset(memory, 9, BYTES);
  CUdeviceptr mapped = 0, block = must_alloc(BYTES);
  OK(cu.MemHostRegister(memory, BYTES, CU_MEMHOSTREGISTER_PORTABLE));
  OK(cu.MemHostGetDevicePointer(&mapped, memory, 0));
  OK(cu.MemcpyDtoD(block, mapped, BYTES));
  must_hold(block, 9, BYTES);
  OK(cu.MemsetD8(block, 8, BYTES));
  OK(cu.MemcpyDtoD(mapped, block, BYTES));
  OK(cu.CtxSynchronize());
  CHECK(memory[0] == 8 && memory[BYTES - 1] == 8);
  OK(cu.MemHostUnregister(memory));
  /* It is the program's again, contents and all. */
  CHECK(memory[1] == 8);
  OK(cu.MemFree(block));
  munmap(memory, BYTES);
}

/* CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED. */
RULE(memory_is_registered_once) {
  enum { BYTES = 65536 };
  char *memory = aligned_alloc(4096, BYTES);
  CHECK(memory != NULL);
  GIVES(cu.MemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  OK(cu.MemHostRegister(memory, BYTES, 0));
  GIVES(cu.MemHostRegister(memory, BYTES, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  /* "The base address must be the same one specified to cuMemHostRegister()." */
  REFUSED(cu.MemHostUnregister(memory + 4096));
  OK(cu.MemHostUnregister(memory));
  GIVES(cu.MemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  free(memory);
}

RULE(nothing_is_not_registered) {
  char *memory = aligned_alloc(4096, 4096);
  GIVES(cu.MemHostRegister(NULL, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemHostRegister(memory, 0, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemHostRegister(memory, 4096, 0x8000), CUDA_ERROR_INVALID_VALUE);
  free(memory);
}

/* ---- Managed memory ---------------------------------------------------------------------------- */

static CUdeviceptr must_alloc_managed(size_t bytes) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) suite_skip("no managed memory");
  CUdeviceptr block = 0;
  OK(cu.MemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL));
  return block;
}

/* One pointer for host and device. */
RULE(managed_memory_is_both_sides) {
  CUdeviceptr block = must_alloc_managed(10000);
  volatile unsigned char *host = (volatile unsigned char *)(uintptr_t)block;
  for (int at = 0; at < 10000; at++) host[at] = 6;
  must_hold(block, 6, 10000);
  OK(cu.MemsetD8(block, 7, 10000));
  OK(cu.CtxSynchronize());
  CHECK(host[0] == 7 && host[9999] == 7);
  OK(cu.MemFree(block));
  GIVES(cu.MemFree(block), CUDA_ERROR_INVALID_VALUE);
}

/* "flags must be CU_MEM_ATTACH_GLOBAL or CU_MEM_ATTACH_HOST"; "If bytesize is 0, cuMemAllocManaged
 * returns CUDA_ERROR_INVALID_VALUE." */
RULE(managed_memory_checks_its_arguments) {
  CUdeviceptr block = must_alloc_managed(1);
  OK(cu.MemFree(block));
  GIVES(cu.MemAllocManaged(&block, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAllocManaged(&block, 4096, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAllocManaged(&block, 4096, CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST),
        CUDA_ERROR_INVALID_VALUE);
}

/* Managed memory's range is its block. */
RULE(managed_memory_has_a_range) {
  CUdeviceptr block = must_alloc_managed(10000), base = 0;
  size_t bytes = 0;
  OK(cu.MemGetAddressRange(&base, &bytes, block + 5000));
  SAME(base, block);
  CHECK(bytes >= 10000);
  OK(cu.MemFree(block));
}
