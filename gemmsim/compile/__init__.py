"""Makes a `Program` of a kernel's source, without a GPU or a driver. Start at `compile_kernel`."""

from gemmsim.compile.cache import Cache, default_cache
from gemmsim.compile.kernel import compile_kernel
from gemmsim.compile.source import (
    ArgType,
    CubinKernel,
    CudaKernel,
    KernelSource,
    PtxKernel,
    PythonKernel,
    kernel_file,
)
from gemmsim.support.cache_folder import CacheWarning

__all__ = [
    "ArgType",
    "Cache",
    "CacheWarning",
    "CubinKernel",
    "CudaKernel",
    "KernelSource",
    "PtxKernel",
    "PythonKernel",
    "compile_kernel",
    "default_cache",
    "kernel_file",
]
