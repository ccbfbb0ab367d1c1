/* Streams that wait for values in memory, and write them. */
#include "suite.h"

static void must_be_supported(void) {
  if (!attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)) suite_skip("no such operations");
}

/* A block whose words hold a value. */
static CUdeviceptr must_hold_words(unsigned value) {
  CUdeviceptr block = must_alloc(64);
  OK(cu.MemsetD32(block, value, 16));
  OK(cu.CtxSynchronize());
  return block;
}

static void must_wait_until(unsigned flags, unsigned before, unsigned wanted, unsigned after) {
  CUdeviceptr block = must_hold_words(before);
  CUstream waiting = must_stream(CU_STREAM_NON_BLOCKING), writing = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamWaitValue32(waiting, block, wanted, flags));
  for (int look = 0; look < 5; look++) {
    GIVES(cu.StreamQuery(waiting), CUDA_ERROR_NOT_READY);
    sleep_ms(2);
  }
  OK(cu.StreamWriteValue32(writing, block, after, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cu.StreamSynchronize(waiting));
  OK(cu.StreamSynchronize(writing));
  OK(cu.StreamDestroy(waiting));
  OK(cu.StreamDestroy(writing));
  OK(cu.MemFree(block));
}

RULE(a_stream_waits_for_an_equal_value) {
  must_be_supported();
  must_wait_until(CU_STREAM_WAIT_VALUE_EQ, 1, 5, 5);
}

/* "Wait until (int32_t)(*addr - value) >= 0." */
RULE(a_stream_waits_for_a_later_value) {
  must_be_supported();
  must_wait_until(CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0u, 2, 3);
}

RULE(a_stream_waits_for_a_bit) {
  must_be_supported();
  must_wait_until(CU_STREAM_WAIT_VALUE_AND, 2, 4, 6);
}

/* "Wait until ~(*addr | value) != 0." */
RULE(a_stream_waits_for_a_missing_bit) {
  must_be_supported();
  must_wait_until(CU_STREAM_WAIT_VALUE_NOR, 0xf0000000u, 0x0fffffffu, 0xe0000000u);
}

RULE(values_are_written_in_turn) {
  must_be_supported();
  CUdeviceptr block = must_hold_words(0);
  gate_t gate;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  gate_close(&gate, stream);
  OK(cu.StreamWriteValue64(stream, block, 0x1122334455667788ull, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cu.StreamWriteValue32(stream, block + 8, 9, CU_STREAM_WRITE_VALUE_DEFAULT));
  must_hold(block, 0, 16);
  gate_open(&gate);
  OK(cu.StreamSynchronize(stream));
  uint64_t words[2] = {0};
  OK(cu.MemcpyDtoH(words, block, sizeof words));
  SAME(words[0], 0x1122334455667788ull);
  SAME(words[1], 9);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

RULE(operations_come_in_batches) {
  must_be_supported();
  CUdeviceptr block = must_hold_words(0);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUstreamBatchMemOpParams operations[2];
  memset(operations, 0, sizeof operations);
  operations[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = block;
  operations[0].writeValue.value = 4;
  operations[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = block;
  operations[1].waitValue.value = 4;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  OK(cu.StreamBatchMemOp(stream, 2, operations, 0));
  OK(cu.StreamSynchronize(stream));
  unsigned word = 0;
  OK(cu.MemcpyDtoH(&word, block, sizeof word));
  SAME(word, 4);
  operations[1].operation = (CUstreamBatchMemOpType)77;
  GIVES(cu.StreamBatchMemOp(stream, 2, operations, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

RULE(addresses_are_checked) {
  must_be_supported();
  CUdeviceptr block = must_hold_words(0);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  GIVES(cu.StreamWriteValue32(stream, block + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.StreamWaitValue32(stream, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.StreamWriteValue64(stream, block + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cu.StreamSynchronize(stream));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}
