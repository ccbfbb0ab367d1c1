/* Events: what they cover, who waits for them, and the time between two. */
#include "suite.h"

enum { BYTES = 4096 };

/* "Before the first call to cuEventRecord(), an event represents an empty set of work, so for example
 * cuEventQuery() would return CUDA_SUCCESS." */
RULE(an_event_starts_complete) {
  CUevent event = must_event(CU_EVENT_DEFAULT);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.EventQuery(event));
  OK(cu.EventSynchronize(event));
  OK(cu.StreamWaitEvent(stream, event, 0));
  OK(cu.StreamSynchronize(stream));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
}

/* "Captures in hEvent the contents of hStream at the time of this call." */
RULE(an_event_covers_the_work_before) {
  gate_t gate, later;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  gate_close(&gate, stream);
  OK(cu.EventRecord(event, stream));
  /* "Uses of hStream after this call do not modify hEvent." */
  gate_close(&later, stream);
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.EventSynchronize(event));
  OK(cu.EventQuery(event));
  CHECK(atomic_load(&gate.passed) && !atomic_load(&later.passed));
  GIVES(cu.StreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate_open(&later);
  OK(cu.StreamSynchronize(stream));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
}

/* Polling an event comes to an end without anyone waiting for the stream. */
RULE(polling_ends) {
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(MIB);
  OK(cu.MemsetD8Async(block, 1, MIB, stream));
  OK(cu.EventRecord(event, stream));
  CUresult code;
  while ((code = cu.EventQuery(event)) == CUDA_ERROR_NOT_READY) sleep_ms(1);
  OK(code);
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(stream));
  OK(cu.MemFree(block));
}

/* "Makes all future work submitted to hStream wait for all work captured in hEvent." */
RULE(a_stream_waits_for_an_event) {
  gate_t gate;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, one);
  OK(cu.MemsetD8Async(block, 1, BYTES, one));
  OK(cu.EventRecord(event, one));
  OK(cu.StreamWaitEvent(two, event, 0));
  OK(cu.MemsetD8Async(block, 2, BYTES, two));
  sleep_ms(10);
  GIVES(cu.StreamQuery(two), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  must_hold(block, 2, BYTES);
  OK(cu.StreamSynchronize(one));
  must_hold(block, 2, BYTES);
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
}

/* "cuStreamWaitEvent() use[s] the most recently captured state at the time of the API call, and [is] not
 * affected by later calls to cuEventRecord()." */
RULE(a_wait_is_for_the_record_before_it) {
  gate_t first, second;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  gate_close(&first, one);
  OK(cu.EventRecord(event, one));
  OK(cu.StreamWaitEvent(two, event, 0));
  gate_close(&second, one);
  OK(cu.EventRecord(event, one));
  gate_open(&first);
  /* Only the first gate is waited for. */
  OK(cu.StreamSynchronize(two));
  CHECK(!atomic_load(&second.passed));
  /* The event itself is the later record. */
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&second);
  OK(cu.EventSynchronize(event));
  CHECK(atomic_load(&second.passed));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* A wait on an event recorded only later is a wait for nothing. */
RULE(a_wait_before_the_record_is_for_nothing) {
  gate_t gate;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.StreamWaitEvent(two, event, 0));
  gate_close(&gate, one);
  OK(cu.EventRecord(event, one));
  OK(cu.StreamSynchronize(two));
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.StreamSynchronize(one));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
}

/* "An event may be destroyed before it is complete. In this case, the call does not block", and who
 * waits for it still does. */
RULE(an_event_may_be_destroyed_before_it_is_complete) {
  gate_t gate;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream one = must_stream(CU_STREAM_NON_BLOCKING), two = must_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr block = must_alloc(BYTES);
  OK(cu.MemsetD8(block, 0, BYTES));
  OK(cu.CtxSynchronize());
  gate_close(&gate, one);
  OK(cu.MemsetD8Async(block, 1, BYTES, one));
  OK(cu.EventRecord(event, one));
  OK(cu.StreamWaitEvent(two, event, 0));
  OK(cu.EventDestroy(event));
  OK(cu.MemsetD8Async(block, 2, BYTES, two));
  CHECK(!atomic_load(&gate.passed));
  gate_open(&gate);
  OK(cu.StreamSynchronize(two));
  OK(cu.StreamSynchronize(one));
  must_hold(block, 2, BYTES);
  OK(cu.StreamDestroy(one));
  OK(cu.StreamDestroy(two));
  OK(cu.MemFree(block));
}

/* An event outlives the stream that it was recorded in. */
RULE(an_event_outlives_its_stream) {
  gate_t gate;
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  gate_close(&gate, stream);
  OK(cu.EventRecord(event, stream));
  OK(cu.StreamDestroy(stream));
  GIVES(cu.EventQuery(event), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.EventSynchronize(event));
  CHECK(atomic_load(&gate.passed));
  OK(cu.EventDestroy(event));
}

