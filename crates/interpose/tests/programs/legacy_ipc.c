/* Memory of cuMemAlloc has legacy IPC handles, and no others: what it says of itself. */
#include "program.h"

int main(void) {
  static const size_t sizes[] = {1, 4096, 100000, 2 * MIB, 50 * MIB};
  start();
  for (int round = 0; round < 2; round++)
    for (size_t at = 0; at < COUNT_OF(sizes); at++) {
      CUdeviceptr block = must_alloc(sizes[at]), base = 0;
      CUipcMemHandle handle;
      CUmemGenericAllocationHandle physical = 0;
      /* As wide as the driver may write. */
      unsigned long long legacy = 0, types = 0, rdma = 0;
      OK(cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, block));
      OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, block));
      OK(cuPointerGetAttribute(&rdma, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, block));
      SAME(legacy, 1);
      SAME(types, 0);
      CHECK(rdma == 1 || !fakecuda_present());
      CHECK(cuMemRetainAllocationHandle(&physical, (void *)(uintptr_t)block) != CUDA_SUCCESS);
      OK(cuMemGetAddressRange(&base, NULL, block));
      OK(cuIpcGetMemHandle(&handle, base));
      OK(cuMemFree(block));
    }
  return 0;
}
