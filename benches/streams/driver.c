/* A CUDA driver that does next to nothing, so that what is timed over it is luma's own work. Every stream is
 * idle and every event done. */
#include <stddef.h>
#include <stdint.h>

static __thread void *current_context;
static uint64_t next_address = (uint64_t)1 << 40;
static uintptr_t next_event = 4096;

int cuInit(unsigned flags) { return (void)flags, 0; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  return (void)attribute, (void)device, *value = 0, 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  return (void)device, *context = (void *)16, 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, 0; }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  return (void)device, *flags = 0, *active = 1, 0;
}
int cuCtxGetCurrent(void **context) { return *context = current_context, 0; }
int cuCtxSetCurrent(void *context) { return current_context = context, 0; }
int cuCtxPushCurrent_v2(void *context) { return current_context = context, 0; }
int cuCtxPopCurrent_v2(void **context) { return *context = current_context, 0; }
int cuCtxGetDevice(int *device) { return *device = 0, 0; }
int cuCtxGetId(void *context, uint64_t *id) { return (void)context, *id = 1, 0; }
int cuCtxSynchronize(void) { return 0; }
int cuCtxRecordEvent(void *context, void *event) { return (void)context, (void)event, 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) {
  return *free = *total = (size_t)1 << 36, 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  return *address = next_address, next_address += (bytes + 0xfffff) & ~(uint64_t)0xfffff, 0;
}
int cuMemFree_v2(uint64_t address) { return (void)address, 0; }
int cuStreamGetId(void *stream, uint64_t *id) { return *id = (uintptr_t)stream, 0; }
int cuStreamGetCtx(void *stream, void **context) { return (void)stream, *context = (void *)16, 0; }
int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph,
                              const void **dependencies, size_t *count) {
  return (void)stream, (void)id, (void)graph, (void)dependencies, (void)count, *status = 0, 0;
}
int cuStreamIsCapturing(void *stream, int *status) { return (void)stream, *status = 0, 0; }
int cuStreamQuery(void *stream) { return (void)stream, 0; }
int cuStreamSynchronize(void *stream) { return (void)stream, 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return (void)stream, (void)event, (void)flags, 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) { return (void)mode, 0; }
int cuEventCreate(void **event, unsigned flags) {
  return (void)flags, *event = (void *)next_event++, 0;
}
int cuEventDestroy_v2(void *event) { return (void)event, 0; }
int cuEventRecord(void *event, void *stream) { return (void)event, (void)stream, 0; }
int cuEventQuery(void *event) { return (void)event, 0; }
