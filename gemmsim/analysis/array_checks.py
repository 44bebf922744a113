"""Checks arrays after a launch against a formula, and against arrays from a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.array_difference import Difference, Differences, never_stored
from gemmsim.analysis.findings import NOT_EXECUTED, Verification
from gemmsim.analysis.formula_values import Evaluator
from gemmsim.launch.array_files import items_of, read_array
from gemmsim.launch.formula import leaves
from gemmsim.launch.spec import FileCheck, FormulaCheck
from gemmsim.support.bit_patterns import to_items, to_numbers
from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural
from gemmsim.trace.types import Argument, Execution, Launch

_CHUNK_ELEMENTS = 1 << 22  # elements of an operand that are read at a time, so that the float64 copies stay small
# Two kernels that add the same f32 terms up in different orders may differ by this much of the largest value, in units
# of f32's (f64's) roundoff: the square root of 65,536 terms, about what random errors come to.
_ORDER_ROUNDOFFS = 256


def check_array(
    run: Execution, launch: Launch, check: FormulaCheck | FileCheck, sum_roundoff: float = 0.0
) -> Verification:
    """Check one array against a formula, or arrays against those of a file."""
    return _formula(run, launch, check, sum_roundoff) if isinstance(check, FormulaCheck) else _file(run, launch, check)


def _formula(run: Execution, launch: Launch, check: FormulaCheck, sum_roundoff: float) -> Verification:
    formula, argument = check.formula, launch.args[check.formula.output]
    name = formula.text.partition("=")[0].strip()
    after, stored = _after(run, launch, formula.output)
    if not run.sampled and not stored.all():
        return Verification(False, None, f"NO: {never_stored(name, stored)}")
    if not stored.any() and run.left_out:
        return Verification(None, None, NOT_EXECUTED)
    if not stored.any():
        return Verification(False, None, f"NO: no element of {name} was stored")
    evaluator = Evaluator(launch.args, _roundoff(launch, check, sum_roundoff))
    shape = (1,) * (2 - after.ndim) + after.shape
    after, stored = after.reshape(shape), stored.reshape(shape)
    differences = Differences()
    widest = max((max(leaf.shape) for leaf in leaves(formula.value)), default=1)
    for batch in np.ndindex(shape[:-2]):
        rows = np.flatnonzero(stored[batch].any(axis=1))
        for some in np.array_split(rows, max(1, rows.size * widest // _CHUNK_ELEMENTS)) if rows.size else ():
            columns = np.flatnonzero(stored[batch][some].any(axis=0))
            values, errors = evaluator.at(formula.value, batch, some, columns)
            values = np.broadcast_to(values, (some.size, columns.size))
            at = np.ix_(some, columns)
            wanted, allowed = _stored_as(argument.dtype, values, errors, evaluator.roundoff)
            if check.tolerance is not None:
                allowed = np.full(wanted.shape, check.tolerance * float(np.abs(values).max(initial=0.0)))
            place = *(np.array([one]) for one in batch), some, columns
            lead = (1,) * len(batch)
            parts = (after[batch][at].astype(np.float64), wanted, np.broadcast_to(allowed, wanted.shape))
            got, wanted, allowed = (part.reshape(*lead, *part.shape) for part in parts)
            compared = stored[batch][at]
            differences.add(got, wanted, allowed, compared.reshape(*lead, *compared.shape), place)
    found = differences.found()
    if len(launch.args[formula.output].shape) == 1 and found.first and found.farthest:
        flat = (replace(one, index=one.index[1:]) for one in (found.first, found.farthest))
        found = replace(found, first=next(flat), farthest=next(flat))
    return _verdict(name, found, stored.size, run.sampled, f"as in '{formula.text}'")


def _roundoff(launch: Launch, check: FormulaCheck, least: float) -> float:
    """Return the unit roundoff of the type in which the kernel adds up, but at least `least`; 0 for integers."""
    if check.accumulate is not None:
        return DTYPES[check.accumulate].unit_roundoff
    dtypes = {launch.args[leaf.position].dtype for leaf in leaves(check.formula.value)}
    dtypes.add(launch.args[check.formula.output].dtype)
    if "f64" in dtypes:
        return DTYPES["f64"].unit_roundoff
    return max(DTYPES["f32"].unit_roundoff, least) if dtypes & set(FLOATS) else 0.0


def _stored_as(
    dtype: str, values: NDArray[np.float64], errors: NDArray[np.float64], roundoff: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (values, errors allowed) after values with these errors are rounded to the type of the output."""
    if dtype in FLOATS:
        if dtype in ("e4m3", "e5m2"):  # conversions to fp8 saturate
            largest = float(to_numbers(dtype, to_items(dtype, np.array([1e9])))[0])
            values = np.clip(values, -largest, largest)
        smallest = {"f16": 2.0**-24, "e4m3": 2.0**-9, "e5m2": 2.0**-16}.get(dtype, 0.0)
        unit = DTYPES[dtype].unit_roundoff
        return values, errors + unit * (np.abs(values) + errors) + smallest / 2
    whole = values == np.rint(values)
    fixed = {"s4": (-8, 7), "u4": (0, 15), "bool": (0, 1)}
    low, high = fixed[dtype] if dtype in fixed else _integer_limits(dtype)
    exact = roundoff == 0.0 and bool(whole.all())
    # A value between two integers may be rounded or cut off.
    return np.clip(values, low, high), np.zeros(values.shape) if exact else errors + np.where(whole, 0.0, 1.0)


