"""PyTorch on the doubles with all memory from luma: what use_torch.py does, and what is luma's part in it.

    python use_torch_on_luma.py LIBLUMA EXAMPLES

EXAMPLES: luma's folder examples/pytorch.
"""

import gc
import sys

import torch

sys.path.insert(0, sys.argv[2])
import use_torch  # noqa: E402
from luma_allocator import Luma  # noqa: E402

BYTES = 4 << 20


def full(value, pinned=False):
    values = torch.full((BYTES // 4,), float(value))
    return values.pin_memory() if pinned else values


def new():
    return torch.empty(BYTES // 4, device="cuda")


def refusals(luma):
    """What does not fit is refused; PyTorch does not look, and makes a tensor of it that lies nowhere."""
    before = luma.stats()
    tensor = torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    assert tensor.data_ptr() == 0
    assert luma.stats().out_of_memory_count == before.out_of_memory_count + 1
    del tensor
    assert luma.stats().live_blocks == before.live_blocks
    assert torch.empty(0, device="cuda").data_ptr() == 0


def fractions(luma):
    free, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert luma.stats().memory_limit == total // 2 and free <= total
    torch.cuda.set_per_process_memory_fraction(1.0)


def records(luma):
    """What a stream frees waits for the streams that were recorded: a copy that is queued reads what it was to read."""
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    ones, twos = full(1, pinned=True), full(2, pinned=True)
    result, dummy = new(), new()
    for _ in range(3):
        with torch.cuda.stream(side):
            tensor = new()
            tensor.copy_(ones, non_blocking=True)
        main.wait_stream(side)
        dummy.copy_(tensor)
        result.copy_(tensor)
        tensor.record_stream(main)
        del tensor
        with torch.cuda.stream(side):
            other = new()
            other.copy_(twos, non_blocking=True)
        side.synchronize()
        assert torch.equal(result.cpu(), ones)
        assert torch.equal(other.cpu(), twos)
        del other
    side.synchronize()


def graph_memory(luma):
    """The memory of a graph is the graph's until it is gone, also where two share what PyTorch calls a pool."""
    source, kept = new(), new()
    source.copy_(full(1))
    graphs = []
    for shared in (None, lambda: graphs[0].pool()):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=shared and shared()):
            inner = new()
            inner.copy_(source)
            outer = new()
            outer.copy_(inner)
            kept.copy_(outer)
            # It lives on, and is of the graph.
            result = new()
            result.copy_(outer)
            del inner, outer
        graphs.append(graph)
    others = [new() for _ in range(8)]
    for other in others:
        other.copy_(full(9))
    for value, graph in ((2, graphs[0]), (3, graphs[1]), (4, graphs[0])):
        source.copy_(full(value))
        graph.replay()
        assert torch.equal(kept.cpu(), full(value))
    assert all(torch.equal(other.cpu(), full(9)) for other in others)
    assert torch.equal(result.cpu(), full(3))
    before = luma.stats().live_blocks
    del result, others
    graphs.clear()
    del graph
    assert luma.stats().live_blocks < before


def graphed_callables(luma):
    """A part of a model by graphs, forward and backward, inside of a step that is none."""
    part = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)).to("cuda")
    sample = torch.zeros(32, 64).to("cuda").requires_grad_()
    graphed = torch.cuda.make_graphed_callables(part, (sample,))
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        given = torch.ones(32, 64).to("cuda").requires_grad_()
        graphed(given).sum().backward()
        optimizer.step()
    torch.cuda.synchronize()


def broken_captures(luma):
    """A capture that fails, while tensors of it live, loses nothing, and the next one works."""
    gc.collect()
    before = luma.stats().live_blocks
    tensor = None
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            tensor = new()
            torch.cuda.synchronize()
    except (RuntimeError, torch.AcceleratorError):
        pass
    else:
        raise AssertionError("a capture that waits was not refused")
    del tensor
    gc.collect()
    assert luma.stats().live_blocks == before, (luma.stats().live_blocks, before)
    graph_memory(luma)


def main():
    luma = Luma(sys.argv[1]).install()
    assert torch.cuda.get_allocator_backend() == "pluggable"
    torch.cuda.init()
    for part in (use_torch.copies, use_torch.streams, use_torch.graphs, use_torch.kernels):
        part()
    for part in (refusals, fractions, records, graph_memory, graphed_callables, broken_captures):
        part(luma)
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    stats = luma.stats()
    assert stats.live_blocks == 0 and stats.reserved_bytes == 0, (stats.live_blocks, stats.reserved_bytes)
    assert stats.cuda_malloc_calls == stats.cuda_free_calls
    print("PyTorch on luma: ok")


if __name__ == "__main__":
    main()
