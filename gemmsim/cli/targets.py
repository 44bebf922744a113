"""Which code to compile: a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gemmsim.compile.source import KernelSource, kernel_file
from gemmsim.launch.cases import signature
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument


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
