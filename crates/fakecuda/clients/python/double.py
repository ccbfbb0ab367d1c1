"""The double's control interface, as far as the clients here use it. On a board nothing is registered, and
the kernels themselves run."""

import ctypes
import pathlib

FILL = (pathlib.Path(__file__).parent.parent / "fill.ptx").read_bytes()


class Launch(ctypes.Structure):
    """fakecuda_launch_t."""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("params", ctypes.POINTER(ctypes.c_void_p)),
        ("nparams", ctypes.c_size_t),
    ]


_KERNEL = ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch), ctypes.c_void_p)
_kept = []


def _driver():
    driver = ctypes.CDLL("libcuda.so.1")
    return driver if hasattr(driver, "fakecuda_register_kernel") else None


def present():
    return _driver() is not None


def register(name, sizes, function):
    """Calls function(launch, parameters) for each launch of the kernel: the parameters are bytes objects of
    the given sizes."""
    driver = _driver()
    if driver is None:
        return

    def called(launch, _user):
        launch = launch.contents
        function(launch, [ctypes.string_at(launch.params[at], size) for at, size in enumerate(sizes)])

    kernel = _KERNEL(called)
    # The library calls it until the process ends.
    _kept.append(kernel)
    array = (ctypes.c_size_t * len(sizes))(*sizes)
    status = driver.fakecuda_register_kernel(name.encode(), kernel, None, ctypes.c_size_t(len(sizes)), array)
    assert status == 0, status


def host_pointer(address):
    """Where the host finds the bytes behind a device address."""
    driver = _driver()
    driver.fakecuda_host_pointer.restype = ctypes.c_void_p
    driver.fakecuda_host_pointer.argtypes = [ctypes.c_ulonglong]
    pointer = driver.fakecuda_host_pointer(address)
    assert pointer is not None, hex(address)
    return pointer


def register_fill():
    """What stands in for the kernel of fill.ptx."""

    def fill(launch, parameters):
        address, count, value = (int.from_bytes(parameter, "little") for parameter in parameters)
        threads = launch.grid[0] * launch.block[0]
        ctypes.memset(host_pointer(address), value, min(count, threads))

    register("fill", [8, 4, 4], fill)
