"""The driver through numba-cuda, with a kernel that it compiles."""

import ctypes

import double
import numpy
from numba import cuda

COUNT = 10_000


@cuda.jit
def fill(out, value):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = value


def register_fill():
    """A one-dimensional array is seven parameters: two pointers of the host's, the number of elements, the
    bytes of one, the address, the shape, the strides."""

    def stand_in(launch, parameters):
        words = [int.from_bytes(parameter, "little") for parameter in parameters]
        count, size, address, value = words[2], words[3], words[4], words[7]
        assert size == 1
        threads = launch.grid[0] * launch.block[0]
        ctypes.memset(double.host_pointer(address), value, min(count, threads))

    double.register("fill", [8] * 8, stand_in)


def copies():
    pattern = numpy.arange(COUNT, dtype=numpy.float32)
    block = cuda.to_device(pattern)
    assert (block.copy_to_host() == pattern).all()
    assert (block[100:200].copy_to_host() == pattern[100:200]).all()
    other = cuda.device_array_like(block)
    other.copy_to_device(block)
    assert (other.copy_to_host() == pattern).all()
    free, total = cuda.current_context().get_memory_info()
    assert free < total


def streams():
    stream = cuda.stream()
    start, end = cuda.event(), cuda.event()
    there = cuda.pinned_array(COUNT, dtype=numpy.uint8)
    there[:] = 4
    start.record(stream)
    block = cuda.to_device(there, stream=stream)
    end.record(stream)
    back = cuda.pinned_array(COUNT, dtype=numpy.uint8)
    block.copy_to_host(back, stream=stream)
    stream.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    assert (back == 4).all()


def kernels():
    register_fill()
    block = cuda.to_device(numpy.zeros(COUNT, dtype=numpy.uint8))
    fill[COUNT // 200, 100](block, 3)
    cuda.synchronize()
    found = block.copy_to_host()
    assert (found[: COUNT // 2] == 3).all() and (found[COUNT // 2 :] == 0).all()
    # One pointer for host and device.
    managed = cuda.managed_array(COUNT, dtype=numpy.uint8)
    managed[:] = 6
    fill[COUNT // 200, 100](managed, 7)
    cuda.synchronize()
    assert (managed[: COUNT // 2] == 7).all() and (managed[COUNT // 2 :] == 6).all()


def main():
    print(cuda.get_current_device().name)
    copies()
    streams()
    kernels()
    print("numba-cuda: ok")


if __name__ == "__main__":
    main()
