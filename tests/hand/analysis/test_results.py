"""Whether arrays hold what a formula gives or what a file holds: values and bounds by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gemmsim.analysis.array_difference import Differences, Element
from gemmsim.analysis.findings import Verification
from gemmsim.analysis.formula_values import Evaluator
from gemmsim.analysis.results import check_results
from gemmsim.gpu import load_gpu
from gemmsim.launch.checks import array_names, file_check, formula_check
from gemmsim.launch.spec import FileCheck, FormulaCheck, Labels, LaunchSpec
from gemmsim.report.saved_arrays import npz_bytes
from gemmsim.support.bit_patterns import to_items
from gemmsim.trace.types import Argument, Execution, Launch

RANDOM = np.random.default_rng(5)


def argument(name: str, values: NDArray, dtype: str = "f32") -> Argument:
    items = to_items(dtype, values)
    return Argument(dtype, items.shape, items, name)


def spec_of(launch: Launch, *checks: FormulaCheck | FileCheck) -> LaunchSpec:
    return LaunchSpec(None, launch, load_gpu("h200"), Labels("k"), checks=checks)  # type: ignore[arg-type]


def checked(
    args: tuple[Argument, ...],
    formula: str,
    after: NDArray,
    stored: NDArray | None = None,
    accumulate: str | None = None,
    tolerance: float | None = None,
) -> Verification:
    """Check the last argument, which holds `after` when the launch is over."""
    check = formula_check(formula, args, {"alpha": 2.0, "beta": 0.5}, accumulate, tolerance)
    launch = Launch((1, 1, 1), (1, 1, 1), args)
    everywhere = np.ones(after.shape, np.bool_)
    outputs = (*(np.asarray(one.value) for one in args[:-1]), after)
    written = (*(np.zeros(one.shape, np.bool_) for one in args[:-1]), everywhere if stored is None else stored)
    run = Execution(None, outputs, written, stored is not None)  # type: ignore[arg-type]
    return check_results(run, launch, spec_of(launch, check))


A, B = RANDOM.random((6, 40)) - 0.5, RANDOM.random((40, 5)) - 0.5
BIAS, OLD = RANDOM.random(5), RANDOM.random((6, 5))
ARGS = (argument("A", A), argument("B", B), argument("Bt", B.T), argument("bias", BIAS), argument("C", OLD))


def f32(values: NDArray) -> NDArray[np.float32]:
    return values.astype(np.float32)


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("C = A @ B", A @ B),
        ("C = A @ Bt.T", A @ B),
        ("C = alpha * (A @ B) + beta * C", 2 * (A @ B) + 0.5 * OLD),
        ("C = relu(A @ B + bias)", np.maximum(A @ B + BIAS, 0)),
        ("C = max(min(A @ B, 0.25), -0.25)", np.clip(A @ B, -0.25, 0.25)),
        ("C = exp(C) / sqrt(C + 1) - abs(A @ B)", np.exp(OLD) / np.sqrt(OLD + 1) - np.abs(A @ B)),
        ("C = tanh(A @ B) * sigmoid(C)", np.tanh(A @ B) / (1 + np.exp(-OLD))),
        ("C = silu(C)", OLD / (1 + np.exp(-OLD))),
        ("C = -(Bt @ A.T).T", -(A @ B)),
    ],
)
def test_formulas(formula: str, wanted: NDArray) -> None:
    """What float64 gives, rounded to float32, is right; one element that is off by 1e-2 is found."""
    good = checked(ARGS, formula, f32(wanted))
    assert good.ok and good.relative_error is not None and good.relative_error < 1e-6
    bad = f32(wanted)
    bad[4, 2] += 0.01
    found = checked(ARGS, formula, bad)
    assert not found.ok and f"C[4,2] is {bad[4, 2]:.9g}" in found.text and "1 of 30 elements differ" in found.text


def test_gelu_by_hand() -> None:
    """gelu(1) = 0.8413447, gelu(-1) = -0.1586553; the tanh form gives 0.8411920 for 1."""
    args = (argument("x", np.array([[1.0, -1.0]])), argument("y", np.zeros((1, 2))))
    assert checked(args, "y = gelu(x)", f32(np.array([[0.84134475, -0.15865525]]))).ok
    assert not checked(args, "y = gelu(x)", f32(np.array([[0.8411920, -0.15865525]]))).ok
    assert checked(args, "y = gelu_tanh(x)", f32(np.array([[0.8411920, -0.1588080]]))).ok


def test_the_bound_of_a_sum_by_hand() -> None:
    """40 terms of size 1 in f32: 43 * 2**-24 * 40 and half a unit of the sum, 40 * 2**-24; with f16, 2**-11."""
    args = (argument("A", np.ones((1, 40))), argument("B", np.ones((40, 1))), argument("C", np.zeros((1, 1))))
    bound = 40 * 43 * 2.0**-24 + 40 * 2.0**-24 * (1 + 43 * 2.0**-24)
    evaluator = Evaluator(args, 2.0**-24)
    check = formula_check("C = A @ B", args, {}, None, None)
    values, errors = evaluator.at(check.formula.value, (), slice(None), slice(None))
    assert values.tolist() == [[40]] and errors.tolist() == [[40 * 43 * 2.0**-24]]
    one_more = float(np.spacing(np.float32(40)))
    inside = np.float32(40 + bound - one_more)
    assert checked(args, "C = A @ B", np.array([[inside]], np.float32)).ok
    outside = np.array([[np.float32(40 + bound + one_more)]], np.float32)
    assert not checked(args, "C = A @ B", outside).ok
    assert checked(args, "C = A @ B", outside, accumulate="f16").ok
    assert not checked(args, "C = A @ B", outside, tolerance=1e-6).ok
    assert checked(args, "C = A @ B", outside, tolerance=1e-5).ok


def test_batches_and_columns() -> None:
    x, y = RANDOM.random((3, 2, 4)), RANDOM.random((4, 5))
    scale = np.array([2.0, 3.0])
    args = (argument("X", x), argument("Y", y), argument("s", scale), argument("Z", np.zeros((3, 2, 5))))
    wanted = f32((x @ y) * scale[:, None])
    assert checked(args, "Z = (X @ Y) * column(s)", wanted).ok
    wanted[2, 1, 3] = 9
    assert "Z[2,1,3] is 9" in checked(args, "Z = (X @ Y) * column(s)", wanted).text


def test_types_that_numpy_lacks() -> None:
    """s4 operands are exact; an fp8 result may be off by half its last bit; a packed output is compared by element."""
    w, x = RANDOM.integers(-8, 8, (3, 6)), RANDOM.integers(-8, 8, (6, 4))
    exact = (argument("W", w, "s4"), argument("X", x, "s4"), argument("C", np.zeros((3, 4), int), "i32"))
    assert checked(exact, "C = W @ X", (w @ x).astype(np.int32)).ok
    assert not checked(exact, "C = W @ X", (w @ x).astype(np.int32) + (np.arange(12).reshape(3, 4) == 7)).ok
    small = RANDOM.random((4, 4))
    fp8 = (argument("x", small), argument("y", np.zeros((4, 4)), "e4m3"))
    bits = to_items("e4m3", small)
    assert checked(fp8, "y = x", bits).ok and not checked(fp8, "y = x", bits + np.uint8(1)).ok
    packed = (argument("x", np.array([[1, 2, 3, 4]]), "i8"), argument("y", np.zeros((1, 4), int), "s4"))
    assert checked(packed, "y = x + 1", to_items("s4", np.array([[2, 3, 4, 5]]))).ok
    assert "y[0,2] is 3, 4 was wanted" in checked(packed, "y = x + 1", to_items("s4", np.array([[2, 3, 3, 5]]))).text


def test_integers_that_were_rounded_may_differ_by_one() -> None:
    """0.5 * 3 is 1.5: 1 and 2 are both right, 3 is not. 200 saturates at 127."""
    args = (argument("x", np.array([[3, 400]]), "i32"), argument("y", np.zeros((1, 2), int), "i8"))
    for value, right in ((1, True), (2, True), (3, False)):
        assert checked(args, "y = 0.5 * x", np.array([[value, 127]], np.int8)).ok is right


def test_tf32_operands_may_be_cut_off() -> None:
    """1 + 2**-12 is not a tf32: hardware computes with 1."""
    args = (argument("A", np.ones((1, 8))), argument("B", np.ones((8, 1))), argument("C", np.zeros((1, 1))))
    odd = np.full((1, 8), 1 + 2.0**-12, np.float32)
    loose = (Argument("tf32", (1, 8), odd, "A"), *args[1:])
    tight = (Argument("f32", (1, 8), odd, "A"), *args[1:])
    assert checked(loose, "C = A @ B", np.array([[8]], np.float32)).ok
    assert not checked(tight, "C = A @ B", np.array([[8]], np.float32)).ok


def test_only_what_was_stored_counts_in_a_sample() -> None:
    after = f32(A @ B)
    after[2:] = 77
    stored = np.zeros((6, 5), np.bool_)
    stored[:2] = True
    found = checked(ARGS, "C = A @ B", after, stored)
    assert found.ok and "10 of 30 elements of C (the blocks sampled; --full compares all)" in found.text
    stored[3, 1] = True
    assert "C[3,1] is 77" in checked(ARGS, "C = A @ B", after, stored).text
    assert checked(ARGS, "C = A @ B", after, np.zeros((6, 5), np.bool_)).text == "NO: no element of C was stored"


def test_nan_is_found() -> None:
    after = f32(A @ B)
    after[0, 3] = np.nan
    found = checked(ARGS, "C = A @ B", after)
    assert not found.ok and "C[0,3] is nan" in found.text and found.relative_error == np.inf


def test_a_formula_that_gives_infinity_allows_nothing_else() -> None:
    args = (argument("x", np.array([1.0, 2])), argument("y", np.zeros(2)))
    assert checked(args, "y = x / 0", f32(np.array([np.inf, np.inf]))).ok
    found = checked(args, "y = x / 0", f32(np.array([np.inf, 2])))
    assert not found.ok and "y[1] is 2, inf was wanted" in found.text


def test_the_first_difference_of_all_parts() -> None:
    """The second part lies before the first one; in it row 1 differs, at column 2."""
    found = Differences()
    zeros, ones, everything = np.zeros((2, 3)), np.ones((2, 3)), np.ones((2, 3), np.bool_)
    found.add(ones, zeros, zeros, everything, (np.array([4, 5]), np.arange(3)))
    got = np.zeros((2, 3))
    got[1, 2] = 3
    found.add(got, zeros, zeros, everything, (np.array([0, 1]), np.arange(3)))
    outcome = found.found()
    assert outcome.first == outcome.farthest == Element((1, 2), 3, 0)
    assert (outcome.compared, outcome.wrong) == (12, 7)
    assert outcome.sentence("C") == "C[1,2] is 3, 0 was wanted; 7 of 12 elements differ, relative error 3.0e+00"


def test_the_difference_that_is_farthest_off() -> None:
    """Neither the first wrong element, 0 for 1, nor one that is allowed to be far off, but that of 4 for 9."""
    found = Differences()
    wanted, got = np.array([[2.0, 1, 7], [9, 5, 9]]), np.array([[2.0, 0, -7], [4, 5, 8]])
    allowed = np.array([[0.0, 0, 20], [0, 0, 0]])
    found.add(got, wanted, allowed, np.ones((2, 3), np.bool_), (np.array([10, 20]), np.arange(3)))
    outcome = found.found()
    assert (outcome.first, outcome.farthest) == (Element((10, 1), 0, 1), Element((20, 0), 4, 9))
    assert outcome.sentence("C").endswith("; farthest off: C[20,0] is 4, 9 was wanted")


def test_the_farthest_off_of_a_vector() -> None:
    args = (argument("x", np.array([1.0, 2, 3])), argument("y", np.zeros(3)))
    said = checked(args, "y = x", f32(np.array([0, 2, 8]))).text
    assert "y[0] is 0, 1 was wanted" in said and said.endswith("; farthest off: y[2] is 8, 3 was wanted")


def test_elements_that_nobody_stored() -> None:
    """Of a whole grid every element must be stored; the text says how many are not."""
    check = formula_check("C = A @ B", ARGS, {}, None, None)
    launch, stored = Launch((1, 1, 1), (1, 1, 1), ARGS), np.ones((6, 5), np.bool_)
    stored[3, 1:3] = False
    found = check_results(run_of(f32(A @ B), stored, False), launch, spec_of(launch, check))
    assert found.text == "NO: 2 of 30 elements of C were never stored; the first: C[3,1]" and found.ok is False


def run_of(after: NDArray, stored: NDArray, sampled: bool) -> Execution:
    outputs = (*(np.asarray(one.value) for one in ARGS[:-1]), after)
    written = (*(np.zeros(one.shape, np.bool_) for one in ARGS[:-1]), stored)
    return Execution(None, outputs, written, sampled)  # type: ignore[arg-type]


def test_saved_arrays_compare_with_themselves(tmp_path: Path) -> None:
    launch, names = Launch((1, 1, 1), (1, 1, 1), ARGS), array_names(ARGS)
    path, everywhere = tmp_path / "out.npz", np.ones((6, 5), np.bool_)
    run = run_of(f32(A @ B), everywhere, False)
    path.write_bytes(npz_bytes(names, run))
    assert sorted(np.load(path).files) == ["A", "B", "Bt", "C", "bias"]
    np.testing.assert_array_equal(np.load(path)["C"], f32(A @ B))
    check = file_check(str(path), names, None)
    assert check_results(run, launch, spec_of(launch, check)).ok
    off = f32(A @ B)
    off[5, 4] += 1
    found = check_results(run_of(off, everywhere, False), launch, spec_of(launch, check))
    assert not found.ok and "C[5,4] is" in found.text and "1 of 30 elements differ" in found.text
    only = file_check(f"C={path}", names, 100.0)
    assert check_results(run_of(off, everywhere, False), launch, spec_of(launch, only)).ok


def test_a_sample_saves_and_compares_what_was_written(tmp_path: Path) -> None:
    launch, names = Launch((1, 1, 1), (1, 1, 1), ARGS), array_names(ARGS)
    path, stored = tmp_path / "out.npz", np.zeros((6, 5), np.bool_)
    stored[1] = True
    path.write_bytes(npz_bytes(names, run_of(f32(A @ B), stored, True)))
    np.testing.assert_array_equal(np.load(path)["C.written"], stored)
    after = f32(A @ B)
    after[0] = 5
    check = file_check(f"C={path}:C", names, None)
    found = check_results(run_of(after, stored, True), launch, spec_of(launch, check))
    assert found.ok and "5 of 30 elements of C (the blocks sampled; --full compares all)" in found.text
    assert not check_results(run_of(after, stored, False), launch, spec_of(launch, check)).ok
    nothing = check_results(run_of(after, ~stored & stored, True), launch, spec_of(launch, check))
    assert nothing.text == "C not compared: none of the blocks sampled stored to it"
