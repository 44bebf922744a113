"""The translator: what each construct computes is what Python computes, or is refused with its line."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gemmsim.native import code_store
from gemmsim.native.function import NativeFunction

SOURCE = """
import math
import numpy as np

LIMITS = (3, 5, 8)

def divisions(a, b):
    return (a // b) * 1000 + a % b

def shares(a, b):
    return a / b

def mixed(a, b):
    return 1 if a < b else 0

def words(a):
    cut = np.uint32(a)
    inverted = ~cut
    return np.int64(inverted >> np.uint32(4)) + np.int64(np.int32(cut)) + np.int64(np.uint8(a))

def loops(n):
    total = 0
    for i in range(n, -1, -2):
        if i == 4:
            continue
        total += i
    for number, limit in enumerate(LIMITS):
        if n < limit:
            break
        total += 100 * number + 1000
    while True:
        total += 10000
        if total > 50000:
            return total

def choices(a):
    low, high = (a, a + 1) if a > 0 and 12 // a > 2 else (a - 1, a)
    if a in (2, 5) or not a < 9:
        low -= 100
    return low * 1000 + high

def widens(n):
    total = 0
    for i in range(n):
        total = total + 0.5
    return total

def rounding(a):
    return math.ceil(a) * 100 + math.floor(a) + int(a) + max(1, 2, min(7, 3))

def rows(table, out):
    for r in range(table.shape[0]):
        row = table[r]
        out[r] = row[-1] - row[0] + len(row)
    out[-1] += 1

def text(a):
    name = "x"
    return a

def unknown(a):
    with a:
        return a

def early(a):
    if a > 0:
        b = a
    return b + c

def ends(a):
    if a > 0:
        return a
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("translate") / "translate_sample.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("translate_sample", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["translate_sample"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def native(sample: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    monkeypatch.setattr(code_store, "folder", lambda: tmp_path)
    return lambda name: NativeFunction("translate_sample", name, [Path(str(sample.__file__))])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("divisions", [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)]),
        ("shares", [(7, 2), (1.5, -3.0)]),
        ("loops", [(9,), (4,), (0,), (5,)]),
        ("choices", [(0,), (1,), (2,), (4,), (5,), (9,), (30,)]),
        ("widens", [(0,), (3,)]),
        ("rounding", [(2.5,), (-2.5,), (3.0,)]),
    ],
)
def test_python_computes_the_same(
    sample: ModuleType, native: Callable[[str], Any], name: str, arguments: list[tuple[Any, ...]]
) -> None:
    compiled = native(name)
    assert [compiled(*one) for one in arguments] == [getattr(sample, name)(*one) for one in arguments]


def test_words_are_cut_and_widened(native: Callable[[str], Any]) -> None:
    # Of 0x1_8000_00FF 32 bits stay; inverted in 64 bits that is 0xFFFFFFFF_7FFFFF00, shifted 0x0FFFFFFF_F7FFFFF0.
    assert native("words")(0x1_8000_00FF) == 0x0FFF_FFFF_F7FF_FFF0 + (0x8000_00FF - (1 << 32)) + 0xFF


@pytest.mark.parametrize("pair", [(-1, 1), (1, 1 << 63), (0, 0), (-1, (1 << 64) - 1)])
def test_a_negative_number_is_below_every_unsigned_one(native: Callable[[str], Any], pair: tuple[int, int]) -> None:
    signed, unsigned = pair
    assert native("mixed")(signed, np.uint64(unsigned)) == (signed < unsigned)
    assert native("mixed")(np.uint64(unsigned), signed) == (unsigned < signed)


def test_rows_and_the_last_element(sample: ModuleType, native: Callable[[str], Any]) -> None:
    table, out = np.array([[1, 5, 9], [2, 4, 7]], np.int16)[:, ::2], np.zeros(2, np.int64)
    native("rows")(table, out)
    assert out.tolist() == [9 - 1 + 2, 7 - 2 + 2 + 1]


def test_a_division_by_zero_is_told(native: Callable[[str], Any]) -> None:
    for name in ("divisions", "shares"):
        compiled = native(name)
        with pytest.raises(ZeroDivisionError, match=name):
            compiled(1, 0)
        assert compiled(4, 2) in (2000, 2.0)  # the next call is not blamed for it


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("text", '    name = "x"', "'x' is not a number"),
        ("unknown", "    with a:", "no With in compiled code"),
        ("early", "    return b + c", "'c' is not defined"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(
    native: Callable[[str], Any], name: str, line: str, message: str
) -> None:
    number = SOURCE.splitlines().index(line) + 1
    with pytest.raises(TypeError, match=f"{name}, line {number}: {message}"):
        native(name)(1)


def test_a_function_that_may_end_without_a_value_is_refused(native: Callable[[str], Any]) -> None:
    with pytest.raises(TypeError, match="it may end without returning a value"):
        native("ends")(1)
