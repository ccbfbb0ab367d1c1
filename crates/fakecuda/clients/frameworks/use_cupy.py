"""CuPy on the doubles: its pools, streams and events, and a kernel that NVRTC compiles."""

import pathlib
import sys

import cupy
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python"))
import ctypes  # noqa: E402

import double  # noqa: E402

COUNT = 10_000
runtime = cupy.cuda.runtime


def copies():
    pattern = numpy.arange(COUNT, dtype=numpy.float32)
    first = cupy.empty(COUNT, dtype=numpy.float32)
    first.set(pattern)
    assert (first.get() == pattern).all()
    second = cupy.empty_like(first)
    second.data.copy_from_device(first.data, first.nbytes)
    assert (second.get() == pattern).all()
    zeros = cupy.zeros(COUNT)
    assert not zeros.get().any()
    attributes = runtime.pointerGetAttributes(first.data.ptr)
    assert attributes.type == runtime.memoryTypeDevice


def pools():
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    before = pool.total_bytes()
    block = cupy.cuda.alloc(1 << 20)
    assert pool.used_bytes() >= 1 << 20
    address = block.ptr
    del block
    again = cupy.cuda.alloc(1 << 20)
    # From the pool's cache.
    assert again.ptr == address
    del again
    pool.free_all_blocks()
    assert pool.total_bytes() <= before
    free, total = cupy.cuda.Device().mem_info
    assert free <= total
    try:
        cupy.cuda.alloc(2 * total)
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    else:
        raise AssertionError("more than there is was given")


def allocators():
    counts = [0, 0]

    def alloc(size, _device):
        counts[0] += 1
        return runtime.malloc(size)

    def free(pointer, _device):
        counts[1] += 1
        runtime.free(pointer)

    cupy.cuda.set_allocator(cupy.cuda.PythonFunctionAllocator(alloc, free).malloc)
    array = cupy.empty(COUNT)
    array.set(numpy.full(COUNT, 3.0))
    assert (array.get() == 3).all()
    del array
    assert counts == [1, 1], counts
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    array = cupy.empty(COUNT)
    array.set(numpy.full(COUNT, 4.0))
    assert (array.get() == 4).all()
    del array
    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    array = cupy.empty(COUNT)
    array.set(numpy.full(COUNT, 5.0))
    assert (array.get() == 5).all()
    del array
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


def streams():
    one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    memory = cupy.cuda.alloc_pinned_memory(COUNT)
    there = numpy.frombuffer(memory, numpy.uint8, COUNT)
    there[:] = 7
    with one:
        array = cupy.empty(COUNT, dtype=numpy.uint8)
        start.record()
        array.set(there)
        end.record()
    two.wait_event(end)
    with two:
        found = array.get()
    two.synchronize()
    assert (found == 7).all()
    assert cupy.cuda.get_elapsed_time(start, end) >= 0
    assert end.done


def kernels():
    source = r"""
    extern "C" __global__ void fill(unsigned char *bytes, unsigned count, unsigned value) {
      unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
      if (at < count) bytes[at] = value;
    }"""
    double.register_fill()
    fill = cupy.RawKernel(source, "fill")
    array = cupy.zeros(COUNT, dtype=numpy.uint8)
    fill((COUNT // 100,), (100,), (array, numpy.uint32(COUNT - 1), numpy.uint32(9)))
    found = array.get()
    assert (found[: COUNT - 1] == 9).all() and found[COUNT - 1] == 0
    # A kernel with no stand-in is compiled, launched, and does nothing.
    (array * 2 + 1).get()


def main():
    print("runtime", runtime.runtimeGetVersion(), "driver", runtime.driverGetVersion())
    copies()
    pools()
    allocators()
    streams()
    kernels()
    cupy.cuda.Device().synchronize()
    print("CuPy: ok")


if __name__ == "__main__":
    main()
