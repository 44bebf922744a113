"""Verification of C against float64, on cases small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.analysis.findings import Verification
from gemmsim.analysis.verify import verify
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, gemm_check, ladder_launch
from gemmsim.launch.ladder import kernel_info
from gemmsim.launch.spec import GemmCheck
from gemmsim.trace.types import Argument, Execution, Launch, WarpTrace

A = np.array([[1, 2], [3, -4]], np.float32)
B = np.array([[1, 0], [0.5, 1]], np.float32)
BIAS = np.array([-3, 1], np.float32)
# A @ B = [[2, 2], [1, -4]]; doubled, with the bias: [[1, 5], [-1, -7]]


def checked(c: list[list[float]], check: GemmCheck, a: np.ndarray = A, old: float = np.nan) -> Verification:
    before, after = np.full((2, 2), old, np.float32), np.array(c, np.float32)
    arguments = tuple(Argument("f32", x.shape, x) for x in (a, B, before, BIAS))
    stored = np.ones((2, 2), bool)
    run = Execution(
        trace=WarpTrace.__new__(WarpTrace),  # not looked at
        outputs=(None, None, after, None),
        written=(None, None, stored, None),
        sampled=False,
    )
    return verify(run, Launch((1, 1, 1), (1, 1, 1), arguments), check)


def test_bias_is_added_to_each_row() -> None:
    check = GemmCheck(0, 1, 2, alpha=2, bias=3)
    assert checked([[1, 5], [-1, -7]], check).ok
    assert checked([[4, 4], [2, -8]], check).ok is False


def test_relu_comes_last() -> None:
    """max(0, x + bias), not max(0, x) + bias, which were [[1, 5], [-1, 1]]."""
    check = GemmCheck(0, 1, 2, alpha=2, bias=3, relu=True)
    assert checked([[1, 5], [0, 0]], check).ok
    assert checked([[1, 5], [-1, 1]], check).ok is False


@pytest.mark.parametrize("transposed", [False, True])
def test_flat_arrays_are_read_by_the_sizes(transposed: bool) -> None:
    """A [1, 2] and B [2, 3] as rows of numbers: C = [[1 + 2 * 4, 2 + 2 * 5, 3 + 2 * 6]] = [[9, 12, 15]]; B's transpose
    of the same numbers holds the columns (1, 2), (3, 4), (5, 6): C = [[5, 11, 17]]."""
    values = np.array([1, 2], np.float32), np.array([1, 2, 3, 4, 5, 6], np.float32), np.zeros(3, np.float32)
    after = np.array([5, 11, 17] if transposed else [9, 12, 15], np.float32)
    run = Execution(WarpTrace.__new__(WarpTrace), (None, None, after), (None, None, np.ones(3, bool)), sampled=False)
    launch = Launch((1, 1, 1), (1, 1, 1), tuple(Argument("f32", x.shape, x) for x in values))
    assert verify(run, launch, GemmCheck(0, 1, 2, b_transposed=transposed, sizes=(1, 3, 2))).ok


def test_old_values_count_before_the_relu() -> None:
    """beta 1, C all 8: [[9, 13], [7, 1]]."""
    assert checked([[9, 13], [7, 1]], GemmCheck(0, 1, 2, 2, 1.0, bias=3, relu=True), old=8.0).ok


@pytest.mark.parametrize(("r", "ok"), [(0.0, False), (2.0**-11, True)])
def test_rounded_operands_explain_more(r: float, ok: bool) -> None:
    """A's 1 + 2^-11 rounded to 1 changes the first product by 2^-11: too much for a float32 sum, not for TF32's."""
    a = A.copy()
    a[0, 0] = 1 + 2.0**-11
    assert checked([[2, 2], [1, -4]], GemmCheck(0, 1, 2, operand_roundoff=r), a).ok is ok


def test_the_first_wrong_element_and_the_one_farthest_off_are_named() -> None:
    """C is [[2, 2], [1, -4]]; both elements of the second row are wrong."""
    found = checked([[2, 2], [1.5, -3]], GemmCheck(0, 1, 2))
    assert found.ok is False and found.text == (
        "NO: relative error 2.5e-01, beyond what f32 sums explain: 2 of 4 elements of C differ; "
        "the first: C[1,0] is 1.5, 1 was wanted; farthest off: C[1,1] is -3, -4 was wanted"
    )
    assert checked([[2, 2], [1, -3]], GemmCheck(0, 1, 2)).text.endswith("; the first: C[1,1] is -3, -4 was wanted")


def test_nan_is_farthest_off() -> None:
    found = checked([[3, 2], [1, np.nan]], GemmCheck(0, 1, 2))
    assert found.relative_error == np.inf and found.text.endswith("; farthest off: C[1,1] is nan, -4 was wanted")


def test_rows_that_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first wrong element is in the first part, the one farthest off in the second."""
    monkeypatch.setattr("gemmsim.analysis.verify._CHUNK_ELEMENTS", 2)
    found = checked([[0, 2], [1, 8]], GemmCheck(0, 1, 2))
    assert "2 of 4 elements of C differ; the first: C[0,0] is 0, 2 was wanted; farthest off: C[1,1] is 8" in found.text


