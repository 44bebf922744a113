"""Compiles the generated kernels into a bundle, with NVRTC; this needs no GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.source import CudaKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.support.errors import GemmsimError

from .bundle import Bundle, write_bundle
from .cases import BLOCK_THREADS, Case, read_cases, source_text
from .inputs import inputs

ROWS = 4096
_KERNELS_A_CUBIN = 50


def prepare(folder: Path, arch: str, pattern: str = "", rows: int = ROWS) -> Bundle:
    """Write to `folder` a bundle for `arch` ("sm_90") of the cases whose instruction the expression `pattern` finds.

    rows  number of values of each operand, a multiple of BLOCK_THREADS

    Raises GemmsimError, one line, where no case is left or a kernel does not compile; the folder then has no manifest.
    """
    assert rows % BLOCK_THREADS == 0, "every thread computes a row"
    number = int(re.sub(r"\D", "", arch))
    cases = [c for c in read_cases() if c.architecture <= number and re.search(pattern, c.instruction)]
    if not cases:
        raise GemmsimError(f"no instruction of {arch} is found by '{pattern}'")
    folder.mkdir(parents=True, exist_ok=True)
    cubins: list[tuple[str, tuple[Case, ...]]] = []
    for at in range(0, len(cases), _KERNELS_A_CUBIN):
        part = tuple(cases[at : at + _KERNELS_A_CUBIN])
        name = f"kernels{len(cubins)}.cubin"
        (folder / name).write_bytes(_compile(part, arch, rows))
        cubins.append((name, part))
    bundle = Bundle(arch, rows, tool_versions(), tuple(cubins), folder)
    write_bundle(bundle, {" ".join(sources): inputs(sources, rows) for sources in sorted({c.sources for c in cases})})
    return bundle


def _compile(cases: Sequence[Case], arch: str, rows: int) -> bytes:
    """Compile the kernels of `cases` to one cubin; where that fails, find the case at fault and raise GemmsimError."""

    def cubin(chosen: Sequence[Case]) -> bytes:
        return compile_cuda(CudaKernel(source_text(chosen, rows), Path("opcodes.cu"), None), arch)[0]

    try:
        return cubin(cases)
    except GemmsimError:
        for case in cases:
            try:
                cubin([case])
            except GemmsimError as error:
                raise GemmsimError(f"{case.instruction} does not compile for {arch}: {error}") from None
        raise
