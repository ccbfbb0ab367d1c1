"""CuPy's device memory from luma: `Luma("libluma.so").install()`."""

import ctypes

import cupy


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
    """Memory in the order of the stream that is current when an array is made."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        library.luma_last_error.restype = ctypes.c_char_p
        library.luma_default_pool.restype = ctypes.c_void_p
        library.luma_pool_stats.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.luma_torch_alloc.restype = ctypes.c_void_p
        library.luma_torch_alloc.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        library.luma_torch_free.restype = None
        library.luma_torch_free.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
        library.luma_record_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.library = library
        # The stream of each live block. It lives as long as the block, which is freed in its order.
        self.streams = {}

    def alloc(self, size, device):
        stream = cupy.cuda.get_current_stream()
        address = self.library.luma_torch_alloc(size, device, stream.ptr)
        if not address:
            raise MemoryError(self.library.luma_last_error().decode())
        self.streams[address] = stream
        return address

    def free(self, address, device):
        # The stream, before another thread gets the address and writes down its own.
        stream = self.streams.pop(address)
        self.library.luma_torch_free(address, 0, device, stream.ptr)

    def install(self):
        """Makes luma the allocator of all arrays that are made from now on."""
        cupy.cuda.set_allocator(cupy.cuda.PythonFunctionAllocator(self.alloc, self.free).malloc)
        return self

    def record_stream(self, array, stream):
        """Says that work on `stream` uses an array that was made on another stream."""
        if self.library.luma_record_stream(array.data.mem.ptr, stream.ptr) != 0:
            raise RuntimeError(self.library.luma_last_error().decode())

    def empty_cache(self):
        """Gives the free memory of all devices back."""
        self.library.luma_torch_empty_cache()

    def stats(self, device=-1):
        """The figures of a device's pool, by default of the current one's."""
        stats = Stats(struct_size=ctypes.sizeof(Stats))
        pool = self.library.luma_default_pool(device)
        if pool is None or self.library.luma_pool_stats(pool, ctypes.byref(stats)) != 0:
            raise RuntimeError(self.library.luma_last_error().decode())
        return stats
