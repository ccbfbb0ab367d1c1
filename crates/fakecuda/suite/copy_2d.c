/* Copies of two and three dimensions, and between devices. */
#include "suite.h"

enum { PITCH = 96, WIDTH = 40, ROWS = 9, PLANES = 3 };

static unsigned char mark(size_t x, size_t y, size_t z) {
  return (unsigned char)(1 + x + 50 * y + 90 * z);
}

/* A box of the host, a marked part of a larger one of zeros. */
static void fill(unsigned char *box) {
  memset(box, 0, PITCH * ROWS * PLANES);
  for (size_t z = 0; z < PLANES; z++)
    for (size_t y = 0; y < ROWS; y++)
      for (size_t x = 0; x < WIDTH; x++) box[(z * ROWS + y) * PITCH + x] = mark(x, y, z);
}

/* Rows go from pitch to pitch, from and to a place inside. */
static void copies_rows(CUresult (*copy)(const CUDA_MEMCPY2D *)) {
  static unsigned char host[PITCH * ROWS * PLANES], back[64 * ROWS];
  CUdeviceptr block = 0;
  size_t pitch = 0;
  OK(cu.MemAllocPitch(&block, &pitch, WIDTH + 8, ROWS, 4));
  fill(host);
  CUDA_MEMCPY2D there = {0};
  there.srcMemoryType = CU_MEMORYTYPE_HOST;
  there.srcHost = host;
  there.srcPitch = PITCH;
  there.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  there.dstDevice = block;
  there.dstPitch = pitch;
  there.dstXInBytes = 8;
  there.WidthInBytes = WIDTH;
  there.Height = ROWS;
  OK(copy(&there));
  CUDA_MEMCPY2D here = {0};
  here.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  here.srcDevice = block;
  here.srcPitch = pitch;
  here.srcXInBytes = 8 + 4;
  here.srcY = 2;
  here.dstMemoryType = CU_MEMORYTYPE_HOST;
  here.dstHost = back;
  here.dstPitch = 64;
  here.dstXInBytes = 1;
  here.dstY = 1;
  here.WidthInBytes = WIDTH - 4;
  here.Height = ROWS - 2;
  memset(back, 0, sizeof back);
  OK(copy(&here));
  for (size_t y = 0; y < ROWS; y++)
    for (size_t x = 0; x < 64; x++) {
      bool copied = y >= 1 && y < ROWS - 1 && x >= 1 && x < WIDTH - 4 + 1;
      SAME(back[y * 64 + x], copied ? mark(x - 1 + 4, y - 1 + 2, 0) : 0);
    }
  OK(cu.MemFree(block));
}

RULE(rows_are_copied) { copies_rows(cu.Memcpy2D); }
RULE(rows_are_copied_unaligned) { copies_rows(cu.Memcpy2DUnaligned); }

static CUresult by_a_stream(const CUDA_MEMCPY2D *copy) {
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUresult code = cu.Memcpy2DAsync(copy, stream);
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
  return code;
}

RULE(rows_are_copied_by_a_stream) { copies_rows(by_a_stream); }

/* "If srcMemoryType is CU_MEMORYTYPE_UNIFIED, srcDevice and srcPitch specify the (unified virtual
 * address space) base address." */
RULE(rows_are_copied_between_unified_addresses) {
  unsigned char *host = must_alloc_host(PITCH * ROWS);
  CUdeviceptr block = must_alloc(PITCH * ROWS);
  memset(host, 5, PITCH * ROWS);
  OK(cu.MemsetD8(block, 0, PITCH * ROWS));
  CUDA_MEMCPY2D copy = {0};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = (CUdeviceptr)(uintptr_t)host;
  copy.srcPitch = PITCH;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = block;
  copy.dstPitch = PITCH;
  copy.WidthInBytes = WIDTH;
  copy.Height = ROWS;
  OK(cu.Memcpy2D(&copy));
  for (size_t y = 0; y < ROWS; y++) {
    must_hold(block + y * PITCH, 5, WIDTH);
    must_hold(block + y * PITCH + WIDTH, 0, PITCH - WIDTH);
  }
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}

