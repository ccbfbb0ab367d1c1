// The driver's functions, found the way NVIDIA's runtime finds them: libcuda.so.1 is opened by name,
// cuGetProcAddress is taken from it by dlsym, and everything else through that, each name with the
// version of the prototype that it is called by here. A row that names the wrong version does not
// compile, since the type of the pointer carries it.
#pragma once

// Makes the runtime's header declare the plain and the per-thread name of each function, so that the
// compiler checks both definitions; and keeps cuda.h from renaming the driver's.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

// The wheels carry no cudaProfiler.h, which has these.
typedef CUresult(CUDAAPI *PFN_cuProfilerStart_v4000)();
typedef CUresult(CUDAAPI *PFN_cuProfilerStop_v4000)();

// What the runtimes of the two major versions call differently.
#if CUDART_VERSION >= 13000
#define RT_DRIVER_FUNCTIONS_OF_VERSION(F) \
    F(KernelGetParamCount, 13020) \
    F(MemGetDefaultMemPool, 13000) \
    F(MemGetMemPool, 13000) \
    F(MemSetMemPool, 13000)
#define RT_STREAM_FUNCTIONS_OF_VERSION(F) \
    F(LaunchHostFunc, 13010, 13010, ptsz) \
    F(MemcpyBatchAsync, 13000, 13000, ptsz)
#else
#define RT_DRIVER_FUNCTIONS_OF_VERSION(F)
#define RT_STREAM_FUNCTIONS_OF_VERSION(F) F(MemcpyBatchAsync, 12080, 12080, ptsz)
#endif

