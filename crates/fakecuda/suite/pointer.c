/* What the driver says of a pointer. */
#include "suite.h"

static unsigned int memory_type(CUdeviceptr at) {
  unsigned int type = 0;
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
  return type;
}

static int flag(CUpointer_attribute which, CUdeviceptr at) {
  /* The documentation says "a boolean"; the driver writes one byte or four. */
  int value = 0;
  OK(cu.PointerGetAttribute(&value, which, at));
  return (value & 0xff) != 0;
}

static CUdeviceptr device_pointer(CUdeviceptr at) {
  CUdeviceptr value = 0;
  OK(cu.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at));
  return value;
}

static void *host_pointer(CUdeviceptr at) {
  void *value = NULL;
  OK(cu.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, at));
  return value;
}

static int ordinal(CUdeviceptr at) {
  int value = -7;
  OK(cu.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
  return value;
}

static CUcontext context_of(CUdeviceptr at) {
  CUcontext value = NULL;
  OK(cu.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_CONTEXT, at));
  return value;
}

static unsigned long long buffer_id(CUdeviceptr at) {
  unsigned long long value = 0;
  OK(cu.PointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
  return value;
}

/* Device memory, at its start and inside. */
RULE(device_memory_is_known) {
  CUcontext current = NULL;
  CUdeviceptr block = must_alloc(100000);
  OK(cu.CtxGetCurrent(&current));
  static const size_t offsets[] = {0, 1, 99999};
  for (size_t at = 0; at < sizeof offsets / sizeof offsets[0]; at++) {
    CUdeviceptr inside = block + offsets[at];
    SAME(memory_type(inside), CU_MEMORYTYPE_DEVICE);
    SAME(device_pointer(inside), inside);
    SAME(ordinal(inside), 0);
    CHECK(context_of(inside) == current);
    SAME(flag(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside), 0);
    SAME(flag(CU_POINTER_ATTRIBUTE_MAPPED, inside), 1);
    /* "If there exists no host pointer value through which the host program may directly access ptr
     * then CUDA_ERROR_INVALID_VALUE is returned." */
    void *host = NULL;
    GIVES(cu.PointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, inside),
          CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr start = 0;
    size_t bytes = 0;
    OK(cu.PointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
    OK(cu.PointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
    SAME(start, block);
    SAME(bytes, 100000);
    SAME(buffer_id(inside), buffer_id(block));
  }
  OK(cu.MemFree(block));
}

/* A block of the other device says so, whichever device is current. */
RULE(memory_of_the_other_device_is_its_own) {
  CUcontext other = second_context();
  OK(cu.CtxPushCurrent(other));
  CUdeviceptr block = must_alloc(4096);
  OK(cu.CtxPopCurrent(NULL));
  SAME(ordinal(block), 1);
  SAME(memory_type(block), CU_MEMORYTYPE_DEVICE);
  CHECK(context_of(block) == other);
  OK(cu.MemFree(block));
}

/* cuMemAlloc's memory may be shared by cuIpcGetMemHandle. */
RULE(device_memory_can_be_shared_the_old_way) {
  CUdeviceptr block = must_alloc(4096);
  SAME(flag(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block), 1);
  OK(cu.MemFree(block));
}

/* Pinned memory is the host's, at one address for both. */
RULE(pinned_memory_is_known) {
  char *block = must_alloc_host(10000);
  CUdeviceptr inside = (CUdeviceptr)(uintptr_t)(block + 5000);
  SAME(memory_type(inside), CU_MEMORYTYPE_HOST);
  SAME(device_pointer(inside), inside);
  CHECK(host_pointer(inside) == block + 5000);
  SAME(flag(CU_POINTER_ATTRIBUTE_IS_MANAGED, inside), 0);
  CHECK(buffer_id(inside) != 0);
  OK(cu.MemFreeHost(block));
}

/* Registered memory has a host pointer and a device pointer, each found from either. */
RULE(registered_memory_is_known) {
  enum { BYTES = 65536 };
  char *memory = aligned_alloc(4096, BYTES);
  CHECK(memory != NULL);
  OK(cu.MemHostRegister(memory, BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
  CUdeviceptr inside = (CUdeviceptr)(uintptr_t)(memory + 100), mapped = 0;
  SAME(memory_type(inside), CU_MEMORYTYPE_HOST);
  OK(cu.MemHostGetDevicePointer(&mapped, memory, 0));
  SAME(device_pointer(inside), mapped + 100);
  CHECK(host_pointer(mapped + 100) == memory + 100);
  OK(cu.MemHostUnregister(memory));
  unsigned int type = 0;
  GIVES(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside),
        CUDA_ERROR_INVALID_VALUE);
  free(memory);
}

/* Managed memory is managed. */
RULE(managed_memory_is_known) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)) suite_skip("no managed memory");
  CUdeviceptr block = 0;
  OK(cu.MemAllocManaged(&block, 10000, CU_MEM_ATTACH_GLOBAL));
  SAME(flag(CU_POINTER_ATTRIBUTE_IS_MANAGED, block + 9999), 1);
  SAME(device_pointer(block + 9999), block + 9999);
  CHECK(host_pointer(block) == (void *)(uintptr_t)block);
  OK(cu.MemFree(block));
}

/* "If ptr was not allocated by, mapped by, or registered with a CUcontext which uses unified virtual
 * addressing then CUDA_ERROR_INVALID_VALUE is returned." */
RULE(unknown_pointers_are_refused) {
  int on_stack = 0;
  unsigned int type = 0;
  CUcontext context = NULL;
  CUdeviceptr unknown = (CUdeviceptr)(uintptr_t)&on_stack;
  int is_managed = 0;
  GIVES(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown),
        CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.PointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, unknown),
        CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.PointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, unknown),
        CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr block = must_alloc(4096);
  OK(cu.MemFree(block));
  GIVES(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block),
        CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.PointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block),
        CUDA_ERROR_INVALID_VALUE);
}

