"""The same training with all CUDA memory from luma, and what luma says of it at the end.

    python train_on_luma.py LIBLUMA [options of transformer.py]
"""

import gc
import sys

import torch

import transformer
from luma_allocator import Luma


def main():
    luma = Luma(sys.argv[1]).install()
    transformer.main(sys.argv[2:])
    stats = luma.stats()
    used, held = stats.peak_bytes / 2**20, stats.peak_reserved_bytes / 2**20
    print(f"{stats.alloc_calls} allocations, at most {used:.1f} MiB in use and {held:.1f} MiB held")

    # Nothing is lost: PyTorch keeps workspaces of cuBLAS, and graphs that are gone are noticed after a while.
    torch._C._cuda_clearCublasWorkspaces()
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    stats = luma.stats()
    left = f"{stats.live_blocks} blocks of {stats.allocated_bytes} bytes"
    assert stats.live_blocks == 0 and stats.alloc_calls == stats.free_calls, left
    assert stats.reserved_bytes == 0 and stats.cuda_malloc_calls == stats.cuda_free_calls, stats.reserved_bytes
    print("on luma: ok")


if __name__ == "__main__":
    main()
