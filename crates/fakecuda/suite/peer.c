/* Peer access: one device's kernels and copies in another's memory. */
#include "suite.h"

/* The second device's context, or the rule is skipped where the devices do not reach each other. */
static CUcontext peer(void) {
  CUcontext there = second_context();
  int can = 0;
  OK(cu.DeviceCanAccessPeer(&can, 0, 1));
  if (!can) suite_skip("no peer access");
  return there;
}

RULE(devices_say_whether_they_reach_each_other) {
  int can = 7;
  CUdevice other = second_device();
  OK(cu.DeviceCanAccessPeer(&can, 0, other));
  CHECK(can == 0 || can == 1);
  GIVES(cu.DeviceCanAccessPeer(&can, 0, 99), CUDA_ERROR_INVALID_DEVICE);
  int supported = 7;
  OK(cu.DeviceGetP2PAttribute(&supported, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, other));
  SAME(supported, can);
}

/* "Returns CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED if direct access of peerContext from the current context
 * has already been enabled"; "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED if direct peer access has not yet been
 * enabled." */
RULE(access_is_enabled_once) {
  CUcontext there = peer();
  GIVES(cu.CtxDisablePeerAccess(there), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  OK(cu.CtxEnablePeerAccess(there, 0));
  GIVES(cu.CtxEnablePeerAccess(there, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  OK(cu.CtxDisablePeerAccess(there));
  GIVES(cu.CtxDisablePeerAccess(there), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

/* "Access granted by this call is unidirectional." */
RULE(access_is_one_way) {
  CUcontext here = NULL, there = peer();
  OK(cu.CtxGetCurrent(&here));
  OK(cu.CtxEnablePeerAccess(there, 0));
  OK(cu.CtxPushCurrent(there));
  GIVES(cu.CtxDisablePeerAccess(here), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  OK(cu.CtxEnablePeerAccess(here, 0));
  OK(cu.CtxDisablePeerAccess(here));
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.CtxDisablePeerAccess(there));
}

/* "Returns CUDA_ERROR_INVALID_CONTEXT if [...] peerContext is not a valid context, or if the current
 * context is peerContext. Returns CUDA_ERROR_INVALID_VALUE if Flags is not 0." */
RULE(peers_are_checked) {
  CUcontext here = NULL, there = peer();
  OK(cu.CtxGetCurrent(&here));
  GIVES(cu.CtxEnablePeerAccess(here, 0), CUDA_ERROR_INVALID_CONTEXT);
  GIVES(cu.CtxEnablePeerAccess(there, 1), CUDA_ERROR_INVALID_VALUE);
  GIVES(cu.CtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
}

/* "On success all allocations from peerContext will immediately be accessible by the current context", old
 * and new ones. */
RULE(peer_memory_is_reached) {
  enum { BYTES = 4096 };
  CUcontext there = peer();
  OK(cu.CtxPushCurrent(there));
  CUdeviceptr old = must_alloc(BYTES);
  OK(cu.MemsetD8(old, 1, BYTES));
  OK(cu.CtxSynchronize());
  OK(cu.CtxPopCurrent(NULL));
  OK(cu.CtxEnablePeerAccess(there, 0));
  OK(cu.CtxPushCurrent(there));
  CUdeviceptr new = must_alloc(BYTES);
  OK(cu.CtxPopCurrent(NULL));
  CUdeviceptr ours = must_alloc(BYTES);
  OK(cu.MemcpyDtoD(ours, old, BYTES));
  OK(cu.MemcpyDtoD(new, ours, BYTES));
  must_hold(new, 1, BYTES);
  OK(cu.MemsetD8(new, 2, BYTES));
  must_hold(new, 2, BYTES);
  OK(cu.CtxDisablePeerAccess(there));
  OK(cu.MemFree(ours));
  OK(cu.MemFree(old));
  OK(cu.MemFree(new));
}