/* "If specified, srcPitch must be greater than or equal to WidthInBytes + srcXInBytes, and dstPitch
 * must be greater than or equal to WidthInBytes + dstXInBytes." */
RULE(a_pitch_below_the_width_is_refused) {
  static unsigned char host[PITCH * ROWS];
  CUdeviceptr block = must_alloc(PITCH * ROWS);
  CUDA_MEMCPY2D copy = {0};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = host;
  copy.srcPitch = WIDTH - 1;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = block;
  copy.dstPitch = PITCH;
  copy.WidthInBytes = WIDTH;
  copy.Height = ROWS;
  GIVES(cu.Memcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  copy.srcPitch = PITCH;
  copy.dstPitch = WIDTH;
  copy.dstXInBytes = 1;
  GIVES(cu.Memcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
}

/* A box, from and to places inside boxes. */
RULE(boxes_are_copied) {
  static unsigned char host[PITCH * ROWS * PLANES], back[PITCH * ROWS * PLANES];
  CUdeviceptr block = must_alloc(sizeof host);
  fill(host);
  OK(cu.MemsetD8(block, 0, sizeof host));
  CUDA_MEMCPY3D there = {0};
  there.srcMemoryType = CU_MEMORYTYPE_HOST;
  there.srcHost = host;
  there.srcPitch = PITCH;
  there.srcHeight = ROWS;
  there.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  there.dstDevice = block;
  there.dstPitch = PITCH;
  there.dstHeight = ROWS;
  there.WidthInBytes = WIDTH;
  there.Height = ROWS;
  there.Depth = PLANES;
  OK(cu.Memcpy3D(&there));
  CUDA_MEMCPY3D here = {0};
  here.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  here.srcDevice = block;
  here.srcPitch = PITCH;
  here.srcHeight = ROWS;
  here.srcXInBytes = 3;
  here.srcY = 2;
  here.srcZ = 1;
  here.dstMemoryType = CU_MEMORYTYPE_HOST;
  here.dstHost = back;
  here.dstPitch = PITCH;
  here.dstHeight = ROWS;
  here.WidthInBytes = WIDTH - 3;
  here.Height = ROWS - 2;
  here.Depth = PLANES - 1;
  memset(back, 0, sizeof back);
  OK(cu.Memcpy3D(&here));
  for (size_t z = 0; z < PLANES; z++)
    for (size_t y = 0; y < ROWS; y++)
      for (size_t x = 0; x < PITCH; x++) {
        bool copied = z < PLANES - 1 && y < ROWS - 2 && x < WIDTH - 3;
        SAME(back[(z * ROWS + y) * PITCH + x], copied ? mark(x + 3, y + 2, z + 1) : 0);
      }
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8Async(block, 0, sizeof host, stream));
  OK(cu.Memcpy3DAsync(&there, stream));
  OK(cu.StreamSynchronize(stream));
  memset(back, 0, sizeof back);
  OK(cu.MemcpyDtoH(back, block, sizeof back));
  CHECK(memcmp(back, host, sizeof host) == 0);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* "Copies from device memory in one context to device memory in another context." */
RULE(devices_copy_to_each_other) {
  CUcontext here = NULL, there = second_context();
  OK(cu.CtxGetCurrent(&here));
  CUdeviceptr ours = must_alloc(PITCH * ROWS);
  OK(cu.CtxPushCurrent(there));
  CUdeviceptr theirs = must_alloc(PITCH * ROWS);
  OK(cu.MemsetD8(theirs, 6, PITCH * ROWS));
  OK(cu.CtxSynchronize());
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.MemcpyPeer(ours, here, theirs, there, PITCH * ROWS));
  must_hold(ours, 6, PITCH * ROWS);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.MemsetD8Async(ours, 7, PITCH * ROWS, stream));
  OK(cu.MemcpyPeerAsync(theirs, there, ours, here, PITCH * ROWS, stream));
  OK(cu.StreamSynchronize(stream));
  OK(cu.CtxPushCurrent(there));
  must_hold(theirs, 7, PITCH * ROWS);
  OK(cu.MemFree(theirs));
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(ours));
}