@pytest.mark.parametrize(("bits", "ok"), [(0x4040, True), (0x4060, False)])
def test_a_result_of_bf16_is_bit_patterns(bits: int, ok: bool) -> None:
    """1 * 3 = 3, which is 0x4040; 0x4060 is 3.5."""
    values = np.ones((1, 1), np.float32), np.full((1, 1), 3, np.float32), np.zeros((1, 1), np.uint16)
    after = np.array([[bits]], np.uint16)
    run = Execution(WarpTrace.__new__(WarpTrace), (None, None, after), (None, None, np.ones((1, 1), bool)), False)
    kinds = ("f32", "f32", "bf16")
    args = tuple(Argument(kind, (1, 1), value) for kind, value in zip(kinds, values, strict=True))
    assert verify(run, Launch((1, 1, 1), (1, 1, 1), args), GemmCheck(0, 1, 2)).ok is ok


def test_a_wrong_element_is_wrong_with_rounded_operands() -> None:
    assert checked([[2.01, 2], [1, -4]], GemmCheck(0, 1, 2, operand_roundoff=2.0**-11)).ok is False


def test_positions_follow_the_rungs_arguments() -> None:
    info = kernel_info("tiled")
    assert gemm_check(info, 1.5, 0.5) == GemmCheck(0, 1, 2, 1.5, 0.5)
    request = ladder_launch(LadderCase("tiled", 8, 4, 2, beta=1.0), load_gpu("a100"))
    assert [argument.shape for argument in request.launch.args] == [(8, 2), (2, 4), (8, 4), (), ()]


@pytest.mark.parametrize("share", [1, 10**9])
def test_the_bound_is_that_of_absolute_values(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that cancel: |sum a b| says nothing there, so sum |a b| is computed, for these elements or for all of them.

    K = 4, u = 2**-24: an error of 7 u sum |a b| is allowed; with rows +1 +1 -1 -1 and columns of ones that is 28 u.
    """
    monkeypatch.setattr("gemmsim.analysis.verify._DOUBTFUL_SHARE", share)
    a = np.array([[1, 1, -1, -1], [1, 1, 1, 1]], np.float32)
    for error, right in ((28, True), (29, False)):
        after = np.array([[error * 2.0**-24], [4]], np.float32)
        arrays = (a, np.ones((4, 1), np.float32), np.zeros((2, 1), np.float32))
        run = Execution(WarpTrace.__new__(WarpTrace), (None, None, after), (None, None, np.ones((2, 1), bool)), False)
        launch = Launch((1, 1, 1), (1, 1, 1), tuple(Argument("f32", x.shape, x) for x in arrays))
        assert verify(run, launch, GemmCheck(0, 1, 2)).ok is right


def test_tensor_cores_that_keep_few_bits_explain_larger_errors() -> None:
    """K = 2: an error of 5 * 2**-13 of sum |a b| is allowed; |a b| of C[0, 0] sum up to 2."""
    run = Execution(WarpTrace.__new__(WarpTrace), (None, None, A @ B), (None, None, np.ones((2, 2), bool)), False)
    args = tuple(Argument("f32", x.shape, x) for x in (A, B, np.zeros((2, 2), np.float32)))
    launch, check = Launch((1, 1, 1), (1, 1, 1), args), GemmCheck(0, 1, 2)
    for error, right in ((10, True), (11, False)):
        run.outputs[2][0, 0] = 2 + error * 2.0**-13  # type: ignore[index]
        assert verify(run, launch, check, 2.0**-13).ok is right
        assert not verify(run, launch, check).ok
