"""Which code to compile: a rung of the ladder, or a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gemmsim.compile.source import ArgType, KernelSource, PythonKernel, kernel_file
from gemmsim.errors import GemmsimError
from gemmsim.ladder import kernel_path
from gemmsim.trace.types import Argument

if TYPE_CHECKING:
    from gemmsim.ladder import KernelInfo


def ladder_source(info: KernelInfo, tunables: dict[str, int], args: Sequence[Argument]) -> PythonKernel:
    return PythonKernel(
        path=kernel_path(info),
        function=info.build.__name__,
        signature=signature(args),
        tunables=tuple(tunables.items()),
        module=info.build.__module__,
    )


def target_source(target: str, entry: str | None, args: Sequence[Argument]) -> tuple[KernelSource, str]:
    """The source that TARGET names, and what to call the kernel in a report.

    `FILE.py:function`; the others take --entry, which may be missing where the file holds one kernel.
    """
    file, colon, function = target.rpartition(":")
    if colon and Path(file).suffix.lower() == ".py":
        if entry:
            raise GemmsimError(f"--entry is for .cu, .ptx and .cubin: {target} names its function already")
        return kernel_file(Path(file), function, signature(args)), function
    return kernel_file(Path(target), entry, signature(args)), entry or Path(target).stem


def signature(args: Sequence[Argument]) -> tuple[ArgType, ...]:
    return tuple(ArgType(argument.dtype, len(argument.shape)) for argument in args)
