"""The compiled vector code of every micro-operation equals its slow twin: the same function run on NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_lanes import NumpyLanes

from gemmsim.isa.semantics.operations import load
from gemmsim.isa.semantics.registry import Op
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.engine.parts import lane_operations

OPS = load()
ALL = 0xFFFFFFFF
# Values at which integer, float32, packed half and float64 (in the high word) arithmetic change their behaviour.
EDGES = [0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, ALL, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00001]
EDGES += [0x00800000, 0x007FFFFF, 0x7F7FFFFF, 0x4F000000, 0x3C003C00, 0x7BFF0001, 0x3FF00000, 0x7FF00000, 0x7FF80000]
WORD = st.one_of(st.sampled_from(EDGES), st.integers(0, ALL))
# These functions come from the C library here and, where the CPU has AVX-512, from NumPy's own vector code there. The
# two differ in the last bit of about 1 % of the results.
LAST_BIT_MAY_DIFFER = {"mufu_ex2", "mufu_lg2"}
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
ROWS = 16  # two words for each of up to five sources, then up to three results of two words


def _twin(op: Op, rows: np.ndarray, immediates: list[int]) -> list[np.ndarray]:
    """Result words in order, by the NumPy algebra."""
    sources = []
    for number, type_ in enumerate(op.sources):
        low, high = rows[2 * number], rows[2 * number + 1]
        if type_ == "pred":
            sources.append(NumpyLanes("b", low >= 0x80000000))
        elif type_.endswith("64"):
            wide = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
            sources.append(NumpyLanes("u64", wide).bitcast(type_))
        else:
            sources.append(NumpyLanes("u32", low).bitcast(type_))
    constants = [NumpyLanes("u32", np.full(32, word, np.uint32)) for word in immediates]
    returned = op.function(*sources, *constants)
    words = []
    for type_, value in zip(op.results, returned if isinstance(returned, tuple) else (returned,), strict=True):
        if type_ == "pred":
            words.append(np.where(value.array, ALL, 0))
        elif type_.endswith("64"):
            bits = value.bitcast("u64").array
            words += [bits & np.uint64(ALL), bits >> np.uint64(32)]
        else:
            words.append(value.bitcast("u32").array)
    return [word.astype(np.uint32) for word in words]


def _compiled(op: Op, rows: np.ndarray, immediates: list[int], mask: int) -> list[np.ndarray]:
    code = np.zeros(micro.COLUMNS, np.uint32)
    for i in range(len(op.sources)):
        at = micro.SOURCE + micro.SOURCE_COLUMNS * i
        code[at : at + 3] = 2 * i * WARP_LANES, ALL, 0
    first = 2 * 5
    for i in range(3):
        code[micro.RESULT + i] = (first + 2 * i) * WARP_LANES
    code[micro.IMMEDIATE : micro.IMMEDIATE + len(immediates)] = immediates
    state = np.ascontiguousarray(rows)
    (address,) = lane_operations().addresses([op.name])
    _SIGNATURE(address)(code.ctypes.data, state.ctypes.data, mask)
    words = []
    for i, type_ in enumerate(op.results):
        words += [state[first + 2 * i], state[first + 2 * i + 1]] if type_.endswith("64") else [state[first + 2 * i]]
    return words


@pytest.mark.parametrize("name", list(OPS))
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_compiled_equals_numpy(name: str, data: st.DataObject) -> None:
    """Bit for bit but for LAST_BIT_MAY_DIFFER; lanes that do not execute keep what they had."""
    op = OPS[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = rng.integers(0, 2**32, (ROWS, 32), np.uint32)
    for number in range(2 * len(op.sources)):
        rows[number, :8] = data.draw(st.lists(WORD, min_size=8, max_size=8))
    small = st.integers(0, 255) if name.startswith(("lop3", "plop3")) else st.integers(0, 31)
    immediates = [data.draw(small) for _ in range(op.immediates)]
    mask = data.draw(st.sampled_from([ALL, 0x0000FFFF, 0x80000001]))
    active = np.array([mask >> lane & 1 == 1 for lane in range(32)])
    before = rows.copy()
    expected = _twin(op, rows, immediates)
    computed = _compiled(op, rows, immediates, mask)
    old, row = [], 2 * 5
    for type_ in op.results:
        old += [before[row], before[row + 1]] if type_.endswith("64") else [before[row]]
        row += 2
    for got, wanted, kept in zip(computed, expected, old, strict=True):
        difference = np.abs(got.astype(np.int64) - np.where(active, wanted, kept))
        assert difference.max() <= (name in LAST_BIT_MAY_DIFFER)
