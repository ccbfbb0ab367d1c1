/* The driver's functions that the suite calls, each with the CUDA version that brought the form which
 * the header declares under that name: what cuGetProcAddress is asked for.
 *
 * `cu.MemAlloc(...)` calls the function that the header calls cuMemAlloc, whichever symbol stands
 * behind that name. What a driver lacks ends the rule with a line that says so. */
#ifndef FAKECUDA_SUITE_DRIVER_H
#define FAKECUDA_SUITE_DRIVER_H

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
/* There the header makes a function of its own of cuGetProcAddress. */
#define DRIVER_LOOK_UP(FUNCTION)
#else
#define DRIVER_LOOK_UP(FUNCTION) FUNCTION(GetProcAddress, 12000)
#endif

#define DRIVER_FUNCTIONS(FUNCTION) \
  DRIVER_LOOK_UP(FUNCTION) \
  FUNCTION(Array3DCreate, 3020) \
  FUNCTION(Array3DGetDescriptor, 3020) \
  FUNCTION(ArrayCreate, 3020) \
  FUNCTION(ArrayDestroy, 2000) \
  FUNCTION(ArrayGetDescriptor, 3020) \
  FUNCTION(CtxCreate, 12050) \
  FUNCTION(CtxDestroy, 4000) \
  FUNCTION(CtxDisablePeerAccess, 4000) \
  FUNCTION(CtxEnablePeerAccess, 4000) \
  FUNCTION(CtxGetApiVersion, 3020) \
  FUNCTION(CtxGetCurrent, 4000) \
  FUNCTION(CtxGetDevice, 2000) \
  FUNCTION(CtxGetFlags, 7000) \
  FUNCTION(CtxGetId, 12000) \
  FUNCTION(CtxGetLimit, 3010) \
  FUNCTION(CtxGetStreamPriorityRange, 5050) \
  FUNCTION(CtxPopCurrent, 4000) \
  FUNCTION(CtxPushCurrent, 4000) \
  FUNCTION(CtxSetCurrent, 4000) \
  FUNCTION(CtxSetLimit, 3010) \
  FUNCTION(CtxSynchronize, 2000) \
  FUNCTION(DeviceCanAccessPeer, 4000) \
  FUNCTION(DeviceGet, 2000) \
  FUNCTION(DeviceGetAttribute, 2000) \
  FUNCTION(DeviceGetByPCIBusId, 4010) \
  FUNCTION(DeviceGetCount, 2000) \
  FUNCTION(DeviceGetDefaultMemPool, 11020) \
  FUNCTION(DeviceGetGraphMemAttribute, 11040) \
  FUNCTION(DeviceGetMemPool, 11020) \
  FUNCTION(DeviceGetName, 2000) \
  FUNCTION(DeviceGetP2PAttribute, 8000) \
  FUNCTION(DeviceGetPCIBusId, 4010) \
  FUNCTION(DeviceGetUuid, 11040) \
  FUNCTION(DeviceGraphMemTrim, 11040) \
  FUNCTION(DevicePrimaryCtxGetState, 7000) \
  FUNCTION(DevicePrimaryCtxRelease, 11000) \
  FUNCTION(DevicePrimaryCtxReset, 11000) \
  FUNCTION(DevicePrimaryCtxRetain, 7000) \
  FUNCTION(DevicePrimaryCtxSetFlags, 11000) \
  FUNCTION(DeviceSetMemPool, 11020) \
  FUNCTION(DeviceTotalMem, 3020) \
  FUNCTION(DriverGetVersion, 2020) \
  FUNCTION(EventCreate, 2000) \
  FUNCTION(EventDestroy, 4000) \
  FUNCTION(EventElapsedTime, 12080) \
  FUNCTION(EventQuery, 2000) \
  FUNCTION(EventRecord, 2000) \
  FUNCTION(EventSynchronize, 2000) \
  FUNCTION(FuncGetAttribute, 2020) \
  FUNCTION(FuncGetModule, 11000) \
  FUNCTION(FuncGetName, 12030) \
  FUNCTION(FuncGetParamInfo, 12040) \
  FUNCTION(FuncSetAttribute, 9000) \
  FUNCTION(GetErrorName, 6000) \
  FUNCTION(GetErrorString, 6000) \
  FUNCTION(GetExportTable, 3000) \
  FUNCTION(GraphAddChildGraphNode, 10000) \
  FUNCTION(GraphAddDependencies, 12030) \
  FUNCTION(GraphAddEmptyNode, 10000) \
  FUNCTION(GraphAddEventRecordNode, 11010) \
  FUNCTION(GraphAddEventWaitNode, 11010) \
  FUNCTION(GraphAddHostNode, 10000) \
  FUNCTION(GraphAddMemAllocNode, 11040) \
  FUNCTION(GraphAddMemFreeNode, 11040) \
  FUNCTION(GraphAddMemcpyNode, 10000) \
  FUNCTION(GraphAddMemsetNode, 10000) \
  FUNCTION(GraphClone, 10000) \
  FUNCTION(GraphCreate, 10000) \
  FUNCTION(GraphDestroy, 10000) \
  FUNCTION(GraphDestroyNode, 10000) \
  FUNCTION(GraphExecDestroy, 10000) \
  FUNCTION(GraphExecHostNodeSetParams, 10020) \
  FUNCTION(GraphExecMemsetNodeSetParams, 10020) \
  FUNCTION(GraphExecUpdate, 12000) \
  FUNCTION(GraphGetEdges, 12030) \
  FUNCTION(GraphGetNodes, 10000) \
  FUNCTION(GraphGetRootNodes, 10000) \
  FUNCTION(GraphHostNodeGetParams, 10000) \
  FUNCTION(GraphInstantiateWithFlags, 11040) \
  FUNCTION(GraphLaunch, 10000) \
  FUNCTION(GraphMemAllocNodeGetParams, 11040) \
  FUNCTION(GraphMemFreeNodeGetParams, 11040) \
  FUNCTION(GraphNodeGetDependencies, 12030) \
  FUNCTION(GraphNodeGetType, 10000) \
  FUNCTION(GraphReleaseUserObject, 11030) \
  FUNCTION(GraphRemoveDependencies, 12030) \
  FUNCTION(GraphRetainUserObject, 11030) \
  FUNCTION(Init, 2000) \
  FUNCTION(IpcCloseMemHandle, 4010) \
  FUNCTION(IpcGetEventHandle, 4010) \
  FUNCTION(IpcGetMemHandle, 4010) \
  FUNCTION(IpcOpenEventHandle, 4010) \
  FUNCTION(IpcOpenMemHandle, 11000) \
  FUNCTION(KernelGetFunction, 12000) \
  FUNCTION(LaunchCooperativeKernel, 9000) \
  FUNCTION(LaunchHostFunc, 10000) \
  FUNCTION(LaunchKernel, 4000) \
  FUNCTION(LaunchKernelEx, 11060) \
  FUNCTION(LibraryGetGlobal, 12000) \
  FUNCTION(LibraryGetKernel, 12000) \
  FUNCTION(LibraryGetKernelCount, 12040) \
  FUNCTION(LibraryLoadData, 12000) \
  FUNCTION(LibraryUnload, 12000) \
  FUNCTION(MemAddressFree, 10020) \
  FUNCTION(MemAddressReserve, 10020) \
  FUNCTION(MemAdvise, 12020) \
  FUNCTION(MemAlloc, 3020) \
  FUNCTION(MemAllocAsync, 11020) \
  FUNCTION(MemAllocFromPoolAsync, 11020) \
  FUNCTION(MemAllocHost, 3020) \
  FUNCTION(MemAllocManaged, 6000) \
  FUNCTION(MemAllocPitch, 3020) \
  FUNCTION(MemCreate, 10020) \
  FUNCTION(MemExportToShareableHandle, 10020) \
  FUNCTION(MemFree, 3020) \
  FUNCTION(MemFreeAsync, 11020) \
  FUNCTION(MemFreeHost, 2000) \
  FUNCTION(MemGetAccess, 10020) \
  FUNCTION(MemGetAddressRange, 3020) \
  FUNCTION(MemGetAllocationGranularity, 10020) \
  FUNCTION(MemGetAllocationPropertiesFromHandle, 10020) \
  FUNCTION(MemGetInfo, 3020) \
  FUNCTION(MemHostAlloc, 2020) \
  FUNCTION(MemHostGetDevicePointer, 3020) \
  FUNCTION(MemHostGetFlags, 2030) \
  FUNCTION(MemHostRegister, 6050) \
  FUNCTION(MemHostUnregister, 4000) \
  FUNCTION(MemImportFromShareableHandle, 10020) \
  FUNCTION(MemMap, 10020) \
  FUNCTION(MemPoolCreate, 11020) \
  FUNCTION(MemPoolDestroy, 11020) \
  FUNCTION(MemPoolExportPointer, 11020) \
  FUNCTION(MemPoolExportToShareableHandle, 11020) \
  FUNCTION(MemPoolGetAccess, 11020) \
  FUNCTION(MemPoolGetAttribute, 11020) \
  FUNCTION(MemPoolImportFromShareableHandle, 11020) \
  FUNCTION(MemPoolImportPointer, 11020) \
  FUNCTION(MemPoolSetAccess, 11020) \
  FUNCTION(MemPoolSetAttribute, 11020) \
  FUNCTION(MemPoolTrimTo, 11020) \
  FUNCTION(MemPrefetchAsync, 12020) \
  FUNCTION(MemRangeGetAttribute, 8000) \
  FUNCTION(MemRelease, 10020) \
  FUNCTION(MemRetainAllocationHandle, 11000) \
  FUNCTION(MemSetAccess, 10020) \
  FUNCTION(MemUnmap, 10020) \
  FUNCTION(Memcpy, 4000) \
  FUNCTION(Memcpy2D, 3020) \
  FUNCTION(Memcpy2DAsync, 3020) \
  FUNCTION(Memcpy2DUnaligned, 3020) \
  FUNCTION(Memcpy3D, 3020) \
  FUNCTION(Memcpy3DAsync, 3020) \
  FUNCTION(MemcpyAsync, 4000) \
  FUNCTION(MemcpyAtoA, 3020) \
  FUNCTION(MemcpyAtoD, 3020) \
  FUNCTION(MemcpyAtoH, 3020) \
  FUNCTION(MemcpyAtoHAsync, 3020) \
  FUNCTION(MemcpyBatchAsync, 13000) \
  FUNCTION(MemcpyDtoA, 3020) \
  FUNCTION(MemcpyDtoD, 3020) \
  FUNCTION(MemcpyDtoDAsync, 3020) \
  FUNCTION(MemcpyDtoH, 3020) \
  FUNCTION(MemcpyDtoHAsync, 3020) \
  FUNCTION(MemcpyHtoA, 3020) \
  FUNCTION(MemcpyHtoAAsync, 3020) \
  FUNCTION(MemcpyHtoD, 3020) \
  FUNCTION(MemcpyHtoDAsync, 3020) \
  FUNCTION(MemcpyPeer, 4000) \
  FUNCTION(MemcpyPeerAsync, 4000) \
  FUNCTION(MemsetD16, 3020) \
  FUNCTION(MemsetD16Async, 3020) \
  FUNCTION(MemsetD2D16, 3020) \
  FUNCTION(MemsetD2D32, 3020) \
  FUNCTION(MemsetD2D8, 3020) \
  FUNCTION(MemsetD32, 3020) \
  FUNCTION(MemsetD32Async, 3020) \
  FUNCTION(MemsetD8, 3020) \
  FUNCTION(MemsetD8Async, 3020) \
  FUNCTION(MipmappedArrayCreate, 5000) \
  FUNCTION(MipmappedArrayDestroy, 5000) \
  FUNCTION(MipmappedArrayGetLevel, 5000) \
  FUNCTION(ModuleEnumerateFunctions, 12040) \
  FUNCTION(ModuleGetFunction, 2000) \
  FUNCTION(ModuleGetFunctionCount, 12040) \
  FUNCTION(ModuleGetGlobal, 3020) \
  FUNCTION(ModuleLoadData, 2000) \
  FUNCTION(ModuleUnload, 2000) \
  FUNCTION(OccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  FUNCTION(OccupancyMaxPotentialBlockSize, 6050) \
  FUNCTION(PointerGetAttribute, 4000) \
  FUNCTION(PointerGetAttributes, 7000) \
  FUNCTION(PointerSetAttribute, 6000) \
  FUNCTION(StreamAddCallback, 5000) \
  FUNCTION(StreamBatchMemOp, 11070) \
  FUNCTION(StreamBeginCapture, 10010) \
  FUNCTION(StreamBeginCaptureToGraph, 12030) \
  FUNCTION(StreamCreate, 2000) \
  FUNCTION(StreamCreateWithPriority, 5050) \
  FUNCTION(StreamDestroy, 4000) \
  FUNCTION(StreamEndCapture, 10000) \
  FUNCTION(StreamGetCaptureInfo, 12030) \
  FUNCTION(StreamGetCtx, 9020) \
  FUNCTION(StreamGetFlags, 5050) \
  FUNCTION(StreamGetId, 12000) \
  FUNCTION(StreamGetPriority, 5050) \
  FUNCTION(StreamIsCapturing, 10000) \
  FUNCTION(StreamQuery, 2000) \
  FUNCTION(StreamSynchronize, 2000) \
  FUNCTION(StreamUpdateCaptureDependencies, 12030) \
  FUNCTION(StreamWaitEvent, 3020) \
  FUNCTION(StreamWaitValue32, 11070) \
  FUNCTION(StreamWriteValue32, 11070) \
  FUNCTION(StreamWriteValue64, 11070) \
  FUNCTION(ThreadExchangeStreamCaptureMode, 10010) \
  FUNCTION(UserObjectCreate, 11030) \
  FUNCTION(UserObjectRelease, 11030) \
  FUNCTION(UserObjectRetain, 11030)

typedef struct {
#define FIELD(name, version) __typeof__(cu##name) *name;
  DRIVER_FUNCTIONS(FIELD)
#undef FIELD
} driver_t;

extern driver_t cu;

#endif
