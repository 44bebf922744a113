"""Variables of the module, indirect calls and calls of the device runtime, as NVIDIA's compiler makes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from programs import cuda_program

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Execution, Launch

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")
THREADS = 32
INDEX = np.arange(THREADS)


def executor(kernel: str, arch: str, n: int, symbols: Mapping[str, NDArray] | None = None) -> Executor:
    names = {"float32": "f32", "int32": "i32"}
    given = tuple((name, Argument(names[v.dtype.name], v.shape, v)) for name, v in (symbols or {}).items())
    args = (Argument("f32", (THREADS,), np.arange(THREADS, dtype=np.float32)), Argument("i32", (), n))
    launch = Launch((1, 1, 1), (THREADS, 1, 1), args, symbols=given)
    return Executor(cuda_program("device_globals.cu", kernel, arch), launch)


def run(kernel: str, arch: str, n: int, symbols: Mapping[str, NDArray] | None = None) -> Execution:
    return executor(kernel, arch, n, symbols).run([0])


def out(execution: Execution) -> NDArray:
    array = execution.outputs[0]
    assert array is not None
    return array


def expected_variables(n: int, factors: tuple[float, ...], scale: int) -> NDArray:
    bias = np.array([1.5, 2.5, -1.0])
    factor = np.array(factors)[INDEX & 3]
    table = bias[INDEX & 1] if n & 1 else bias[1 + (INDEX & 1)]
    constant = bias[0] if n & 1 else bias[2]
    return bias[INDEX & 1] + 10 * factor + 100 * 1.5 + 1000 * table + 10000 * constant + 1e6 * scale


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("n", [0, 1])
def test_variables_and_tables_of_pointers(arch: str, n: int) -> None:
    execution = run("variables", arch, n)
    assert out(execution) == pytest.approx(expected_variables(n, (3, 5, 7, 11), 0))
    assert execution.variables["counter"].content.view(np.int32) == [THREADS]
    assert execution.variables["sums"].content.view(np.float64).tolist() == [0.5, 1.5, 2.5, 3.5]
    assert execution.variables["counter"].stored
    assert not execution.variables["bias"].stored
    assert "factors" not in execution.variables  # a kernel cannot store to a __constant__ variable


def test_what_a_kernel_stores_to_a_variable_is_undone_before_the_next_run() -> None:
    runs = executor("variables", "sm_90", 0)
    for _ in range(2):
        assert runs.run([0]).variables["counter"].content.view(np.int32) == [THREADS]


@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
def test_the_host_sets_variables(arch: str) -> None:
    given = {"scale": np.array(2, np.int32), "factors": np.array([1, 2, 3, 4], np.float32)}
    execution = run("variables", arch, 1, given | {"counter": np.array(5, np.int32)})
    assert out(execution) == pytest.approx(expected_variables(1, (1, 2, 3, 4), 2))
    assert execution.variables["counter"].content.view(np.int32) == [5 + THREADS]


def test_variables_that_cannot_be_set() -> None:
    with pytest.raises(
        GemmsimError, match=r"--symbol scal: .*no such variable \(did you mean 'scale'\?\); it has: .*bias"
    ):
        run("variables", "sm_90", 0, {"scal": np.array(2, np.int32)})
    with pytest.raises(GemmsimError, match="--symbol factors: the value has 4 bytes, but 'factors' has 16"):
        run("variables", "sm_90", 0, {"factors": np.array([2], np.float32)})


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_generic_pointers_into_every_window(arch: str) -> None:
    assert out(run("pointers", arch, 0)).tolist() == [26.0] * THREADS  # a constant bank has addresses, too
    assert out(run("pointers", arch, 1)).tolist() == [6.0] * THREADS
    assert out(run("pointers", arch, 2)).tolist() == (6.0 + INDEX).tolist()
    assert out(run("pointers", arch, 3)).tolist() == [3.0] * THREADS
    given = {"factors": np.array([1, 2, 3, 4], np.float32)}
    assert out(run("pointers", arch, 0, given)).tolist() == [10.0] * THREADS


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("n", [0, 1])
def test_functions_in_tables(arch: str, n: int) -> None:
    square, twice = INDEX**2, 2 * INDEX + 1
    assert (
        out(run("calls", arch, n)).tolist()
        == (np.where((INDEX + n) & 1, square, twice) + 1000 * (twice if n else square)).tolist()
    )
    assert out(run("virtual_calls", arch, n)).tolist() == np.where((INDEX + n) & 1, square, INDEX / 2).tolist()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_call_of_an_address_without_code_is_named(arch: str) -> None:
    with pytest.raises(GemmsimError, match=r"goes to address 0x[01], where there is no function \(.*'CALL"):
        run("stray_call", arch, 1)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_recursion(arch: str) -> None:
    assert out(run("recursion", arch, 8)).tolist() == ([0, 1, 1, 2, 3, 5, 8, 13] * 4)


def test_recursion_beyond_the_stack() -> None:
    with pytest.raises(GemmsimError, match=r"lane 0 leaves the 10[0-9][0-9] bytes of its stack"):
        run("deep", "sm_90", 1000)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_an_assertion(arch: str) -> None:
    assert out(run("asserted", arch, 99)).tolist() == (2.0 * INDEX).tolist()
    said = (
        r'device_globals.cu:\d+: .*asserted.*block \(0,0,0\), thread \(0,0,0\) and 31 more .*`n < 100 && "too large"`'
    )
    with pytest.raises(GemmsimError, match=said):
        run("asserted", arch, 100)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_a_kernel_prints(arch: str) -> None:
    assert run("printed", arch, 0).printed == ""
    execution = run("printed", arch, 2)
    line = "thread {0}: {0}.00 text|    7|1099511627776%\n"
    assert execution.printed == line.format(0) + line.format(1)
    assert out(execution).tolist() == (2.0 * INDEX).tolist()


def test_no_more_is_printed_than_cuda_keeps() -> None:
    printed = run("printed_much", "sm_90", 40).printed  # 32 * 40 lines of 1001 characters, of which 2**20 fit
    *lines, last = printed.splitlines()
    assert len(lines) == 2**20 // 1001
    assert last == f"[gemmsim: {32 * 40 - len(lines)} more calls of printf were left out]"


def test_nothing_is_printed_by_blocks_that_are_only_compared() -> None:
    runs = executor("printed", "sm_90", 2)
    runs.probe([0])
    assert runs.externals.printed == ""


def test_malloc_is_refused_in_words() -> None:
    said = r"'allocated' calls malloc \(line \d+ of .*device_globals.cu, block \(0,0,0\), warp 0\): gemmsim has no heap"
    with pytest.raises(GemmsimError, match=said):
        run("allocated", "sm_90", 4)
