/* Copies and sets of one dimension: each kind, each width, by streams and at once. */
#include "suite.h"

enum { BYTES = 10007 };

static unsigned char pattern(size_t at) { return (unsigned char)(at * 7 + at / 251); }

static void fill(unsigned char *memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at++) memory[at] = pattern(at);
}

static void must_be_pattern(const unsigned char *memory, size_t from, size_t bytes) {
  for (size_t at = 0; at < bytes; at++)
    if (memory[at] != pattern(from + at))
      suite_fail(__FILE__, __LINE__, "byte %zu is %d, not %d", at, memory[at], pattern(from + at));
}

/* To the device and back, from any address to any address. */
RULE(copies_need_no_alignment) {
  static unsigned char there[BYTES], back[BYTES];
  CUdeviceptr block = must_alloc(BYTES + 64);
  fill(there, BYTES);
  for (size_t shift = 0; shift < 5; shift++) {
    memset(back, 0, sizeof back);
    OK(cu.MemcpyHtoD(block + shift, there + 1, 5000));
    OK(cu.MemcpyDtoH(back + 3, block + shift, 5000));
    must_be_pattern(back + 3, 1, 5000);
    CHECK(back[2] == 0 && back[5003] == 0);
  }
  OK(cu.MemFree(block));
}

RULE(device_to_device) {
  static unsigned char host[BYTES];
  CUdeviceptr from = must_alloc(BYTES), to = must_alloc(BYTES);
  fill(host, BYTES);
  OK(cu.MemcpyHtoD(from, host, BYTES));
  OK(cu.MemsetD8(to, 0, BYTES));
  OK(cu.MemcpyDtoD(to + 10, from + 20, 3000));
  memset(host, 1, BYTES);
  OK(cu.MemcpyDtoH(host, to, BYTES));
  must_be_pattern(host + 10, 20, 3000);
  CHECK(host[9] == 0 && host[3010] == 0);
  OK(cu.MemFree(from));
  OK(cu.MemFree(to));
}

/* "cuMemcpy infers the type of transfer (host to host, host to device, device to device, or device to
 * host) from the pointer values." */
RULE(unified_copies_infer_their_kind) {
  unsigned char *from = must_alloc_host(BYTES), *to = must_alloc_host(BYTES);
  CUdeviceptr first = must_alloc(BYTES), second = must_alloc(BYTES);
  fill(from, BYTES);
  memset(to, 0, BYTES);
  OK(cu.Memcpy(first, (CUdeviceptr)(uintptr_t)from, BYTES));
  OK(cu.Memcpy(second, first, BYTES));
  OK(cu.Memcpy((CUdeviceptr)(uintptr_t)to, second, BYTES));
  OK(cu.CtxSynchronize());
  must_be_pattern(to, 0, BYTES);
  memset(from, 0, BYTES);
  OK(cu.Memcpy((CUdeviceptr)(uintptr_t)from, (CUdeviceptr)(uintptr_t)to, BYTES));
  OK(cu.CtxSynchronize());
  must_be_pattern(from, 0, BYTES);
  OK(cu.MemFree(first));
  OK(cu.MemFree(second));
  OK(cu.MemFreeHost(from));
  OK(cu.MemFreeHost(to));
}

/* What is beyond every block is refused. */
RULE(copies_from_nowhere_are_refused) {
  char host[64] = {0};
  CUdeviceptr block = must_alloc(64);
  GIVES(cu.MemcpyHtoD(0, host, 64), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemcpyDtoH(host, 0, 64), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemsetD8(0, 1, 64), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemFree(block));
  if (fakecuda_present()) {
    /* A board finds these where the mapping ends, or not at all; the double at the first byte. */
    GIVES(cu.MemcpyHtoD(block, host, 64), CUDA_ERROR_INVALID_VALUE);
    block = must_alloc(64);
    GIVES(cu.MemcpyHtoD(block + 32, host, 64), CUDA_ERROR_INVALID_VALUE);
    GIVES(cu.MemsetD8(block, 0, 65), CUDA_ERROR_INVALID_VALUE);
    OK(cu.MemFree(block));
  }
}

/* ---- Sets -------------------------------------------------------------------------------------------- */

