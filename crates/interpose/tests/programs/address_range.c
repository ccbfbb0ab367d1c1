/* Libraries register the range that cuMemGetAddressRange gives for a pointer: for every address of a block it is
 * one and the same range, which holds the whole block, begins at what may be exported, and can be used. */
#include "program.h"

enum { BLOCKS = 12 };

int main(void) {
  static const size_t sizes[] = {1, 4096, 100000, MIB, 2 * MIB + 1, 40 * MIB};
  CUdeviceptr blocks[BLOCKS];
  start();
  for (size_t at = 0; at < BLOCKS; at++) blocks[at] = must_alloc(sizes[at % COUNT_OF(sizes)]);
  for (size_t at = 0; at < BLOCKS; at++) {
    size_t bytes = sizes[at % COUNT_OF(sizes)], range = 0, again = 0;
    CUdeviceptr base = 0, other = 0;
    OK(cuMemGetAddressRange(&base, &range, blocks[at]));
    CHECK(base <= blocks[at] && blocks[at] + bytes <= base + range);
    for (size_t offset = 0; offset < bytes; offset += bytes / 7 + 1) {
      OK(cuMemGetAddressRange(&other, &again, blocks[at] + offset));
      SAME(other, base);
      SAME(again, range);
      CUdeviceptr first = 0;
      size_t size = 0;
      OK(cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, blocks[at] + offset));
      OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, blocks[at] + offset));
      SAME(first, base);
      SAME(size, range);
    }
    /* Either answer alone, and the range's own first byte. */
    OK(cuMemGetAddressRange(NULL, &again, blocks[at]));
    SAME(again, range);
    OK(cuMemGetAddressRange(&other, NULL, blocks[at]));
    SAME(other, base);
    CUipcMemHandle handle;
    OK(cuIpcGetMemHandle(&handle, base));
  }
  for (size_t at = 0; at < BLOCKS; at++) OK(cuMemFree(blocks[at]));
  return 0;
}
