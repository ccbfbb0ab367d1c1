"""CuPy with all device memory from luma: arrays on two streams, a graph, out of memory.

    python arrays_on_luma.py LIBLUMA
"""

import sys

import cupy
import numpy
from luma_allocator import Luma

COUNT = 1 << 20


def pinned(value):
    array = numpy.frombuffer(cupy.cuda.alloc_pinned_memory(4 * COUNT), numpy.float32, COUNT)
    array[:] = value
    return array


def two_streams(luma):
    """What one stream made and another one copies may be freed when the copy is queued."""
    one, two = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    ones, twos = pinned(1), pinned(2)
    with two:
        result, scratch = cupy.empty(COUNT, numpy.float32), cupy.empty(COUNT, numpy.float32)
    for _ in range(3):
        with one:
            array = cupy.empty(COUNT, numpy.float32)
            array.set(ones)
        two.wait_event(one.record())
        with two:
            scratch.data.copy_from_device_async(array.data, array.nbytes)
            result.data.copy_from_device_async(array.data, array.nbytes)
        luma.record_stream(array, two)
        del array
        with one:
            other = cupy.empty(COUNT, numpy.float32)
            other.set(twos)
        assert (result.get(stream=two) == 1).all()
        assert (other.get(stream=one) == 2).all()
        del other


def graph():
    """What is allocated in a capture is the graph's."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        source, kept = cupy.empty(COUNT, numpy.float32), cupy.empty(COUNT, numpy.float32)
        stream.begin_capture()
        inner = cupy.empty(COUNT, numpy.float32)
        inner.data.copy_from_device_async(source.data, source.nbytes)
        kept.data.copy_from_device_async(inner.data, inner.nbytes)
        del inner
        made = stream.end_capture()
        for value in (3, 4):
            source.set(pinned(value))
            made.launch()
            assert (kept.get() == value).all()


def out_of_memory(luma):
    try:
        cupy.empty(1 << 50, numpy.uint8)
    except MemoryError as error:
        assert "out of memory" in str(error)
    else:
        raise AssertionError("more than there is was given")
    assert luma.stats().out_of_memory_count == 1


def main():
    luma = Luma(sys.argv[1]).install()
    two_streams(luma)
    graph()
    (cupy.arange(COUNT, dtype=numpy.float32) * 2 + 1).sum().get()
    out_of_memory(luma)
    cupy.cuda.Device().synchronize()
    stats = luma.stats()
    print(f"{stats.alloc_calls} allocations, {stats.peak_bytes >> 10} KiB in use at most")
    luma.empty_cache()
    stats = luma.stats()
    assert stats.live_blocks == 0 and not luma.streams, stats.live_blocks
    assert stats.reserved_bytes == 0 and stats.cuda_malloc_calls == stats.cuda_free_calls, stats.reserved_bytes
    print("CuPy on luma: ok")


if __name__ == "__main__":
    main()