RULE(sets_of_each_width) {
  static unsigned char host[BYTES];
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0xaa, BYTES));
  OK(cu.MemsetD8(block + 1, 0x11, 3));
  OK(cu.MemsetD16(block + 8, 0x2233, 3));
  OK(cu.MemsetD32(block + 16, 0x44556677, 3));
  OK(cu.MemcpyDtoH(host, block, BYTES));
  CHECK(host[0] == 0xaa && host[1] == 0x11 && host[3] == 0x11 && host[4] == 0xaa);
  CHECK(host[8] == 0x33 && host[9] == 0x22 && host[13] == 0x22 && host[14] == 0xaa);
  CHECK(host[16] == 0x77 && host[17] == 0x66 && host[18] == 0x55 && host[19] == 0x44);
  CHECK(host[27] == 0x44 && host[28] == 0xaa && host[BYTES - 1] == 0xaa);
  OK(cu.MemFree(block));
}

/* "The dstDevice pointer must be two byte aligned", and four. */
RULE(wide_sets_are_aligned) {
  CUdeviceptr block = must_alloc(64);
  GIVES(cu.MemsetD16(block + 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.MemsetD32(block + 2, 0, 4), CUDA_ERROR_INVALID_VALUE);
  OK(cu.MemsetD16(block + 2, 0, 4));
  OK(cu.MemsetD32(block + 4, 0, 4));
  OK(cu.MemFree(block));
}

RULE(rows_are_set) {
  static unsigned char host[BYTES];
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.MemsetD2D8(block, 100, 1, 10, 3));
  OK(cu.MemsetD2D16(block + 20, 100, 0x0202, 5, 3));
  OK(cu.MemsetD2D32(block + 40, 100, 0x03030303, 5, 3));
  OK(cu.MemcpyDtoH(host, block, BYTES));
  for (size_t at = 0; at < 400; at++) {
    size_t column = at % 100;
    int wanted = at >= 300                     ? 0
                 : column < 10                 ? 1
                 : column >= 20 && column < 30 ? 2
                 : column >= 40 && column < 60 ? 3
                                               : 0;
    SAME(host[at], wanted);
  }
  OK(cu.MemFree(block));
}

/* ---- By streams --------------------------------------------------------------------------------------- */

/* What is put into a stream runs in the order it was put. */
RULE(stream_work_runs_in_order) {
  unsigned char *from = must_alloc_host(BYTES), *to = must_alloc_host(BYTES);
  CUdeviceptr first = must_alloc(BYTES), second = must_alloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  fill(from, BYTES);
  OK(cu.MemsetD8Async(first, 1, BYTES, stream));
  OK(cu.MemcpyHtoDAsync(first, from, BYTES - 1, stream));
  OK(cu.MemcpyDtoDAsync(second, first, BYTES, stream));
  OK(cu.MemsetD8Async(first, 2, BYTES, stream));
  OK(cu.MemcpyDtoHAsync(to, second, BYTES, stream));
  OK(cu.StreamSynchronize(stream));
  must_be_pattern(to, 0, BYTES - 1);
  CHECK(to[BYTES - 1] == 1);
  must_hold(first, 2, BYTES);
  OK(cu.MemsetD16Async(first, 0x0505, 10, stream));
  OK(cu.MemsetD32Async(first + 20, 0x05050505, 10, stream));
  OK(cu.MemcpyAsync(second, first, 60, stream));
  OK(cu.StreamSynchronize(stream));
  must_hold(second, 5, 60);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(first));
  OK(cu.MemFree(second));
  OK(cu.MemFreeHost(from));
  OK(cu.MemFreeHost(to));
}

/* "For transfers from pageable host memory to device memory [...] the function will return once the
 * pageable buffer has been copied to the staging memory": so it may be written at once, also after an
 * asynchronous copy. */
RULE(pageable_memory_may_be_used_again_at_once) {
  unsigned char *host = malloc(BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  memset(host, 3, BYTES);
  OK(cu.MemcpyHtoDAsync(block, host, BYTES, stream));
  memset(host, 4, BYTES);
  OK(cu.StreamSynchronize(stream));
  must_hold(block, 3, BYTES);
  free(host);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* "For transfers from device memory to pageable host memory, the function will return only once the
 * copy has completed." */
RULE(copies_to_pageable_memory_are_done) {
  unsigned char *host = calloc(1, BYTES);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8Async(block, 7, BYTES, stream));
  OK(cu.MemcpyDtoHAsync(host, block, BYTES, stream));
  CHECK(host[0] == 7 && host[BYTES - 1] == 7);
  free(host);
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* A synchronous copy to the host is done when it returns, and comes after what the default stream had
 * before. */
RULE(synchronous_copies_are_done) {
  unsigned char *host = must_alloc_host(BYTES);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8Async(block, 9, BYTES, NULL));
  OK(cu.MemcpyDtoH(host, block, BYTES));
  CHECK(host[0] == 9 && host[BYTES - 1] == 9);
  OK(cu.MemFree(block));
  OK(cu.MemFreeHost(host));
}