// F(name, version)
#define RT_DRIVER_FUNCTIONS(F) \
    F(CtxDisablePeerAccess, 4000) \
    F(CtxEnablePeerAccess, 4000) \
    F(CtxGetCacheConfig, 3020) \
    F(CtxGetCurrent, 4000) \
    F(CtxGetDevice, 2000) \
    F(CtxGetFlags, 7000) \
    F(CtxGetLimit, 3010) \
    F(CtxGetStreamPriorityRange, 5050) \
    F(CtxResetPersistingL2Cache, 11000) \
    F(CtxSetCacheConfig, 3020) \
    F(CtxSetCurrent, 4000) \
    F(CtxSetLimit, 3010) \
    F(CtxSynchronize, 2000) \
    F(DeviceCanAccessPeer, 4000) \
    F(DeviceGet, 2000) \
    F(DeviceGetAttribute, 2000) \
    F(DeviceGetByPCIBusId, 4010) \
    F(DeviceGetCount, 2000) \
    F(DeviceGetDefaultMemPool, 11020) \
    F(DeviceGetGraphMemAttribute, 11040) \
    F(DeviceGetLuid, 10000) \
    F(DeviceGetMemPool, 11020) \
    F(DeviceGetName, 2000) \
    F(DeviceGetP2PAttribute, 8000) \
    F(DeviceGetPCIBusId, 4010) \
    F(DeviceGetUuid, 11040) \
    F(DeviceGraphMemTrim, 11040) \
    F(DevicePrimaryCtxGetState, 7000) \
    F(DevicePrimaryCtxReset, 11000) \
    F(DevicePrimaryCtxRetain, 7000) \
    F(DevicePrimaryCtxSetFlags, 11000) \
    F(DeviceSetGraphMemAttribute, 11040) \
    F(DeviceSetMemPool, 11020) \
    F(DeviceTotalMem, 3020) \
    F(DriverGetVersion, 2020) \
    F(EventCreate, 2000) \
    F(EventDestroy, 4000) \
    F(EventElapsedTime, 2000) \
    F(EventElapsedTime, 12080) \
    F(EventQuery, 2000) \
    F(EventSynchronize, 2000) \
    F(FlushGPUDirectRDMAWrites, 11030) \
    F(GraphAddChildGraphNode, 10000) \
    F(GraphAddDependencies, 10000) \
    F(GraphAddDependencies, 12030) \
    F(GraphAddEmptyNode, 10000) \
    F(GraphAddEventRecordNode, 11010) \
    F(GraphAddEventWaitNode, 11010) \
    F(GraphAddHostNode, 10000) \
    F(GraphAddKernelNode, 12000) \
    F(GraphAddMemAllocNode, 11040) \
    F(GraphAddMemFreeNode, 11040) \
    F(GraphAddMemcpyNode, 10000) \
    F(GraphAddMemsetNode, 10000) \
    F(GraphChildGraphNodeGetGraph, 10000) \
    F(GraphClone, 10000) \
    F(GraphCreate, 10000) \
    F(GraphDebugDotPrint, 11030) \
    F(GraphDestroy, 10000) \
    F(GraphDestroyNode, 10000) \
    F(GraphEventRecordNodeGetEvent, 11010) \
    F(GraphEventRecordNodeSetEvent, 11010) \
    F(GraphEventWaitNodeGetEvent, 11010) \
    F(GraphEventWaitNodeSetEvent, 11010) \
    F(GraphExecChildGraphNodeSetParams, 11010) \
    F(GraphExecDestroy, 10000) \
    F(GraphExecEventRecordNodeSetEvent, 11010) \
    F(GraphExecEventWaitNodeSetEvent, 11010) \
    F(GraphExecGetFlags, 12000) \
    F(GraphExecHostNodeSetParams, 10020) \
    F(GraphExecKernelNodeSetParams, 12000) \
    F(GraphExecMemcpyNodeSetParams, 10020) \
    F(GraphExecMemsetNodeSetParams, 10020) \
    F(GraphExecUpdate, 12000) \
    F(GraphGetEdges, 10000) \
    F(GraphGetEdges, 12030) \
    F(GraphGetNodes, 10000) \
    F(GraphGetRootNodes, 10000) \
    F(GraphHostNodeGetParams, 10000) \
    F(GraphHostNodeSetParams, 10000) \
    F(GraphInstantiateWithFlags, 11040) \
    F(GraphKernelNodeGetParams, 12000) \
    F(GraphKernelNodeSetParams, 12000) \
    F(GraphMemAllocNodeGetParams, 11040) \
    F(GraphMemFreeNodeGetParams, 11040) \
    F(GraphMemcpyNodeGetParams, 10000) \
    F(GraphMemcpyNodeSetParams, 10000) \
    F(GraphMemsetNodeGetParams, 10000) \
    F(GraphMemsetNodeSetParams, 10000) \
    F(GraphNodeFindInClone, 10000) \
    F(GraphNodeGetDependencies, 10000) \
    F(GraphNodeGetDependencies, 12030) \
    F(GraphNodeGetDependentNodes, 10000) \
    F(GraphNodeGetDependentNodes, 12030) \
    F(GraphNodeGetEnabled, 11060) \
    F(GraphNodeGetType, 10000) \
    F(GraphNodeSetEnabled, 11060) \
    F(GraphReleaseUserObject, 11030) \
    F(GraphRemoveDependencies, 10000) \
    F(GraphRemoveDependencies, 12030) \
    F(GraphRetainUserObject, 11030) \
    F(Init, 2000) \
    F(IpcCloseMemHandle, 4010) \
    F(IpcGetEventHandle, 4010) \
    F(IpcGetMemHandle, 4010) \
    F(IpcOpenEventHandle, 4010) \
    F(IpcOpenMemHandle, 11000) \
    F(KernelGetAttribute, 12000) \
    F(KernelGetFunction, 12000) \
    F(KernelGetName, 12030) \
    F(KernelGetParamInfo, 12040) \
    F(KernelSetAttribute, 12000) \
    F(KernelSetCacheConfig, 12000) \
    F(LibraryEnumerateKernels, 12040) \
    F(LibraryGetGlobal, 12000) \
    F(LibraryGetKernel, 12000) \
    F(LibraryGetKernelCount, 12040) \
    F(LibraryGetManaged, 12000) \
    F(LibraryGetUnifiedFunction, 12000) \
    F(LibraryLoadData, 12000) \
    F(LibraryLoadFromFile, 12000) \
    F(LibraryUnload, 12000) \
    F(MemAdvise, 8000) \
    F(MemAdvise, 12020) \
    F(MemAlloc, 3020) \
    F(MemAllocManaged, 6000) \
    F(MemAllocPitch, 3020) \
    F(MemFree, 3020) \
    F(MemFreeHost, 2000) \
    F(MemGetInfo, 3020) \
    F(MemHostAlloc, 2020) \
    F(MemHostGetDevicePointer, 3020) \
    F(MemHostGetFlags, 2030) \
    F(MemHostRegister, 6050) \
    F(MemHostUnregister, 4000) \
    F(MemPoolCreate, 11020) \
    F(MemPoolDestroy, 11020) \
    F(MemPoolExportPointer, 11020) \
    F(MemPoolExportToShareableHandle, 11020) \
    F(MemPoolGetAccess, 11020) \
    F(MemPoolGetAttribute, 11020) \
    F(MemPoolImportFromShareableHandle, 11020) \
    F(MemPoolImportPointer, 11020) \
    F(MemPoolSetAccess, 11020) \
    F(MemPoolSetAttribute, 11020) \
    F(MemPoolTrimTo, 11020) \
    F(MemRangeGetAttribute, 8000) \
    F(MemRangeGetAttributes, 8000) \
    F(OccupancyAvailableDynamicSMemPerBlock, 10020) \
    F(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
    F(OccupancyMaxActiveClusters, 11070) \
    F(OccupancyMaxPotentialClusterSize, 11070) \
    F(PointerGetAttributes, 7000) \
    F(ProfilerStart, 4000) \
    F(ProfilerStop, 4000) \
    F(StreamCreate, 2000) \
    F(StreamCreateWithPriority, 5050) \
    F(StreamDestroy, 4000) \
    F(ThreadExchangeStreamCaptureMode, 10010) \
    F(UserObjectCreate, 11030) \
    F(UserObjectRelease, 11030) \
    F(UserObjectRetain, 11030) \
    RT_DRIVER_FUNCTIONS_OF_VERSION(F)

// The functions that act on a stream, or on the default stream: each has a form for which stream 0 is
// the legacy default stream and one for which it is the calling thread's.
// F(name, version, version of the per-thread form, suffix of its type)
#define RT_STREAM_FUNCTIONS(F) \
    F(EventRecord, 2000, 7000, ptsz) \
    F(EventRecordWithFlags, 11010, 11010, ptsz) \
    F(GraphInstantiateWithParams, 12000, 12000, ptsz) \
    F(GraphLaunch, 10000, 10000, ptsz) \
    F(GraphUpload, 11010, 11010, ptsz) \
    F(LaunchCooperativeKernel, 9000, 9000, ptsz) \
    F(LaunchHostFunc, 10000, 10000, ptsz) \
    F(LaunchKernel, 4000, 7000, ptsz) \
    F(LaunchKernelEx, 11060, 11060, ptsz) \
    F(MemAllocAsync, 11020, 11020, ptsz) \
    F(MemAllocFromPoolAsync, 11020, 11020, ptsz) \
    F(MemFreeAsync, 11020, 11020, ptsz) \
    F(MemPrefetchAsync, 8000, 8000, ptsz) \
    F(MemPrefetchAsync, 12020, 12020, ptsz) \
    F(Memcpy, 4000, 7000, ptds) \
    F(Memcpy2DAsync, 3020, 7000, ptsz) \
    F(Memcpy2DUnaligned, 3020, 7000, ptds) \
    F(Memcpy3D, 3020, 7000, ptds) \
    F(Memcpy3DAsync, 3020, 7000, ptsz) \
    F(Memcpy3DPeer, 4000, 7000, ptds) \
    F(Memcpy3DPeerAsync, 4000, 7000, ptsz) \
    F(MemcpyAsync, 4000, 7000, ptsz) \
    F(MemcpyDtoD, 3020, 7000, ptds) \
    F(MemcpyDtoDAsync, 3020, 7000, ptsz) \
    F(MemcpyDtoH, 3020, 7000, ptds) \
    F(MemcpyDtoHAsync, 3020, 7000, ptsz) \
    F(MemcpyHtoD, 3020, 7000, ptds) \
    F(MemcpyHtoDAsync, 3020, 7000, ptsz) \
    F(MemcpyPeer, 4000, 7000, ptds) \
    F(MemcpyPeerAsync, 4000, 7000, ptsz) \
    F(MemsetD2D8, 3020, 7000, ptds) \
    F(MemsetD2D8Async, 3020, 7000, ptsz) \
    F(MemsetD8, 3020, 7000, ptds) \
    F(MemsetD8Async, 3020, 7000, ptsz) \
    F(StreamAddCallback, 5000, 7000, ptsz) \
    F(StreamAttachMemAsync, 6000, 7000, ptsz) \
    F(StreamBeginCapture, 10010, 10010, ptsz) \
    F(StreamBeginCaptureToGraph, 12030, 12030, ptsz) \
    F(StreamCopyAttributes, 11000, 11000, ptsz) \
    F(StreamEndCapture, 10000, 10000, ptsz) \
    F(StreamGetAttribute, 11000, 11000, ptsz) \
    F(StreamGetCaptureInfo, 10010, 10010, ptsz) \
    F(StreamGetCaptureInfo, 11030, 11030, ptsz) \
    F(StreamGetCaptureInfo, 12030, 12030, ptsz) \
    F(StreamGetDevice, 12080, 12080, ptsz) \
    F(StreamGetFlags, 5050, 7000, ptsz) \
    F(StreamGetId, 12000, 12000, ptsz) \
    F(StreamGetPriority, 5050, 7000, ptsz) \
    F(StreamIsCapturing, 10000, 10000, ptsz) \
    F(StreamQuery, 2000, 7000, ptsz) \
    F(StreamSetAttribute, 11000, 11000, ptsz) \
    F(StreamSynchronize, 2000, 7000, ptsz) \
    F(StreamUpdateCaptureDependencies, 11030, 11030, ptsz) \
    F(StreamUpdateCaptureDependencies, 12030, 12030, ptsz) \
    F(StreamWaitEvent, 3020, 7000, ptsz) \
    RT_STREAM_FUNCTIONS_OF_VERSION(F)

namespace rt {

// A name that is called by several prototypes has a member for each: EventElapsedTime_v12080.
struct StreamFunctions {
#define RT_MEMBER(name, version, per_thread_version, suffix) PFN_cu##name##_v##version name##_v##version;
    RT_STREAM_FUNCTIONS(RT_MEMBER)
#undef RT_MEMBER
};

struct Driver {
#define RT_MEMBER(name, version) PFN_cu##name##_v##version name##_v##version;
    RT_DRIVER_FUNCTIONS(RT_MEMBER)
#undef RT_MEMBER
    PFN_cuGetProcAddress_v12000 GetProcAddress;
    StreamFunctions legacy;
    StreamFunctions per_thread;
};

// Valid once start() has succeeded. A function that the installed driver lacks answers
// cudaErrorCallRequiresNewerDriver.
extern Driver driver;

// Opens the driver and fills the table; does not initialise the driver. Answers
// cudaErrorInsufficientDriver where there is no driver or one without cuGetProcAddress.
int find_driver();

} // namespace rt
