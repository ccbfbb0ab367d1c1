/* "During stream capture, cuMemFreeAsync must be passed the address of a graph allocation": what was allocated
 * outside stays live, and the capture is as the driver leaves it. */
#include "program.h"

enum { BYTES = 1 << 20 };

int main(void) {
  start();
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  for (int ordered = 0; ordered < 2; ordered++) {
    CUdeviceptr block = ordered ? must_alloc_async(BYTES, stream) : must_alloc(BYTES);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    OK(cuStreamSynchronize(stream));
    fill_now(block, 7, BYTES);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(block, 8, BYTES, stream));
    CUresult code = cuMemFreeAsync(block, stream);
    OK(cuStreamIsCapturing(stream, &status));
    CUresult end = cuStreamEndCapture(stream, &graph);
    printf("%d: free %d, capture %d, end %d\n", ordered, (int)code, (int)status, (int)end);
    HOLDS(block, 7, BYTES);
    CUdeviceptr other = must_alloc(BYTES);
    fill_now(other, 9, BYTES);
    HOLDS(block, 7, BYTES);
    OK(cuMemFree(other));
    if (graph != NULL) OK(cuGraphDestroy(graph));
    printf("%d: freed later %d\n", ordered, (int)(ordered ? cuMemFreeAsync(block, stream) : cuMemFree(block)));
    OK(cuStreamSynchronize(stream));
  }
  return 0;
}
