"""Machine code that is kept: computes what the Python does, is compiled once, and is read with care."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gemmsim.native import code_store
from gemmsim.native.function import NativeFunction
from gemmsim.support.cache_folder import CacheWarning

SOURCE = """
import numpy as np

def weighted(numbers, table, scale, offset, out):
    total = 0.0
    for i in range(len(numbers)):
        out[i] = table[i, 1] * scale + numbers[i]
        total += out[i] * offset
    return total

def maker(by):
    def count(numbers):
        found = 0
        for number in numbers:
            if number > by:
                found += 1
        return found
    return count

def clear(numbers):
    numbers[:] = 0

def sum_of_chosen(table, scale):
    total = 0.0
    for i in range(len(table.chosen)):
        total += table.rows.value[table.chosen[i]] * scale * table.factor
    return total

def allocates(numbers):
    return np.zeros(len(numbers)).sum()

def divides(a, b):
    return a // b
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of native functions, and a folder of its own for them."""
    path = tmp_path / "native_sample.py"
    path.write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "native_sample", raising=False)
    monkeypatch.setattr(code_store, "folder", lambda: tmp_path / "kept")
    return path


def native(module: Path, function: str, *variant: int) -> NativeFunction:
    return NativeFunction("native_sample", function, [module], variant)


def kept(module: Path) -> list[Path]:
    return sorted((module.parent / "kept").glob("gemmsim-*"))


def test_arrays_and_numbers_arrive_as_they_are(module: Path) -> None:
    numbers = np.array([1, 2, 3], np.int32)
    table = np.arange(12, dtype=np.uint8).reshape(3, 4)[:, ::2]  # rows and columns apart in memory
    out = np.zeros(3)
    # table[:, 1] is 2, 6, 10: times 2 plus the numbers 5, 14, 23; their sum of 42 times a half
    assert native(module, "weighted")(numbers, table, 2, 0.5, out) == 21.0
    assert out.tolist() == [5.0, 14.0, 23.0]


@dataclass(frozen=True)
class Rows:
    value: np.ndarray


@dataclass(frozen=True)
class Table:
    rows: Rows
    chosen: np.ndarray
    factor: int


def test_a_dataclass_arrives_with_its_fields(module: Path) -> None:
    table = Table(Rows(np.array([1.0, 2.0, 4.0])), np.array([2, 0]), 3)
    assert native(module, "sum_of_chosen")(table, 0.5) == 7.5  # (4 + 1) * 0.5 * 3
    with pytest.raises(TypeError, match="not str"):
        native(module, "sum_of_chosen")(Table(Rows(np.zeros(1)), np.zeros(1), "x"), 0.5)  # type: ignore[arg-type]


def test_variants_and_types_are_kept_apart(module: Path) -> None:
    above_one, above_two = native(module, "maker", 1), native(module, "maker", 2)
    assert (above_one(np.arange(5)), above_two(np.arange(5))) == (3, 2)
    assert above_one(np.arange(5, dtype=np.float32)) == 3
    assert len(kept(module)) == 3


def test_a_function_that_returns_nothing(module: Path) -> None:
    numbers = np.ones(3, np.int64)
    assert native(module, "clear")(numbers) is None
    assert numbers.tolist() == [0, 0, 0]


def test_an_exception_is_not_passed_over(module: Path) -> None:
    divides = native(module, "divides")
    assert divides(7, 2) == 3
    with pytest.raises(ZeroDivisionError, match="divides"):
        divides(7, 0)


def test_what_cannot_be_translated_is_refused_with_its_line(module: Path) -> None:
    with pytest.raises(TypeError, match=r"allocates, line .*zeros"):
        native(module, "allocates")(np.zeros(2))
    assert kept(module) == []


def test_strings_are_no_arguments(module: Path) -> None:
    with pytest.raises(TypeError, match="str"):
        native(module, "clear")("text")


def test_the_second_process_does_not_compile(module: Path) -> None:
    code = (
        "import sys, numpy as np; from pathlib import Path; from gemmsim.native import code_store\n"
        "from gemmsim.native.function import NativeFunction\n"
        f"code_store.folder = lambda: Path({str(module.parent / 'kept')!r})\n"
        f"sys.path.insert(0, {str(module.parent)!r})\n"
        f"count = NativeFunction('native_sample', 'maker', [Path({str(module)!r})], (1,))\n"
        "print(count(np.arange(5)), 'gemmsim.native.build' in sys.modules, 'native_sample' in sys.modules)"
    )
    run = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [one.stdout.strip() for one in run] == ["3 True True", "3 False False"]


HALVES = """
import sys
from pathlib import Path
from gemmsim.native import code_store
from gemmsim.native.function import NativeFunction
here = Path(sys.argv[1])
code_store.folder = lambda: here / "kept"
sys.path.insert(0, str(here))
halves = NativeFunction("native_sample", "divides", [here / "native_sample.py"])
"""


def in_a_process(module: Path, code: str) -> str:
    run = [sys.executable, "-c", HALVES + code, str(module.parent)]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


def test_a_changed_source_is_compiled_again_and_takes_the_place_of_the_old(module: Path) -> None:
    assert in_a_process(module, "print(halves(8, 2))") == "4"
    (before,) = kept(module)
    module.write_text(SOURCE.replace("a // b", "a // b + 1"))
    assert in_a_process(module, "print(halves(8, 2))") == "5"
    (after,) = kept(module)
    assert after != before


def test_what_was_imported_before_a_change_is_not_stored_for_what_came_after_it(module: Path) -> None:
    changes = """
