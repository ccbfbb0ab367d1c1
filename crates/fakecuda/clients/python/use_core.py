"""The driver through cuda-core."""

import double
import numpy
from cuda.core import Device, EventOptions, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

COUNT = 10_000


def host_array(buffer):
    return numpy.from_dlpack(buffer).view(numpy.uint8)


def copies(device):
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource()
    there, back = pinned.allocate(COUNT), pinned.allocate(COUNT)
    pattern = numpy.arange(COUNT, dtype=numpy.uint32).astype(numpy.uint8)
    host_array(there)[:] = pattern
    host_array(back)[:] = 0
    first = device.memory_resource.allocate(COUNT, stream=stream)
    second = device.memory_resource.allocate(COUNT, stream=stream)
    first.copy_from(there, stream=stream)
    second.copy_from(first, stream=stream)
    second.copy_to(back, stream=stream)
    stream.sync()
    assert (host_array(back) == pattern).all()
    second.fill(7, stream=stream)
    second.copy_to(back, stream=stream)
    stream.sync()
    assert (host_array(back) == 7).all()
    first.close(stream)
    second.close(stream)
    stream.sync()


def events(device):
    one, two = device.create_stream(), device.create_stream()
    options = EventOptions(timing_enabled=True)
    block = device.memory_resource.allocate(COUNT, stream=one)
    start = one.record(options=options)
    block.fill(3, stream=one)
    end = one.record(options=options)
    two.wait(end)
    back = LegacyPinnedMemoryResource().allocate(COUNT)
    block.copy_to(back, stream=two)
    two.sync()
    assert end.is_done
    assert end - start >= 0
    assert (host_array(back) == 3).all()
    block.close(two)
    two.sync()


def kernels(device):
    double.register_fill()
    fill = ObjectCode.from_ptx(double.FILL).get_kernel("fill")
    stream = device.create_stream()
    block = device.memory_resource.allocate(COUNT, stream=stream)
    back = LegacyPinnedMemoryResource().allocate(COUNT)
    block.fill(0, stream=stream)
    config = LaunchConfig(grid=COUNT // 100, block=100)
    launch(stream, config, fill, block, numpy.uint32(COUNT - 1), numpy.uint32(5))
    block.copy_to(back, stream=stream)
    stream.sync()
    found = host_array(back)
    assert (found[: COUNT - 1] == 5).all() and found[COUNT - 1] == 0
    block.close(stream)
    stream.sync()


def main():
    device = Device(0)
    device.set_current()
    print(device.name, device.compute_capability)
    copies(device)
    events(device)
    kernels(device)
    # Not device.sync(), which is a call of the runtime that is built into cuda-bindings.
    device.default_stream.sync()
    print("cuda-core: ok")


if __name__ == "__main__":
    main()
