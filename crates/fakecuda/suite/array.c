/* Arrays, and copies in batches. */
#include "suite.h"

enum { WIDTH = 24, HEIGHT = 6, DEPTH = 3, ELEMENT = 4, ROW = WIDTH * ELEMENT, SLICE = ROW * HEIGHT };

static unsigned char mark(size_t at) { return (unsigned char)(at * 13 + at / 256); }

static void fill(unsigned char *memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) memory[at] = mark(at);
}

static CUarray must_array(size_t width, size_t height) {
  CUDA_ARRAY_DESCRIPTOR wanted = {width, height, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = NULL;
  OK(cu.ArrayCreate(&array, &wanted));
  CHECK(array != NULL);
  return array;
}

RULE(arrays_keep_what_they_were_made_for) {
  CUDA_ARRAY_DESCRIPTOR found = {0};
  CUDA_ARRAY3D_DESCRIPTOR found_3d = {0};
  CUarray array = must_array(WIDTH, HEIGHT);
  OK(cu.ArrayGetDescriptor(&found, array));
  CHECK(found.Width == WIDTH && found.Height == HEIGHT);
  CHECK(found.Format == CU_AD_FORMAT_FLOAT && found.NumChannels == 1);
  OK(cu.ArrayDestroy(array));
  CUDA_ARRAY3D_DESCRIPTOR wanted = {WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
  OK(cu.Array3DCreate(&array, &wanted));
  OK(cu.Array3DGetDescriptor(&found_3d, array));
  CHECK(found_3d.Depth == DEPTH && found_3d.NumChannels == 4);
  OK(cu.ArrayDestroy(array));
}

/* "NumChannels specifies the number of packed components per CUDA array element; it may be 1, 2, or 4." */
RULE(impossible_arrays_are_refused) {
  CUDA_ARRAY_DESCRIPTOR wanted = {WIDTH, HEIGHT, CU_AD_FORMAT_FLOAT, 3};
  CUarray array = NULL;
  GIVES(cu.ArrayCreate(&array, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.NumChannels = 1;
  wanted.Width = 0;
  GIVES(cu.ArrayCreate(&array, &wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.Width = WIDTH;
  GIVES(cu.ArrayCreate(NULL, &wanted), CUDA_ERROR_INVALID_VALUE);
}

/* One row: from the host, to the device, to another array, and back. */
RULE(rows_go_through_arrays) {
  unsigned char *from = must_alloc_host(ROW), *to = must_alloc_host(ROW);
  CUdeviceptr block = must_alloc(ROW);
  CUarray one = must_array(WIDTH, 0), two = must_array(WIDTH, 0);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  fill(from, ROW);
  memset(to, 0, ROW);
  OK(cu.MemcpyHtoA(one, 0, from, ROW));
  OK(cu.MemcpyAtoA(two, 8, one, 16, 40));
  OK(cu.MemcpyAtoD(block, two, 8, 40));
  OK(cu.MemcpyDtoA(two, 0, block, 8));
  OK(cu.MemcpyAtoH(to, two, 0, 48));
  CHECK(memcmp(to, from + 16, 8) == 0 && memcmp(to + 8, from + 16, 40) == 0);
  OK(cu.CtxSynchronize());
  OK(cu.MemcpyHtoAAsync(two, 0, from, ROW, stream));
  OK(cu.MemcpyAtoHAsync(to, two, 4, ROW - 4, stream));
  OK(cu.StreamSynchronize(stream));
  CHECK(memcmp(to, from + 4, ROW - 4) == 0);
  GIVES(cu.MemcpyHtoA(one, 0, from, ROW + ELEMENT), CUDA_ERROR_INVALID_VALUE);
  OK(cu.StreamDestroy(stream));
  OK(cu.ArrayDestroy(one));
  OK(cu.ArrayDestroy(two));
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(from));
  OK(cu.MemFreeHost(to));
}

/* "For CUDA arrays, dstXInBytes must be evenly divisible by the array element size." */
RULE(boxes_go_through_arrays) {
  static unsigned char from[SLICE * DEPTH], to[SLICE * DEPTH];
  CUDA_ARRAY3D_DESCRIPTOR wanted = {WIDTH, HEIGHT, DEPTH, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray array = NULL;
  fill(from, sizeof from);
  memset(to, 0, sizeof to);
  OK(cu.Array3DCreate(&array, &wanted));
  CUDA_MEMCPY3D there = {0};
  there.srcMemoryType = CU_MEMORYTYPE_HOST;
  there.srcHost = from;
  there.srcPitch = ROW;
  there.srcHeight = HEIGHT;
  there.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  there.dstArray = array;
  there.WidthInBytes = ROW;
  there.Height = HEIGHT;
  there.Depth = DEPTH;
  OK(cu.Memcpy3D(&there));
  CUDA_MEMCPY3D here = {0};
  here.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  here.srcArray = array;
  here.srcXInBytes = 8;
  here.srcY = 1;
  here.srcZ = 1;
  here.dstMemoryType = CU_MEMORYTYPE_HOST;
  here.dstHost = to;
  here.dstPitch = ROW;
  here.dstHeight = HEIGHT;
  here.WidthInBytes = ROW - 8;
  here.Height = HEIGHT - 1;
  here.Depth = DEPTH - 1;
  OK(cu.Memcpy3D(&here));
  for (size_t z = 0; z + 1 < DEPTH; z++)
    for (size_t y = 0; y + 1 < HEIGHT; y++)
      CHECK(memcmp(to + z * SLICE + y * ROW, from + (z + 1) * SLICE + (y + 1) * ROW + 8, ROW - 8) == 0);
  here.srcXInBytes = 2;
  REFUSED(cu.Memcpy3D(&here));
  here.srcXInBytes = 8;
  here.srcZ = 2;
  REFUSED(cu.Memcpy3D(&here));
  OK(cu.ArrayDestroy(array));
}

/* Each level of a mipmapped array has half the extent of the one before, and at least one element. */
RULE(levels_are_half_as_large) {
  CUDA_ARRAY3D_DESCRIPTOR wanted = {WIDTH, HEIGHT, 0, CU_AD_FORMAT_FLOAT, 1, 0}, found = {0};
  CUmipmappedArray levels = NULL;
  CUarray level = NULL;
  OK(cu.MipmappedArrayCreate(&levels, &wanted, 4));
  OK(cu.MipmappedArrayGetLevel(&level, levels, 1));
  OK(cu.Array3DGetDescriptor(&found, level));
  CHECK(found.Width == WIDTH / 2 && found.Height == HEIGHT / 2);
  OK(cu.MipmappedArrayGetLevel(&level, levels, 3));
  OK(cu.Array3DGetDescriptor(&found, level));
  CHECK(found.Width == WIDTH / 8 && found.Height == 1);
  GIVES(cu.MipmappedArrayGetLevel(&level, levels, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MipmappedArrayDestroy(levels));
}

/* ---- Batches ----------------------------------------------------------------------------------------- */

/* "The batch as a whole executes in stream order." "With SRC_ACCESS_ORDER_DURING_API_CALL [...] all accesses
 * must be complete before the API call returns." */
RULE(batches_copy_in_stream_order) {
  enum { COUNT = 3, BYTES = 256 };
  unsigned char *pinned = must_alloc_host(BYTES), ephemeral[BYTES];
  CUdeviceptr block = must_alloc(COUNT * BYTES), other = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr to[COUNT] = {block, block + BYTES, block + 2 * BYTES};
  CUdeviceptr from[COUNT] = {(CUdeviceptr)(uintptr_t)pinned, other, (CUdeviceptr)(uintptr_t)ephemeral};
  size_t bytes[COUNT] = {BYTES, BYTES, BYTES}, firsts[2] = {0, 2};
  CUmemcpyAttributes attributes[2];
  memset(attributes, 0, sizeof attributes);
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  memset(pinned, 1, BYTES);
  memset(ephemeral, 3, BYTES);
  OK(cu.MemsetD8(block, 9, COUNT * BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.MemsetD8Async(other, 2, BYTES, stream));
  OK(cu.MemcpyBatchAsync(to, from, bytes, COUNT, attributes, firsts, 2, stream));
  memset(ephemeral, 0, BYTES);
  OK(cu.MemsetD8Async(other, 0, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  for (size_t index = 0; index < COUNT; index++) must_hold(to[index], (unsigned char)(index + 1), BYTES);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
  OK(cu.MemFree(other));
  OK(cu.MemFreeHost(pinned));
}

/* "The first entry in attrsIdxs must always be 0. Also, each entry must be greater than the previous entry and
 * the last entry should be less than count. Furthermore, numAttrs must be lesser than or equal to count."
 * "hStream must not be legacy NULL stream." */
RULE(batches_that_make_no_sense_are_refused) {
  enum { BYTES = 64 };
  CUdeviceptr block = must_alloc(4 * BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr to[2] = {block, block + BYTES}, from[2] = {block + 2 * BYTES, block + 3 * BYTES};
  size_t bytes[2] = {BYTES, BYTES}, zero[1] = {0}, one[1] = {1}, same[2] = {0, 0}, far[2] = {0, 2};
  CUmemcpyAttributes attributes[3];
  memset(attributes, 0, sizeof attributes);
  for (size_t index = 0; index < 3; index++) attributes[index].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, zero, 1, stream));
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, one, 1, stream));
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, same, 2, stream));
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, far, 2, stream));
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 1, attributes, far, 2, stream));
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, zero, 1, NULL));
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  REFUSED(cu.MemcpyBatchAsync(to, from, bytes, 2, attributes, zero, 1, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* ---- What only the double tells ------------------------------------------------------------------------ */

RULE(arrays_leave_nothing) {
  ONLY_ON_THE_DOUBLE();
  uint64_t used = fakecuda_used(0);
  CUDA_ARRAY3D_DESCRIPTOR wanted = {WIDTH, HEIGHT, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUmipmappedArray levels = NULL;
  CUarray array = must_array(WIDTH, HEIGHT), level = NULL;
  OK(cu.MipmappedArrayCreate(&levels, &wanted, 3));
  OK(cu.MipmappedArrayGetLevel(&level, levels, 2));
  CHECK(fakecuda_used(0) > used);
  GIVES(cu.ArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
  OK(cu.ArrayDestroy(array));
  GIVES(cu.ArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
  OK(cu.MipmappedArrayDestroy(levels));
  GIVES(cu.ArrayGetDescriptor(&(CUDA_ARRAY_DESCRIPTOR){0}, level), CUDA_ERROR_INVALID_HANDLE);
  SAME(fakecuda_used(0), used);
}
