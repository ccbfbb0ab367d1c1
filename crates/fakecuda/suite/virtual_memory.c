/* Virtual memory: reserving addresses, creating memory, mapping one to the other. */
#include "suite.h"

static CUmemAllocationProp device_memory(int handle_types) {
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = 0;
  prop.requestedHandleTypes = (CUmemAllocationHandleType)handle_types;
  return prop;
}

/* The least size, or the rule is skipped where the device has no virtual memory. */
static size_t granularity(void) {
  need_virtual_memory();
  CUmemAllocationProp prop = device_memory(0);
  size_t bytes = 0;
  OK(cu.MemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

static CUdeviceptr must_reserve(size_t bytes) {
  CUdeviceptr at = 0;
  OK(cu.MemAddressReserve(&at, bytes, 0, 0, 0));
  CHECK(at != 0);
  return at;
}

static CUmemGenericAllocationHandle must_create(size_t bytes) {
  CUmemAllocationProp prop = device_memory(0);
  CUmemGenericAllocationHandle handle = 0;
  OK(cu.MemCreate(&handle, bytes, &prop, 0));
  return handle;
}

static CUmemAccessDesc access_of(int device, CUmemAccess_flags flags) {
  CUmemAccessDesc desc;
  memset(&desc, 0, sizeof desc);
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location.id = device;
  desc.flags = flags;
  return desc;
}

static void must_open(CUdeviceptr at, size_t bytes) {
  CUmemAccessDesc desc = access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cu.MemSetAccess(at, bytes, &desc, 1));
}

static unsigned long long access_at(CUdeviceptr at) {
  CUmemLocation location;
  memset(&location, 0, sizeof location);
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  unsigned long long flags = 77;
  OK(cu.MemGetAccess(&flags, &location, at));
  return flags;
}

/* ---- Sizes ------------------------------------------------------------------------------------------- */

/* The recommended granularity is a multiple of the least, and both are powers of two. */
RULE(granularity_is_whole_pages) {
  size_t least = granularity(), best = 0;
  CUmemAllocationProp prop = device_memory(0);
  OK(cu.MemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  CHECK(least >= 4096 && (least & (least - 1)) == 0);
  CHECK(best >= least && best % least == 0);
  prop.location.id = 99;
  REFUSED(cu.MemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

/* "The size of this allocation must be a multiple of the value given via
 * cuMemGetAllocationGranularity"; "flags must be zero". */
RULE(created_sizes_are_checked) {
  size_t least = granularity();
  CUmemAllocationProp prop = device_memory(0);
  CUmemGenericAllocationHandle handle = 0;
  GIVES(cu.MemCreate(&handle, least + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemCreate(&handle, least / 2, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemCreate(&handle, least, &prop, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemCreate(&handle, least, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  prop.location.id = 99;
  GIVES_EITHER(cu.MemCreate(&handle, least, &prop, 0), CUDA_ERROR_INVALID_DEVICE,
               CUDA_ERROR_INVALID_VALUE);
}

/* More than the device has is out of memory. */
RULE(creating_too_much_is_out_of_memory) {
  size_t least = granularity(), total = 0, free_bytes = 0;
  CUmemAllocationProp prop = device_memory(0);
  CUmemGenericAllocationHandle handle = 0;
  OK(cu.MemGetInfo(&free_bytes, &total));
  GIVES(cu.MemCreate(&handle, (total / least + 1) * least, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

/* "The size and address parameters must be a multiple of the host page size and the alignment must be
 * a power of two or zero for default alignment." */
RULE(reserved_sizes_are_checked) {
  size_t least = granularity();
  CUdeviceptr at = 0;
  GIVES(cu.MemAddressReserve(&at, least + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAddressReserve(&at, least, 3 * 4096, 0, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAddressReserve(&at, least, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAddressReserve(NULL, least, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

RULE(reservations_are_aligned) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(3 * least), wide = 0;
  SAME(at % least, 0);
  OK(cu.MemAddressReserve(&wide, least, 16 * least, 0, 0));
  SAME(wide % (16 * least), 0);
  OK(cu.MemAddressFree(wide, least));
  OK(cu.MemAddressFree(at, 3 * least));
}

/* Addresses cost no memory: far more can be reserved than a device has. */
RULE(reserving_takes_no_memory) {
  size_t least = granularity(), before = 0, during = 0, total = 0;
  OK(cu.MemGetInfo(&before, &total));
  size_t bytes = (4 * total / least) * least;
  CUdeviceptr at = must_reserve(bytes);
  OK(cu.MemGetInfo(&during, &total));
  CHECK(during + 32 * MIB > before);
  OK(cu.MemAddressFree(at, bytes));
}

/* "The size must match what was given to memAddressReserve and the ptr given must match what was
 * returned from memAddressReserve." */
RULE(reservations_are_freed_whole) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(4 * least);
  GIVES(cu.MemAddressFree(at, 2 * least), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAddressFree(at + least, 3 * least), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemAddressFree(at, 4 * least));
  GIVES(cu.MemAddressFree(at, 4 * least), CUDA_ERROR_INVALID_VALUE);
}

/* Reserved addresses are no block of cuMemAlloc's, and a block is no reservation. */
RULE(blocks_and_reservations_are_apart) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(least), block = must_alloc(least);
  GIVES(cu.MemFree(at), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemAddressFree(block, least), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemUnmap(block, least), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
  OK(cu.MemAddressFree(at, least));
}

/* ---- Mapping ----------------------------------------------------------------------------------------- */

/* The whole way: reserve, create, map, give access, use, unmap, release, free. */
RULE(mapped_memory_is_memory) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least);
  CUmemGenericAllocationHandle first = must_create(least), second = must_create(least);
  OK(cu.MemMap(at, least, 0, first, 0));
  OK(cu.MemMap(at + least, least, 0, second, 0));
  must_open(at, 2 * least);
  /* One range of addresses over two pieces of memory. */
  OK(cu.MemsetD8(at, 5, 2 * least));
  must_hold(at + least - 1000, 5, 2000);
  OK(cu.MemUnmap(at, least));
  OK(cu.MemUnmap(at + least, least));
  OK(cu.MemRelease(first));
  OK(cu.MemRelease(second));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* "Calling cuMemMap does not make the address accessible." */
RULE(mapping_gives_no_access) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(least);
  CUmemGenericAllocationHandle handle = must_create(least);
  OK(cu.MemMap(at, least, 0, handle, 0));
  SAME(access_at(at), CU_MEM_ACCESS_FLAGS_PROT_NONE);
  if (fakecuda_present()) {
    /* On a board it may end the context. */
    char host[64] = {0};
    GIVES(cu.MemcpyHtoD(at, host, 64), CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.MemsetD8(at, 0, 64), CUDA_ERROR_INVALID_VALUE);
  }
  must_open(at, least);
  SAME(access_at(at), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  SAME(access_at(at + least - 1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cu.MemsetD8(at, 0, 64));
  OK(cu.MemUnmap(at, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, least));
}

/* "The range must be a fully mapped address range containing all allocations created by cuMemMap." */
RULE(access_is_for_mapped_ranges) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(3 * least);
  CUmemGenericAllocationHandle handle = must_create(2 * least);
  CUmemAccessDesc desc = access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  GIVES(cu.MemSetAccess(at, least, &desc, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemMap(at, 2 * least, 0, handle, 0));
  GIVES(cu.MemSetAccess(at, 3 * least, &desc, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemSetAccess(at, 2 * least, NULL, 1), CUDA_ERROR_INVALID_VALUE);
  desc.location.id = 99;
  GIVES_EITHER(cu.MemSetAccess(at, 2 * least, &desc, 1), CUDA_ERROR_INVALID_DEVICE,
               CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemUnmap(at, 2 * least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, 3 * least));
}

/* "This range must be an address reservation", "offset + size must be" within the memory, all of them
 * "a multiple of the value given via cuMemGetAllocationGranularity", offset and flags zero. */
RULE(mappings_are_checked) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(4 * least);
  CUmemGenericAllocationHandle handle = must_create(2 * least);
  GIVES(cu.MemMap(at, 3 * least, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemMap(at, 2 * least, least, handle, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemMap(at + 4096, 2 * least, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemMap(at, 2 * least, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemMap(at + 3 * least, 2 * least, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemAddressFree(at, 4 * least));
  GIVES(cu.MemMap(at, 2 * least, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemRelease(handle));
}

/* "cuMemMap can only create mappings on VA range reservations that are not currently mapped." */
RULE(addresses_are_mapped_once) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least);
  CUmemGenericAllocationHandle handle = must_create(least), other = must_create(least);
  OK(cu.MemMap(at, least, 0, handle, 0));
  REFUSED(cu.MemMap(at, least, 0, other, 0));
  OK(cu.MemUnmap(at, least));
  OK(cu.MemMap(at, least, 0, other, 0));
  OK(cu.MemUnmap(at, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemRelease(other));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* The same memory can be at two addresses: what is written at one is read at the other. */
RULE(one_memory_at_two_addresses) {
  size_t least = granularity();
  CUdeviceptr one = must_reserve(least), two = must_reserve(least);
  CUmemGenericAllocationHandle handle = must_create(least);
  OK(cu.MemMap(one, least, 0, handle, 0));
  OK(cu.MemMap(two, least, 0, handle, 0));
  must_open(one, least);
  must_open(two, least);
  OK(cu.MemsetD8(one, 0, least));
  OK(cu.MemsetD8(two + 100, 9, 1000));
  OK(cu.CtxSynchronize());
  must_hold(one + 100, 9, 1000);
  must_hold(one, 0, 100);
  OK(cu.MemUnmap(one, least));
  must_hold(two + 100, 9, 1000);
  OK(cu.MemUnmap(two, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(one, least));
  OK(cu.MemAddressFree(two, least));
}

/* "When cuMemUnmap returns successfully the address range is converted to an address reservation and
 * can be used for future calls to cuMemMap"; the memory keeps its contents meanwhile. */
RULE(memory_moves_with_its_contents) {
  size_t least = granularity();
  CUdeviceptr one = must_reserve(least), two = must_reserve(least);
  CUmemGenericAllocationHandle handle = must_create(least);
  OK(cu.MemMap(one, least, 0, handle, 0));
  must_open(one, least);
  OK(cu.MemsetD8(one, 4, least));
  OK(cu.CtxSynchronize());
  OK(cu.MemUnmap(one, least));
  OK(cu.MemMap(two, least, 0, handle, 0));
  /* "All mappings start with no accessibility setup." */
  SAME(access_at(two), CU_MEM_ACCESS_FLAGS_PROT_NONE);
  must_open(two, least);
  must_hold(two, 4, least);
  OK(cu.MemUnmap(two, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(one, least));
  OK(cu.MemAddressFree(two, least));
}

/* "cuMemUnmap cannot unmap a sub-range of an address range mapped by cuMemCreate / cuMemMap." */
RULE(parts_are_not_unmapped) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(3 * least);
  CUmemGenericAllocationHandle handle = must_create(2 * least);
  OK(cu.MemMap(at, 2 * least, 0, handle, 0));
  GIVES(cu.MemUnmap(at, least), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemUnmap(at + least, least), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemUnmap(at + 2 * least, least), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemUnmap(at, 2 * least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, 3 * least));
}

/* Several whole mappings side by side are unmapped by one call. */
RULE(whole_neighbours_are_unmapped_at_once) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least);
  CUmemGenericAllocationHandle first = must_create(least), second = must_create(least);
  OK(cu.MemMap(at, least, 0, first, 0));
  OK(cu.MemMap(at + least, least, 0, second, 0));
  OK(cu.MemUnmap(at, 2 * least));
  OK(cu.MemRelease(first));
  OK(cu.MemRelease(second));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* Addresses under which memory still lies are not given back. */
RULE(mapped_addresses_are_not_freed) {
  ONLY_ON_THE_DOUBLE();
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least);
  CUmemGenericAllocationHandle handle = must_create(least);
  OK(cu.MemMap(at, least, 0, handle, 0));
  GIVES(cu.MemAddressFree(at, 2 * least), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemUnmap(at, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* ---- Lifetimes ------------------------------------------------------------------------------------------ */

/* "The generic memory handle can be freed when there are still outstanding mappings": the memory stays
 * until the last mapping goes. */
RULE(mappings_keep_released_memory) {
  size_t least = granularity(), before = 0, during = 0, after = 0, total = 0;
  size_t bytes = 64 * MIB / least * least;
  OK(cu.MemGetInfo(&before, &total));
  CUdeviceptr at = must_reserve(bytes);
  CUmemGenericAllocationHandle handle = must_create(bytes);
  OK(cu.MemMap(at, bytes, 0, handle, 0));
  must_open(at, bytes);
  OK(cu.MemsetD8(at, 3, MIB));
  OK(cu.MemRelease(handle));
  must_hold(at, 3, MIB);
  OK(cu.MemGetInfo(&during, &total));
  CHECK(during + 32 * MIB < before);
  OK(cu.MemUnmap(at, bytes));
  OK(cu.MemGetInfo(&after, &total));
  CHECK(after > during + 32 * MIB);
  OK(cu.MemAddressFree(at, bytes));
}

/* Memory that is not mapped anywhere counts, too. */
RULE(created_memory_counts) {
  size_t least = granularity(), before = 0, during = 0, after = 0, total = 0;
  size_t bytes = 64 * MIB / least * least;
  OK(cu.MemGetInfo(&before, &total));
  CUmemGenericAllocationHandle handle = must_create(bytes);
  OK(cu.MemGetInfo(&during, &total));
  CHECK(during + 32 * MIB < before);
  OK(cu.MemRelease(handle));
  OK(cu.MemGetInfo(&after, &total));
  CHECK(after > during + 32 * MIB);
}

/* "The handle is guaranteed to be the same handle value used to map the memory", for any address in the
 * range; "must be released with corresponding number of calls to cuMemRelease". */
RULE(handles_are_found_by_address) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least);
  CUmemGenericAllocationHandle handle = must_create(2 * least), found = 0;
  CUmemAllocationProp prop;
  REFUSED(cu.MemRetainAllocationHandle(&found, (void *)(uintptr_t)at));
  OK(cu.MemMap(at, 2 * least, 0, handle, 0));
  OK(cu.MemRetainAllocationHandle(&found, (void *)(uintptr_t)(at + least + 1)));
  SAME(found, handle);
  OK(cu.MemRelease(handle));
  OK(cu.MemGetAllocationPropertiesFromHandle(&prop, found));
  SAME(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  SAME(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  SAME(prop.location.id, 0);
  OK(cu.MemUnmap(at, 2 * least));
  OK(cu.MemRelease(found));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* What cuPointerGetAttribute says of mapped memory: a range of the reservation, no old sharing. */
RULE(mapped_memory_has_attributes) {
  size_t least = granularity();
  CUdeviceptr at = must_reserve(2 * least), start = 0;
  CUmemGenericAllocationHandle handle = must_create(least);
  unsigned int type = 0;
  int shared = 7, mapped = 0;
  OK(cu.MemMap(at, least, 0, handle, 0));
  must_open(at, least);
  OK(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 5));
  SAME(type, CU_MEMORYTYPE_DEVICE);
  OK(cu.PointerGetAttribute(&shared, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
  SAME(shared & 0xff, 0);
  OK(cu.PointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, at + 5));
  SAME(mapped & 0xff, 1);
  OK(cu.PointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 5));
  SAME(start, at);
  OK(cu.MemUnmap(at, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, 2 * least));
}

/* Access of the other device is granted to it alone, and taken back. */
RULE(access_is_a_device_s_own) {
  size_t least = granularity();
  CUcontext there = second_context();
  int can = 0;
  OK(cu.DeviceCanAccessPeer(&can, 1, 0));
  if (!can) suite_skip("no peer access");
  CUdeviceptr at = must_reserve(least);
  CUmemGenericAllocationHandle handle = must_create(least);
  OK(cu.MemMap(at, least, 0, handle, 0));
  CUmemAccessDesc both[2] = {access_of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                             access_of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
  OK(cu.MemSetAccess(at, least, both, 2));
  OK(cu.MemsetD8(at, 2, least));
  OK(cu.CtxSynchronize());
  OK(cu.CtxPushCurrent(there));
  CUdeviceptr block = must_alloc(least);
  OK(cu.MemcpyDtoD(block, at, least));
  must_hold(block, 2, least);
  OK(cu.MemFree(block));
  OK(cu.CtxPopCurrent(NULL));
  CUmemLocation location;
  memset(&location, 0, sizeof location);
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = 1;
  unsigned long long flags = 0;
  OK(cu.MemGetAccess(&flags, &location, at));
  SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  OK(cu.MemSetAccess(at, least, &both[1], 1));
  OK(cu.MemGetAccess(&flags, &location, at));
  SAME(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
  SAME(access_at(at), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cu.MemUnmap(at, least));
  OK(cu.MemRelease(handle));
  OK(cu.MemAddressFree(at, least));
}
