"""PyTorch on the doubles: its caching allocator, streams, events and graphs."""

import sys

import torch

COUNT = 10_000


def device(values):
    """Copied from the host: kernels that fill do nothing here."""
    return torch.empty(values.shape, dtype=values.dtype, device="cuda").copy_(values)


def copies():
    pattern = torch.arange(COUNT, dtype=torch.float32)
    first = device(pattern)
    assert torch.equal(first.cpu(), pattern)
    second = torch.empty_like(first)
    second.copy_(first)
    assert torch.equal(second.cpu(), pattern)
    pinned = torch.empty(COUNT, pin_memory=True)
    pinned.copy_(second, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert torch.equal(pinned, pattern)


def allocator():
    before = torch.cuda.memory_allocated()
    block = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() - before >= 1 << 20
    address = block.data_ptr()
    del block
    assert torch.cuda.memory_allocated() == before
    if torch.cuda.get_allocator_backend() == "native":
        again = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        # From the allocator's cache.
        assert again.data_ptr() == address
        del again
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert free <= total
    try:
        torch.empty(2 * total, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    else:
        raise AssertionError("more than there is was given")


def streams():
    side = torch.cuda.Stream()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    source = device(torch.full((COUNT,), 7.0))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        start.record()
        copy = torch.empty_like(source)
        copy.copy_(source)
        end.record()
    copy.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(end)
    assert (copy.cpu() == 7).all()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def graphs():
    source = device(torch.full((COUNT,), 1.0))
    kept = torch.empty_like(source)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # Memory of the graph's own pool.
        inner = torch.empty_like(source)
        inner.copy_(source)
        kept.copy_(inner)
    for value in (2.0, 3.0):
        source.copy_(torch.full((COUNT,), value))
        graph.replay()
        assert (kept.cpu() == value).all()


def kernels():
    # Compiled for the device, launched, and without effect.
    (torch.empty(COUNT, device="cuda") * 2 + 1).sum()
    torch.cuda.synchronize()


def main():
    assert torch.cuda.is_available()
    torch.cuda.init()
    print(torch.__version__, torch.version.cuda, torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0))
    parts = [copies, allocator, streams, graphs, kernels]
    for part in parts:
        if part.__name__ not in sys.argv[1:]:
            part()
    print("PyTorch: ok")


if __name__ == "__main__":
    main()