RULE(unknown_attributes_are_refused) {
  CUdeviceptr block = must_alloc(4096);
  unsigned long long value = 0;
  GIVES(cu.PointerGetAttribute(&value, (CUpointer_attribute)9999, block), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
}

/* "Every memory allocation from any of the CUDA memory allocation APIs will have a unique ID over a
 * process lifetime. Subsequent allocations do not reuse IDs from previous freed allocations." */
RULE(buffer_ids_are_never_used_again) {
  enum { ROUNDS = 16 };
  unsigned long long ids[ROUNDS];
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr block = must_alloc(4096);
    ids[round] = buffer_id(block);
    for (int other = 0; other < round; other++) CHECK(ids[round] != ids[other]);
    OK(cu.MemFree(block));
  }
}

/* "Unlike cuPointerGetAttribute, this function will not return an error when the ptr encountered is
 * not a valid CUDA pointer. Instead, the attributes are assigned default NULL values and CUDA_SUCCESS
 * is returned." */
RULE(many_attributes_at_once) {
  CUcontext current = NULL, context = NULL;
  unsigned int type = 77;
  CUdeviceptr address = 77;
  void *host = &current;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *places[] = {&context, &type, &address, &host};
  CUdeviceptr block = must_alloc(4096);
  OK(cu.CtxGetCurrent(&current));
  OK(cu.PointerGetAttributes(4, which, places, block + 8));
  CHECK(context == current && host == NULL);
  SAME(type, CU_MEMORYTYPE_DEVICE);
  SAME(address, block + 8);
  OK(cu.MemFree(block));
  int on_stack = 0;
  OK(cu.PointerGetAttributes(4, which, places, (CUdeviceptr)(uintptr_t)&on_stack));
  CHECK(context == NULL && host == NULL);
  SAME(type, 0);
  SAME(address, 0);
}

/* A boolean attribute that can be set and is then read back. */
RULE(sync_memops_can_be_set) {
  CUdeviceptr block = must_alloc(4096);
  unsigned int on = 1;
  SAME(flag(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block), 0);
  OK(cu.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block));
  SAME(flag(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, block), 1);
  /* "The supported attributes are": this one. */
  GIVES_EITHER(cu.PointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block),
               CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED);
  OK(cu.MemFree(block));
}

/* Memory of a pool names its pool. */
RULE(pool_memory_names_its_pool) {
  need_pools();
  CUmemoryPool pool = NULL, found = NULL;
  CUdeviceptr block = 0;
  OK(cu.DeviceGetDefaultMemPool(&pool, 0));
  OK(cu.MemAllocAsync(&block, 4096, NULL));
  OK(cu.StreamSynchronize(NULL));
  OK(cu.PointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block));
  CHECK(found == pool);
  SAME(memory_type(block), CU_MEMORYTYPE_DEVICE);
  /* Such memory cannot be shared by cuIpcGetMemHandle. */
  SAME(flag(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block), 0);
  OK(cu.MemFreeAsync(block, NULL));
  OK(cu.StreamSynchronize(NULL));
}
