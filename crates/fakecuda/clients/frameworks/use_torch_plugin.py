"""PyTorch's CUDAPluggableAllocator on the doubles: memory by functions of a library of our own."""

import ctypes
import sys

import torch

COUNT = 10_000


def main():
    path = sys.argv[1]
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "plugin_alloc", "plugin_free")
    torch.cuda.memory.change_current_allocator(allocator)
    pattern = torch.arange(COUNT, dtype=torch.float32)
    block = torch.empty(COUNT, device="cuda").copy_(pattern)
    assert torch.equal(block.cpu(), pattern)
    del block
    plugin = ctypes.CDLL(path)
    assert plugin.plugin_count(0) >= 1
    assert plugin.plugin_count(0) == plugin.plugin_count(1)
    print("CUDAPluggableAllocator: ok")


if __name__ == "__main__":
    main()
