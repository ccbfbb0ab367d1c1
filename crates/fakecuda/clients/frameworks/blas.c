/* Matrix products for PyTorch on the doubles. NVIDIA's cuBLAS has a runtime built in that starts on NVIDIA's
 * driver only; preloaded, this stands before it with those of its functions that linear layers and attention
 * call. A product is queued as cuBLAS queues it, and is zero: kernels do nothing on the double either, but
 * the result is written where and when the product would be, and so is the workspace. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

struct cublasContext {
  cudaStream_t stream;
  cublasMath_t math;
  cublasPointerMode_t pointers;
  void *workspace;
  size_t workspace_bytes;
};

/* What a layout of cublasLt says; the library hands out pointers that only it follows. */
typedef struct {
  size_t element, rows, columns;
  int64_t leading, batch_stride;
  int32_t batches;
} layout_t;

static size_t bytes_of(cudaDataType type) {
  switch (type) {
  case CUDA_R_64F:
  case CUDA_C_32F:
    return 8;
  case CUDA_C_64F:
    return 16;
  case CUDA_R_32F:
  case CUDA_R_32I:
    return 4;
  case CUDA_R_16F:
  case CUDA_R_16BF:
    return 2;
  default:
    return 1;
  }
}

static cublasStatus_t status(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* Queues the writing of matrices that lie `stride` bytes apart: columns of `column` bytes, `leading` bytes apart. */
static cublasStatus_t write_matrices(void *to, size_t leading, size_t column, size_t columns, long long stride,
                                     int count, cudaStream_t stream) {
  for (int at = 0; at < count; at++) {
    cudaError_t error = cudaMemset2DAsync((char *)to + at * stride, leading, 0, column, columns, stream);
    if (error != cudaSuccess) return status(error);
  }
  return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t use_workspace(void *workspace, size_t bytes, cudaStream_t stream) {
  if (workspace == NULL || bytes == 0) return CUBLAS_STATUS_SUCCESS;
  return status(cudaMemsetAsync(workspace, 0, bytes, stream));
}

static cublasStatus_t product(cublasHandle_t handle, int rows, int columns, void *to, cudaDataType type, int leading,
                              long long stride, int count) {
  size_t element = bytes_of(type);
  cublasStatus_t used = use_workspace(handle->workspace, handle->workspace_bytes, handle->stream);
  if (used != CUBLAS_STATUS_SUCCESS) return used;
  return write_matrices(to, (size_t)leading * element, (size_t)rows * element, (size_t)columns,
                        stride * (long long)element, count, handle->stream);
}

/* ---- cuBLAS ------------------------------------------------------------------------------------------------ */

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  *handle = calloc(1, sizeof **handle);
  return *handle == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  handle->workspace = NULL;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
  *mode = handle->pointers;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  (void)handle, (void)count;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                            cudaDataType b_type, int ldb, const void *beta, void *c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  (void)transa, (void)transb, (void)k, (void)alpha, (void)a, (void)a_type, (void)lda, (void)b, (void)b_type;
  (void)ldb, (void)beta, (void)compute, (void)algorithm;
  return product(handle, m, n, c, c_type, ldc, 0, 1);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                             int k, const float *alpha, const void *a, cudaDataType a_type, int lda, const void *b,
                             cudaDataType b_type, int ldb, const float *beta, void *c, cudaDataType c_type, int ldc) {
  (void)transa, (void)transb, (void)k, (void)alpha, (void)a, (void)a_type, (void)lda, (void)b, (void)b_type;
  (void)ldb, (void)beta;
  return product(handle, m, n, c, c_type, ldc, 0, 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long a_stride, const void *b, cudaDataType b_type, int ldb,
                                          long long b_stride, const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  (void)transa, (void)transb, (void)k, (void)alpha, (void)a, (void)a_type, (void)lda, (void)a_stride, (void)b;
  (void)b_type, (void)ldb, (void)b_stride, (void)beta, (void)compute, (void)algorithm;
  return product(handle, m, n, c, c_type, ldc, c_stride, count);
}

/* ---- cuBLASLt ---------------------------------------------------------------------------------------------- */

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  layout_t *made = calloc(1, sizeof *made);
  if (made == NULL) return CUBLAS_STATUS_ALLOC_FAILED;
  made->element = bytes_of(type);
  made->rows = rows;
  made->columns = columns;
  made->leading = leading;
  made->batches = 1;
  *layout = (cublasLtMatrixLayout_t)made;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  free(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  layout_t *made = (layout_t *)layout;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof made->batches) {
    memcpy(&made->batches, value, bytes);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof made->batch_stride) {
    memcpy(&made->batch_stride, value, bytes);
  } else {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* How a product is computed, and what is preferred, is of no interest: one byte stands for either. */
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  (void)compute, (void)scale;
  *description = calloc(1, 1);
  return *description == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  free(description);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes) {
  (void)description, (void)attribute, (void)value, (void)bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = calloc(1, 1);
  return *preference == NULL ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  free(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
  (void)preference, (void)attribute, (void)value, (void)bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
  (void)handle, (void)description, (void)a, (void)b, (void)c, (void)d, (void)preference;
  if (wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
  memset(&results[0], 0, sizeof results[0]);
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1.0F;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const layout_t *to = (const layout_t *)d_layout;
  cublasStatus_t used = use_workspace(workspace, workspace_bytes, stream);
  (void)handle, (void)description, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout;
  (void)beta, (void)c, (void)c_layout, (void)algorithm;
  if (used != CUBLAS_STATUS_SUCCESS) return used;
  return write_matrices(d, (size_t)to->leading * to->element, to->rows * to->element, to->columns,
                        to->batch_stride * (long long)to->element, to->batches, stream);
}
