"""Describes kernel sources as plain data, without importing numba or the user's module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gemmsim.compile.magic import holds_device_code
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError, nearest

LADDER_FOLDER = "kernels"  # what source lines call the folder of the built-in kernels, which has another name installed


@dataclass(frozen=True, slots=True)
class ArgType:
    """The type of a kernel argument.

    dtype  one of DTYPES
    ndim   number of dimensions of a C-contiguous array; 0 for a scalar
    """

    dtype: str
    ndim: int = 0

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            known = ", ".join(DTYPES)
            raise GemmsimError(f"unknown type '{self.dtype}'{nearest(self.dtype, DTYPES)}: known are {known}")
        if self.ndim < 0:
            raise GemmsimError(f"an array has 0 or more dimensions, not {self.ndim}")


@dataclass(frozen=True, slots=True)
class PythonKernel:
    """A numba.cuda kernel in a Python file, as it would be launched on a GPU.

    path       the file
    function   name of a `@cuda.jit` kernel or of a plain function; where `tunables` is not None, name of a function
               that returns a kernel or a plain function
    signature  types of the arguments in their order
    tunables   ((name, value), ...): the keyword arguments with which to call `function`; None: it is not called
    module     import name of the file where it is part of a package ("gemmsim_kernels.tiled"). Where it is None, the
               file is loaded by itself, and it can import from its folder. Loading runs it.
    """

    path: Path
    function: str
    signature: tuple[ArgType, ...]
    tunables: tuple[tuple[str, int], ...] | None = None
    module: str | None = None

    @property
    def shown_path(self) -> str:
        """The file's name in source lines: "kernels/tiled.py" where it is part of the ladder, else the whole path."""
        return f"{LADDER_FOLDER}/{self.path.name}" if self.module else str(self.path)

    def shown_names(self, files: Iterable[str]) -> dict[str, str]:
        """Return {file: name in source lines} of this file and of those among `files` that lie in its package."""
        return {str(self.path): self.shown_path} | (names_in_folder(files, self.path.parent) if self.module else {})


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """A kernel in CUDA C++.

    text       the source text
    path       its file: its name in messages and source lines; includes are searched in its folder
    entry      kernel name or name expression (`sgemm<128,128,8>`); None where there is only one kernel
    options    for the compiler ("-DTILE=32", "--use_fast_math", "-I/folder"); "-arch=sm_90a" replaces the architecture.
               NVRTC takes it without being told where the code needs the features of one architecture alone
    compiler   "nvrtc" or "nvcc"
    in_ladder  whether it is a built-in kernel, whose files lie in one folder
    """

    text: str
    path: Path
    entry: str | None = None
    options: tuple[str, ...] = ()
    compiler: str = "nvrtc"
    in_ladder: bool = False

    def shown_names(self, files: Iterable[str]) -> dict[str, str]:
        """Return {file: name in source lines} of those among `files` that have another name there."""
        return names_in_folder(files, self.path.parent) if self.in_ladder else {}


@dataclass(frozen=True, slots=True)
class PtxKernel:
    """A kernel in PTX.

    entry  symbol or readable name of the kernel; None where there is only one
    abi    "c" or "numba", see `Program.abi`; None: the kernel's name decides it
    """

    text: str
    path: Path
    entry: str | None = None
    abi: str | None = None


@dataclass(frozen=True, slots=True)
class CubinKernel:
    """A kernel in a file with device code: a cubin, a fatbin, an executable, a shared library, an object file.

    data   the file's content
    entry  the kernel's name, see `entries.find_entry`; None where the file holds only one kernel
    abi    as in `PtxKernel`
    of_function  whether gemmsim has compiled it from a function of this process, which has no file
    """

    data: bytes
    path: Path
    entry: str | None = None
    abi: str | None = None
    of_function: bool = False

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the file in each GemmsimError of what runs inside: what reads the content does not know its name."""
        try:
            yield
        except GemmsimError as error:
            if self.of_function or f"'{self.path.name}'" in str(error):
                raise
            raise GemmsimError(f"'{self.path.name}': {error}") from None


KernelSource = PythonKernel | CudaKernel | PtxKernel | CubinKernel


def names_in_folder(files: Iterable[str], folder: Path) -> dict[str, str]:
    """Return {file: "kernels/tiled.py"} of those among `files` of the ladder's folder, whatever its name is."""
    places = (folder, folder.resolve())
    return {file: f"{LADDER_FOLDER}/{Path(file).name}" for file in files if Path(file).parent in places}


def kernel_file(
    path: Path,
    entry: str | None,
    signature: tuple[ArgType, ...] = (),
    options: tuple[str, ...] = (),
    tunables: tuple[tuple[str, int], ...] | None = None,
    compiler: str = "nvrtc",
) -> KernelSource:
    """Read the kernel in a file. Its suffix says what it is: .py, .cu or .ptx; anything else must hold device code.

    entry                the kernel's name: `function` of `PythonKernel`, `entry` of the other classes
    signature, tunables  for .py, see `PythonKernel`
    options, compiler    for .cu, see `CudaKernel`

    Raises GemmsimError for a file that cannot be read or is of another kind, or a Python file without a function name.
    """
    suffix = path.suffix.lower()
    source = suffix in (".py", ".cu", ".ptx")
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig") if source else ""  # compilers of CUDA know no byte order mark
    except OSError as error:
        raise GemmsimError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise GemmsimError(f"cannot read '{path}': it is not UTF-8 text") from None
    if suffix == ".py":
        if not entry:
            raise GemmsimError(f"'{path}' needs a function: {path.name}:function")
        return PythonKernel(path.resolve(), entry, signature, tunables)
    if suffix == ".cu":
        return CudaKernel(text, path.resolve(), entry, options, compiler)
    if suffix == ".ptx":
        return PtxKernel(text, path.resolve(), entry)
    if suffix != ".cubin" and not holds_device_code(data):
        kinds = "FILE.py:function, FILE.cu, FILE.ptx, cubins, fatbins, and executables, libraries and objects of nvcc"
        raise GemmsimError(f"'{path}' is no kernel file: gemmsim reads {kinds}")
    return CubinKernel(data, path.resolve(), entry)
