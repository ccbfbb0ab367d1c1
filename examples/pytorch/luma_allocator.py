"""PyTorch's CUDA memory from luma: `Luma("libluma.so").install()`, before the first CUDA tensor is made."""

import ctypes

import torch


class Stats(ctypes.Structure):
    """luma_stats_t."""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64)
        for name in (
            "allocated_bytes reserved_bytes peak_bytes live_blocks free_blocks segments cuda_malloc_calls "
            "cuda_free_calls requested_bytes peak_reserved_bytes largest_free_block memory_limit alloc_calls "
            "free_calls alloc_retries out_of_memory_count pending_bytes handler_calls event_records event_queries "
            "stream_waits oom_waits oom_wait_ns"
        ).split()
    ]


class Luma:
    def __init__(self, path):
        self.path = path
        self.library = ctypes.CDLL(path)
        self.library.luma_last_error.restype = ctypes.c_char_p
        self.library.luma_default_pool.restype = ctypes.c_void_p
        self.library.luma_pool_stats.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    def address(self, name):
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value

    def allocator(self):
        """A torch.cuda.memory.CUDAPluggableAllocator."""
        made = torch.cuda.memory.CUDAPluggableAllocator(self.path, "luma_torch_alloc", "luma_torch_free")
        functions = made.allocator()
        functions.set_record_stream_fn(self.address("luma_torch_record_stream"))
        functions.set_reset_fn(self.address("luma_torch_empty_cache"))
        functions.set_memory_fraction_fn(self.address("luma_torch_set_memory_fraction"))
        return made

    def install(self):
        """Makes luma the allocator of all CUDA tensors; RuntimeError if the process has some already."""
        torch.cuda.memory.change_current_allocator(self.allocator())
        return self

    def stats(self, device=-1):
        """The figures of a device's pool, by default of the current one's."""
        stats = Stats(struct_size=ctypes.sizeof(Stats))
        pool = self.library.luma_default_pool(device)
        if pool is None or self.library.luma_pool_stats(pool, ctypes.byref(stats)) != 0:
            raise RuntimeError(self.library.luma_last_error().decode())
        return stats
