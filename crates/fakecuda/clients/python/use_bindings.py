"""The driver through cuda-bindings."""

import ctypes

import double
from cuda.bindings import driver

COUNT = 10_000


def ok(answer):
    """What a call gave; it must have succeeded."""
    code, *values = answer
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if len(values) == 1 else values


def bytes_at(address, count):
    found = bytearray(count)
    ok(driver.cuMemcpyDtoH(found, address, count))
    return bytes(found)


def devices():
    assert ok(driver.cuDeviceGetCount()) >= 1
    device = ok(driver.cuDeviceGet(0))
    name = ok(driver.cuDeviceGetName(64, device))
    print(name.split(b"\0")[0].decode())
    major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert ok(driver.cuDeviceGetAttribute(major, device)) >= 3
    assert driver.cuDeviceGet(1000)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE
    code, text = driver.cuGetErrorName(driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    assert text == b"CUDA_ERROR_OUT_OF_MEMORY"
    return device


def memory():
    pattern = bytes(at % 251 for at in range(COUNT))
    block = ok(driver.cuMemAlloc(COUNT))
    ok(driver.cuMemcpyHtoD(block, pattern, COUNT))
    assert bytes_at(block, COUNT) == pattern
    base, size = ok(driver.cuMemGetAddressRange(int(block) + 77))
    # An allocator may stand between, and serve the block from a larger one.
    assert int(base) <= int(block) and int(base) + size >= int(block) + COUNT
    free, total = ok(driver.cuMemGetInfo())
    assert free < total
    refused = driver.cuMemAlloc(2 * total)
    assert refused[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    found = ok(driver.cuPointerGetAttribute(kind, block))
    assert found == driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    ok(driver.cuMemFree(block))
    assert driver.cuMemFree(block)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE


def streams():
    stream = ok(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    event = ok(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
    block = ok(driver.cuMemAllocAsync(COUNT, stream))
    ok(driver.cuMemsetD8Async(block, 5, COUNT, stream))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuEventSynchronize(event))
    assert bytes_at(block, COUNT) == bytes([5]) * COUNT
    ok(driver.cuMemFreeAsync(block, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuEventDestroy(event))
    ok(driver.cuStreamDestroy(stream))


def virtual_memory():
    prop = driver.CUmemAllocationProp()
    prop.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 0
    least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    size = ok(driver.cuMemGetAllocationGranularity(prop, least))
    one, two = (ok(driver.cuMemAddressReserve(size, 0, 0, 0)) for _ in range(2))
    handle = ok(driver.cuMemCreate(size, prop, 0))
    access = driver.CUmemAccessDesc()
    access.location = prop.location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    for at in (one, two):
        ok(driver.cuMemMap(at, size, 0, handle, 0))
        ok(driver.cuMemSetAccess(at, size, [access], 1))
    ok(driver.cuMemRelease(handle))
    ok(driver.cuMemsetD8(one, 9, size))
    ok(driver.cuCtxSynchronize())
    assert bytes_at(int(two) + size - 100, 100) == bytes([9]) * 100
    for at in (one, two):
        ok(driver.cuMemUnmap(at, size))
        ok(driver.cuMemAddressFree(at, size))


def kernels():
    double.register_fill()
    module = ok(driver.cuModuleLoadData(double.FILL))
    fill = ok(driver.cuModuleGetFunction(module, b"fill"))
    assert driver.cuModuleGetFunction(module, b"full")[0] == driver.CUresult.CUDA_ERROR_NOT_FOUND
    block = ok(driver.cuMemAlloc(COUNT))
    ok(driver.cuMemsetD8(block, 0, COUNT))
    stream = ok(driver.cuStreamCreate(0))
    arguments = (
        (block, COUNT - 1, 3),
        (None, ctypes.c_uint, ctypes.c_uint),
    )
    ok(driver.cuLaunchKernel(fill, COUNT // 100, 1, 1, 100, 1, 1, 0, stream, arguments, 0))
    ok(driver.cuStreamSynchronize(stream))
    assert bytes_at(block, COUNT) == bytes([3]) * (COUNT - 1) + b"\0"
    ok(driver.cuStreamDestroy(stream))
    ok(driver.cuMemFree(block))
    ok(driver.cuModuleUnload(module))


def main():
    ok(driver.cuInit(0))
    device = devices()
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(device))))
    memory()
    streams()
    virtual_memory()
    kernels()
    ok(driver.cuDevicePrimaryCtxRelease(device))
    print("cuda-bindings: ok")


if __name__ == "__main__":
    main()
