"""The same source makes the same symbol and hash, whatever was compiled before in the process, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gemmsim.compile import ArgType, PythonKernel
from gemmsim.compile.elf import sha256_without_lines
from gemmsim.compile.kernel import build_kernel
from gemmsim.compile.numba_names import numbered

SOURCE = """
from numba import cuda

@cuda.jit(device=True)
def half(x):
    return x * 0.5

@cuda.jit
def scaled(a, c):
    i = cuda.grid(1)
    c[i] = half(a[i])
"""


def test_what_was_compiled_before_and_where_the_source_is_changes_nothing(tmp_path: Path) -> None:
    """numba counts the functions that it compiles, and line information names the file."""
    built = []
    for folder in (tmp_path, tmp_path / "another/and/longer"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scaled.py").write_text(SOURCE)
        source = PythonKernel(folder / "scaled.py", "scaled", (ArgType("f32", 1), ArgType("f32", 1)))
        built.append(build_kernel(source, "sm_90"))
    first, second = built
    assert first.program.symbol == second.program.symbol and "scaled" in first.program.symbol
    assert first.program.cubin_sha256 == second.program.cubin_sha256 == sha256_without_lines(second.cubin)
    assert first.cubin != second.cubin  # by the path in its line information


def test_other_kernels_have_other_numbers() -> None:
    from numba.cuda.core.bytecode import FunctionIdentity

    def kernel(constant: int, closed: int) -> Callable[[], int]:
        return (lambda: 1 + closed) if constant == 1 else (lambda: 2 + closed)

    def first(function: Callable[[], int], *rest: object) -> int:
        with numbered(function, *rest):
            number = FunctionIdentity.from_function(function).unique_id
            assert FunctionIdentity.from_function(function).unique_id == number + 1
        return int(number)

    before = FunctionIdentity.from_function(kernel).unique_id
    cases = [(kernel(1, 5), "sm_90"), (kernel(2, 5), "sm_90"), (kernel(1, 6), "sm_90"), (kernel(1, 5), "sm_80")]
    numbers = [first(*case) for case in cases]
    assert len(set(numbers)) == 4 and all(number % 1000 == 0 for number in numbers)
    assert first(kernel(1, 5), "sm_90") == numbers[0]
    assert FunctionIdentity.from_function(kernel).unique_id == before + 1