from gemmsim.support.errors import GemmsimError
path = here / "native_sample.py"
NativeFunction("native_sample", "clear", [path]).address(("int64 1 C",))  # imports the module
path.write_text(path.read_text().replace("a // b", "a // b + 1"))
try:
    halves(8, 2)
except GemmsimError as error:
    print(error)
"""
    assert "native_sample.py' has changed since this process began" in in_a_process(module, changes)
    assert len(kept(module)) == 1
    assert in_a_process(module, "print(halves(8, 2))") == "5"
    assert len(kept(module)) == 2


@pytest.mark.parametrize("damage", ["cut", "turned", "empty"])
def test_a_damaged_file_counts_as_absent(module: Path, damage: str) -> None:
    native(module, "divides")(8, 2)
    (path,) = kept(module)
    whole = path.read_bytes()
    broken = {"cut": whole[:-1], "turned": whole[:-1] + bytes([whole[-1] ^ 1]), "empty": b""}[damage]
    path.write_bytes(broken)
    assert code_store.load(path.name, path.parent) is None
    assert native(module, "divides")(8, 2) == 4
    assert code_store.load(path.name, path.parent) is not None


@pytest.mark.skipif(sys.platform == "win32", reason="rights of a folder")
def test_a_file_that_others_can_write_is_not_run(module: Path) -> None:
    native(module, "divides")(8, 2)
    (path,) = kept(module)
    assert code_store.load(path.name, path.parent) is not None
    path.chmod(0o622)
    assert code_store.load(path.name, path.parent) is None


def test_without_a_folder_it_works_and_says_so(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_store, "folder", lambda: module / "below a file")
    with pytest.warns(CacheWarning, match="compiled again"):
        assert native(module, "divides")(8, 2) == 4


def test_keys_follow_cpu_and_versions(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = code_store.key_of("f", [module], "one")
    assert code_store.key_of("f", [module], "one") == here
    others = {
        code_store.key_of("f", [module], "two"),
        code_store.key_of("g", [module], "one"),
        code_store.key_of("f", [], "one"),
    }
    monkeypatch.setattr(code_store, "versions_of", lambda packages: {})
    others.add(code_store.key_of("f", [module], "one"))
    assert len(others) == 4
    assert here not in others