/* "hEvent and hStream must be from the same context otherwise CUDA_ERROR_INVALID_HANDLE is
 * returned"; but a wait "may be from a different context or device". */
RULE(events_are_recorded_in_their_context) {
  CUcontext there = second_context();
  CUevent event = must_event(CU_EVENT_DISABLE_TIMING);
  CUstream here = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.CtxPushCurrent(there));
  CUstream other = must_stream(CU_STREAM_NON_BLOCKING);
  GIVES(cu.EventRecord(event, other), CUDA_ERROR_INVALID_HANDLE);
  OK(cu.CtxPopCurrent(NULL));
  gate_t gate;
  gate_close(&gate, here);
  OK(cu.EventRecord(event, here));
  OK(cu.StreamWaitEvent(other, event, 0));
  GIVES(cu.StreamQuery(other), CUDA_ERROR_NOT_READY);
  gate_open(&gate);
  OK(cu.StreamSynchronize(other));
  CHECK(atomic_load(&gate.passed));
  OK(cu.EventDestroy(event));
  OK(cu.StreamDestroy(here));
  OK(cu.StreamDestroy(other));
}

/* ---- Time --------------------------------------------------------------------------------------------- */

/* "Computes the elapsed time between two events (in milliseconds with a resolution of around 0.5
 * microseconds)." */
RULE(time_passes_between_events) {
  gate_t gate;
  float time = -1;
  CUevent start = must_event(CU_EVENT_DEFAULT), end = must_event(CU_EVENT_DEFAULT);
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  OK(cu.EventRecord(start, stream));
  OK(cu.EventSynchronize(start));
  gate_close(&gate, stream);
  OK(cu.EventRecord(end, stream));
  /* "CUDA_ERROR_NOT_READY is returned" while one is not complete. */
  GIVES(cu.EventElapsedTime(&time, start, end), CUDA_ERROR_NOT_READY);
  sleep_ms(20);
  gate_open(&gate);
  OK(cu.EventSynchronize(end));
  OK(cu.EventElapsedTime(&time, start, end));
  if (!(time >= 19 && time < 20000)) suite_fail(__FILE__, __LINE__, "%f ms", (double)time);
  OK(cu.EventDestroy(start));
  OK(cu.EventDestroy(end));
  OK(cu.StreamDestroy(stream));
}

/* "If cuEventRecord() has not been called on either event then CUDA_ERROR_INVALID_HANDLE is returned";
 * also "if either event was created with the CU_EVENT_DISABLE_TIMING flag". */
RULE(time_needs_recorded_timing_events) {
  float time = 0;
  CUstream stream = must_stream(CU_STREAM_NON_BLOCKING);
  CUevent start = must_event(CU_EVENT_DEFAULT), end = must_event(CU_EVENT_DEFAULT);
  CUevent without = must_event(CU_EVENT_DISABLE_TIMING);
  GIVES(cu.EventElapsedTime(&time, start, end), CUDA_ERROR_INVALID_HANDLE);
  OK(cu.EventRecord(start, stream));
  OK(cu.EventRecord(without, stream));
  OK(cu.StreamSynchronize(stream));
  GIVES(cu.EventElapsedTime(&time, start, end), CUDA_ERROR_INVALID_HANDLE);
  GIVES(cu.EventElapsedTime(&time, start, without), CUDA_ERROR_INVALID_HANDLE);
  GIVES(cu.EventElapsedTime(&time, without, start), CUDA_ERROR_INVALID_HANDLE);
  OK(cu.EventDestroy(start));
  OK(cu.EventDestroy(end));
  OK(cu.EventDestroy(without));
  OK(cu.StreamDestroy(stream));
}

/* "CU_EVENT_INTERPROCESS must be specified along with CU_EVENT_DISABLE_TIMING." */
RULE(flags_are_checked) {
  CUevent event = NULL;
  GIVES(cu.EventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.EventCreate(&event, 0x1000), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.EventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cu.EventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
  OK(cu.EventDestroy(event));
  OK(cu.EventCreate(&event, CU_EVENT_BLOCKING_SYNC));
  OK(cu.EventDestroy(event));
}

/* An event of the double is no event after it was destroyed. */
RULE(destroyed_events_are_refused) {
  ONLY_ON_THE_DOUBLE();
  CUevent event = must_event(0);
  OK(cu.EventDestroy(event));
  GIVES(cu.EventQuery(event), CUDA_ERROR_INVALID_HANDLE);
  GIVES(cu.EventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
  GIVES(cu.EventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
  GIVES_EITHER(cu.EventQuery(NULL), CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE);
}
