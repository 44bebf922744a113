"""Expressions in CUDA C++, compiled without a GPU and executed, against what they mean (`twins.py`)."""

from __future__ import annotations

import itertools
from functools import cache

import block_twins
import conversion_twins
import float_twins
import numpy as np
import pytest
import twins
from cubins import EACH
from numpy.typing import NDArray
from programs import cuda_program

from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Launch

_EDGES32 = (
    0,
    1,
    2,
    31,
    32,
    33,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x3F800000,
    0x7F800000,
    0x7FC00001,
    0x00000001,
    0x80000000,
)
_EDGES64 = (0, 1, 24, 63, 64, M := 0x7FFFFFFF, M + 1, 2 * M + 1, 2 * M + 2, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_TWINS = (twins, float_twins, conversion_twins)
_FLOATS = (0.0, -0.0, 1.0, -1.5, 1e-45, -1e-40, 3.4e38, np.inf, -np.inf, np.nan, 2.5, 1e-30, 1.17549435e-38)


def _operands(edges: tuple, random: NDArray, count: int) -> NDArray:
    """Three operands a thread: every pair of edge values (the third drawn from them), then random ones."""
    rng = np.random.default_rng(1)
    columns = np.array(list(itertools.product(edges, edges)), random.dtype)
    third = rng.choice(np.array(edges, random.dtype), len(columns))
    table = np.concatenate([np.column_stack([columns, third]), random.reshape(-1, 3)])
    return np.ascontiguousarray(table[:count].T)


def _run(arch: str, name: str, operands: NDArray, results: int, out: type, block: int = 64, more: tuple = ()) -> list:
    threads = operands.shape[1]
    program = cuda_program("expressions.cu", name, arch)
    dtype = {np.uint32: "u32", np.uint64: "u64", np.float32: "f32", np.float64: "f64"}
    arguments = (
        Argument(dtype[operands.dtype.type], operands.shape, operands),
        Argument(dtype[out], (results + 4, threads), np.full((results + 4, threads), 0xABCDEF, out)),
        *more,
    )
    execution = execute(program, Launch((threads // block, 1, 1), (block, 1, 1), arguments))
    assert not execution.written[1][results:].any(), "the kernel has more expressions than the twin"
    return [execution.outputs[1][:results], *execution.outputs[2:]]


_WIDENED_HALVES = (29, 30, 32)  # results of conversions() that hold a float32 made of a half


def _one_nan(row: NDArray) -> NDArray:
    """All NaN as one: their bits are not part of what an expression means."""
    if row.dtype == np.uint32:
        return np.where(row & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FFFFFFF), row)
    return np.where(row & (1 << 63) - 1 > 0x7FF << 52, np.uint64((1 << 63) - 1), row)


def _check(got: NDArray, expected: NDArray, operands: NDArray, name: str) -> None:
    for slot, (row, want) in enumerate(zip(got, expected, strict=True)):
        if name.startswith(("single", "dbl")):
            row, want = _one_nan(row), _one_nan(want)
        elif name.startswith("conversions") and slot in _WIDENED_HALVES:
            row, want = _one_nan(row.astype(np.uint32)), _one_nan(want.astype(np.uint32))
        wrong = np.flatnonzero(row != want)
        if len(wrong):
            t = wrong[0]
            at = ", ".join(hex(int(v)) for v in operands[:, t].view(f"u{operands.itemsize}"))
            raise AssertionError(
                f"{name}: expression {slot} of ({at}) is {int(row[t]):#x}, not {int(want[t]):#x} ({len(wrong)} lanes)"
            )


@cache
def _expected(name: str) -> NDArray:
    """What the twin says of the operands of a case, one row an expression, whatever the architecture."""
    operands, out = _CASES[name]
    bits = 8 * np.dtype(out).itemsize
    function = next(getattr(module, name) for module in _TWINS if hasattr(module, name))
    convert = (lambda v: v) if operands.dtype.kind == "f" else int
    rows = [function(*map(convert, operands[:, t])) for t in range(operands.shape[1])]
    return np.array([[int(v) & ((1 << bits) - 1) for v in row] for row in rows], f"u{bits // 8}").T


_RNG = np.random.default_rng(0)
_WORDS = _RNG.integers(0, 1 << 32, (400, 3), np.uint64).astype(np.uint32)
_LONGS = _RNG.integers(0, 1 << 64, (400, 3), np.uint64) >> _RNG.integers(0, 60, (400, 3)).astype(np.uint64)
_SINGLES = (_RNG.standard_normal((400, 3)) * 10.0 ** _RNG.integers(-6, 7, (400, 3))).astype(np.float32)
_CASES = {
    "integer32": (_operands(_EDGES32, _WORDS, 448), np.uint32),
    "integer64": (_operands(_EDGES64, _LONGS, 448), np.uint64),
    "single": (_operands(_FLOATS, _SINGLES, 448), np.uint32),
    "dbl": (_operands(_FLOATS, _SINGLES.astype(np.float64), 448), np.uint64),
    "conversions": (_operands(_EDGES32, np.concatenate([_SINGLES.view(np.uint32)[:60], _WORDS]), 512), np.uint64),
    "halves": (
        _operands((0, 0x3C00C000, 0x7C000001, 0xFC0003FF, 0x7BFF0400, 0x7E018000, 0x35553C01), _WORDS, 448),
        np.uint32,
    ),
}


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("arch", EACH)
def test_expressions(arch: str, name: str) -> None:
    operands, out = _CASES[name]
    expected = _expected(name)
    if name == "halves" and arch == "sm_75":
        expected = expected[:13]
    (got,) = _run(arch, name, operands, len(expected), out)
    _check(got, expected, operands, f"{name} on {arch}")


def _blocks(operands: NDArray, block: int) -> list[list[list[int]]]:
    """[block][operand][thread] as Python integers."""
    return [operands[:, i : i + block].tolist() for i in range(0, operands.shape[1], block)]


@pytest.mark.parametrize("arch", EACH)
def test_across_lanes(arch: str) -> None:
    operands = _WORDS[:384].T.copy()
    operands[:2, :32] = 3  # lanes that agree
    expected = np.hstack([block_twins.matrix(block_twins.warp(arch, *b)) for b in _blocks(operands, 32)])
    (got,) = _run(arch, "warp", operands, len(expected), np.uint32, block=32)
    _check(got, expected, operands, f"warp on {arch}")


@pytest.mark.parametrize("arch", EACH)
def test_memory_of_every_width(arch: str) -> None:
    operands = _WORDS[:384].T.copy()
    scratch = Argument("u8", (64 * 384,), np.zeros(64 * 384, np.uint8))
    blocks = [block_twins.memory(n, *b) for n, b in enumerate(_blocks(operands, 64))]
    expected = np.hstack([block_twins.matrix(b) for b in blocks])
    got, _ = _run(arch, "memory", operands, len(expected), np.uint32, more=(scratch,))
    _check(got, expected, operands, f"memory on {arch}")


@pytest.mark.parametrize("arch", EACH)
def test_atomics(arch: str) -> None:
    operands = _WORDS[:384].T.copy()
    more = tuple(
        Argument(dtype, (512,), np.zeros(512, kind))
        for dtype, kind in (("u32", np.uint32), ("u64", np.uint64), ("f32", np.float32), ("f64", np.float64))
    )
    a, b = operands[0].tolist(), operands[1].tolist()
    blocks = [block_twins.matrix(block_twins.atomics_of_block(*x[:2])) for x in _blocks(operands, 64)]
    expected = np.hstack(blocks)
    got, cells, wide, floats, doubles = _run(arch, "atomics", operands, len(expected), np.uint32, more=more)
    _check(got, expected, operands, f"atomics on {arch}")
    shared = block_twins.cells(a, b)
    assert cells[: len(shared)].tolist() == [v & twins.M32 for v in shared]
    assert wide[:2].tolist() == [sum(a) << 20, max(x << 20 | y for x, y in zip(a, b, strict=True))]
    assert floats[:4].tolist() == [96.0] * 4 and doubles[:4].tolist() == [48.0] * 4
    assert floats[8:392].tolist() == [float(x & 255) for x in a]


@pytest.mark.parametrize("arch", EACH)
@pytest.mark.parametrize("block", [64, 48])
def test_control_flow(arch: str, block: int) -> None:
    operands = _WORDS[:384].T.copy()
    operands[0, :block] |= 1
    operands[0, 7] = 12345
    blocks = [block_twins.control(n, 384 // block, *b) for n, b in enumerate(_blocks(operands, block))]
    expected = np.hstack([block_twins.matrix(b) for b in blocks])
    (got,) = _run(arch, "control", operands, len(expected), np.uint32, block=block)
    _check(got, expected, operands, f"control on {arch}")