def _integer_limits(dtype: str) -> tuple[int, int]:
    limits = np.iinfo(DTYPES[dtype].numpy_name)
    return int(limits.min), int(limits.max)


def _file(run: Execution, launch: Launch, check: FileCheck) -> Verification:
    found = [_against_file(run, launch, check, position, name) for position, name, _ in check.arrays]
    bad = [one for one in found if one.ok is False]
    worst = max((one.relative_error or 0.0 for one in found), default=0.0)
    if len(found) == 1 or bad:
        return Verification(not bad, worst, "; ".join(one.text for one in bad or found))
    compared = [name for one, (_, name, _) in zip(found, check.arrays, strict=True) if one.ok]
    of = ", ".join(compared) or "nothing: the blocks sampled stored to none of its arrays"
    part = "what the blocks sampled stored of" if run.sampled else "all elements of"
    path = check.arrays[0][2].path
    return Verification(
        True if compared else None, worst, f"yes, as in {path}, relative error {worst:.1e}, {part} {of}"
    )


def _against_file(run: Execution, launch: Launch, check: FileCheck, position: int, name: str) -> Verification:
    argument = launch.args[position]
    file = next(file for at, _, file in check.arrays if at == position)
    what = f"--reference {file.path}: {name}"
    stored_array = read_array(file, what)
    if argument.dtype in FLOATS and stored_array.dtype.kind == "f" and DTYPES[argument.dtype].packed == 1:
        wanted = stored_array.astype(np.float64)  # any float type may be the reference of any other
    else:
        wanted = to_numbers(argument.dtype, items_of(stored_array, argument.dtype, argument.shape, what))
    after, stored = _after(run, launch, position)
    if wanted.shape != after.shape:
        raise GemmsimError(f"{what}: the file's array is {list(wanted.shape)}, the launch's {list(after.shape)}")
    compared = stored if run.sampled else np.ones(after.shape, np.bool_)
    if not compared.any():
        return Verification(None, None, f"{name} not compared: none of the blocks sampled stored to it")
    scale = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)) if wanted.dtype.kind == "f" else 0.0
    tolerance = _tolerance(argument) if check.tolerance is None else check.tolerance
    if wanted.dtype.kind != "f" and check.tolerance is not None:
        scale = float(np.abs(wanted.astype(np.float64)).max(initial=0.0))
    differences = Differences()
    place = tuple(np.arange(size) for size in after.shape)
    allowed = np.full(after.shape, tolerance * scale)
    got, exact = after.astype(np.float64), wanted.astype(np.float64)
    if after.dtype.itemsize == 8 and after.dtype.kind in "iu":  # float64 does not hold all of these
        exact = np.where(after == wanted, got, exact + np.where(got == exact, np.spacing(np.abs(exact)), 0))
    differences.add(got, exact, allowed, compared, place)
    return _verdict(name, differences.found(), after.size, run.sampled, f"as in {file.path}")


def _tolerance(argument: Argument) -> float:
    """Return how much of the largest value results may differ that were added up in another order."""
    if argument.dtype not in FLOATS:
        return 0.0
    sums = DTYPES["f64" if argument.dtype == "f64" else "f32"].unit_roundoff
    return max(_ORDER_ROUNDOFFS * sums, 2 * DTYPES[argument.dtype].unit_roundoff)


def _after(run: Execution, launch: Launch, position: int) -> tuple[NDArray, NDArray[np.bool_]]:
    """Return an array after the run as numbers, and which of its elements were stored."""
    items, stored = run.outputs[position], run.written[position]
    assert items is not None and stored is not None
    dtype = launch.args[position].dtype
    return to_numbers(dtype, items), np.repeat(stored, DTYPES[dtype].packed, axis=-1)


def _verdict(name: str, found: Difference, size: int, sampled: bool, how: str) -> Verification:
    part = f"{found.compared} of {size} elements of {name} (the blocks sampled; --full compares all)"
    of = part if sampled else f"all {plural(size, 'element', str(size))} of {name}"
    relative = found.relative_error
    if not found.wrong:
        return Verification(True, relative, f"yes, {how}, relative error {relative:.1e}, {of}")
    return Verification(False, relative, f"NO, not {how}: {found.sentence(name)}{' (the blocks sampled)' * sampled}")
