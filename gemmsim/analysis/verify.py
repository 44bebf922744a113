"""Compares the C that the simulated kernel computed with a reference that NumPy computes in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.array_difference import Element, farthest_off, never_stored
from gemmsim.analysis.findings import NOT_EXECUTED, Verification
from gemmsim.launch.spec import GemmCheck
from gemmsim.support.bit_patterns import to_numbers
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.periodic_array import elements
from gemmsim.support.plurals import plural, verb
from gemmsim.trace.types import Argument, Execution, Launch

_CHUNK_ELEMENTS = 1 << 22  # elements of A that are read at a time, so that the float64 copy stays small

# A doubtful element is one whose error the bound does not cover with |sum a b| in place of sum|a b|, its magnitude.
_DOUBTFUL_SHARE = 32  # where more than one element in 32 is doubtful, the magnitudes of all are computed
_AT_ONCE = 1024  # elements whose magnitudes are computed in one step


def verify(run: Execution, launch: Launch, check: GemmCheck | None, sum_roundoff: float = 0.0) -> Verification:
    """Compare every element of C that was stored with alpha * A @ B + beta * C in float64.

    Where `check` says so, the reference adds a bias, and takes max(0, ...) of the sum.

    The error allowed is the a-priori bound of a K-term sum, (K + 3) u sum|a b| (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 3.1), element by element; u is the unit roundoff of C's type, or `sum_roundoff`, by
    which tensor cores cut, where that is more. Where A and B are rounded first, to a unit roundoff r, each product is
    wrong by at most a factor of (1 + r)^2 more. max(0, ...) adds no error.
    """
    if check is None:
        return Verification(None, None, "not checked: nothing was given to verify it by")
    a, b = (_Operand(launch.args[i]) for i in (check.a, check.b))
    if check.sizes:
        m, n, k = check.sizes
        a.array, b.array = a.array.reshape(m, k), b.array.reshape((n, k) if check.b_transposed else (k, n))
    if check.b_transposed:
        b.array = b.array.T
    before = launch.args[check.c]
    after, stored = run.outputs[check.c], run.written[check.c]
    assert after is not None and stored is not None
    m = a.array.shape[0]
    n = b.array.shape[1]
    after, stored = to_numbers(before.dtype, after).reshape(m, n), stored.reshape(m, n)
    count = int(np.count_nonzero(stored))
    if not run.sampled and count != m * n:
        return Verification(False, None, f"NO: {never_stored('C', stored)}")
    if not count and run.left_out:
        return Verification(None, None, NOT_EXECUTED)
    if not count:
        return Verification(False, None, "NO: no element of C was stored")
    bias = None if check.bias is None else _Operand(launch.args[check.bias])[:]
    old = to_numbers(before.dtype, np.asarray(before.value)).reshape(m, n)
    roundoff = max(DTYPES[before.dtype].unit_roundoff, sum_roundoff)
    worst, scale, wrong = _compare(a, b, old, bias, after, stored, check, roundoff)
    relative = worst / scale if scale else worst
    if not wrong:
        part = f"{count} of {m * n} elements of C (the blocks sampled)"
        of = part if run.sampled else f"all {plural(m * n, 'element', str(m * n))} of C"
        return Verification(True, relative, f"yes, relative error {relative:.1e}, {of}")
    number = sum(one.count for one in wrong)
    differ = f"{number} of {count} elements of C {verb(number, 'differs', 'differ')}"
    differ += " (the blocks sampled)" * run.sampled
    beyond = f"NO: relative error {relative:.1e}, beyond what {before.dtype} sums explain: {differ}"
    first, farthest = wrong[0].first, max(wrong, key=lambda one: one.by).farthest
    places = f"the first: {first.sentence('C')}{farthest_off('C', first, farthest)}"
    return Verification(False, relative, f"{beyond}; {places}")


@dataclass(frozen=True, slots=True)
class _Wrong:
    """The wrong elements of some rows: their number, the first, the one farthest off, and by how much it is."""

    count: int
    first: Element
    farthest: Element
    by: float


class _Operand:
    """The array of one argument. A part becomes float64 when it is read, so no large array is copied whole."""

    def __init__(self, argument: Argument) -> None:
        self.dtype = argument.dtype
        self._whole: Any = argument.value
        self.array = np.asarray(argument.value).reshape(argument.shape)

    def __getitem__(self, part: Any) -> NDArray[np.float64]:
        array = elements(self._whole, self.array, part) if isinstance(part, tuple) else self.array[part]
        return to_numbers(self.dtype, array).astype(np.float64)


def _compare(
    a: _Operand,
    b: _Operand,
    before: NDArray,
    bias: NDArray[np.float64] | None,
    after: NDArray,
    stored: NDArray[np.bool_],
    check: GemmCheck,
    roundoff: float,
) -> tuple[float, float, list[_Wrong]]:
    """Return (largest absolute error, largest |reference|, the elements that are wrong) of stored elements.

    The reference is computed only for rows with stored elements, and for a group of rows only in the columns in which
    any of these rows has a stored element.
    """
    rows = np.flatnonzero(stored.any(axis=1))
    worst = scale = 0.0
    found: list[_Wrong] = []
    k = a.array.shape[1]
    for some in np.array_split(rows, max(1, rows.size * k // _CHUNK_ELEMENTS)):
        columns = np.flatnonzero(stored[some].any(axis=0))
        at = np.ix_(some, columns)
        rows_a, columns_b = a[some, :], b[:, columns]
        product = rows_a @ columns_b
        old = np.where(stored[at], before[at], 0).astype(np.float64) if check.beta else np.zeros(product.shape)
        expected = check.alpha * product + check.beta * old
        terms = np.abs(check.beta * old)
        if bias is not None:
            expected, terms = expected + bias[columns], terms + np.abs(bias[columns])
        expected = np.maximum(expected, 0) if check.relu else expected
        error = np.where(stored[at], np.abs(after[at].astype(np.float64) - expected), 0)
        error[np.isnan(error)] = np.inf  # else it were the largest error of none
        allowed = partial(_allowed, check=check, k=k, roundoff=roundoff)
        # sum|a b| is no less than |sum a b|, which is at hand and suffices for most elements. Their magnitude is not
        # computed.
        doubtful = np.nonzero(~(error <= allowed(np.abs(product), terms)))
        if len(doubtful[0]) > product.size // _DOUBTFUL_SHARE:
            magnitude = (np.abs(rows_a) @ np.abs(columns_b))[doubtful]
        else:
            magnitude = _magnitude(rows_a, columns_b, *doubtful)
        wrong = np.flatnonzero(~(error[doubtful] <= allowed(magnitude, terms[doubtful])))
        if wrong.size:
            off = error[doubtful][wrong]
            places = [(doubtful[0][wrong[one]], doubtful[1][wrong[one]]) for one in (0, int(off.argmax()))]
            first, farthest = (
                Element((int(some[i]), int(columns[j])), float(after[some[i], columns[j]]), float(expected[i, j]))
                for i, j in places
            )
            found.append(_Wrong(wrong.size, first, farthest, float(off.max())))
        worst, scale = max(worst, float(error.max())), max(scale, float(np.abs(expected).max()))
    return worst, scale, found


def _allowed(
    magnitude: NDArray[np.float64], terms: NDArray[np.float64], check: GemmCheck, k: int, roundoff: float
) -> NDArray[np.float64]:
    """Return the error allowed for each element, as an array of the shape of `magnitude`.

    magnitude  sum of |a b| over an element's products
    terms      |beta * C| + |bias|, the terms that are added to the products
    """
    scaled, rounded = abs(check.alpha) * magnitude, (1 + check.operand_roundoff) ** 2
    return (k + 3) * roundoff * (rounded * scaled + terms) + (rounded - 1) * scaled


def _magnitude(a: NDArray[np.float64], b: NDArray[np.float64], row: NDArray, column: NDArray) -> NDArray[np.float64]:
    """Return the sum of |a b| for each element (row[i], column[i]) of the product, float64 [len(row)]."""
    parts = [
        np.einsum("ij,ji->i", np.abs(a[row[i : i + _AT_ONCE]]), np.abs(b[:, column[i : i + _AT_ONCE]]))
        for i in range(0, len(row), _AT_ONCE)
    ]
    return np.concatenate([np.zeros(0), *parts])
