"""What `make fuzz` calls a failure, and that a seed makes the same input again."""

from __future__ import annotations

import importlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).resolve().parents[2]


def defect(_: object) -> int:
    raise ZeroDivisionError("of ours")


def held(_: object) -> int:
    return 0


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        (lambda _: 0, ""),
        (lambda _: 2, ""),
        (lambda _: 3, "exit status 3"),
        (defect, "traceback: ZeroDivisionError: of ours"),
        (lambda _: os.kill(os.getpid(), signal.SIGKILL), "signal 9"),
        (lambda _: time.sleep(60), "over 1 s"),
        (held, "0.1 GiB"),
    ],
)
def test_what_is_a_failure(
    how: Callable[[object], int], wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(TESTS)
    fuzz = importlib.import_module("fuzz.__main__")
    monkeypatch.setattr(fuzz, "_LONGEST_S", 1.0)
    monkeypatch.setattr(fuzz, "_MOST_BYTES", 1 if how is held else 1 << 50)
    found = fuzz.run(SimpleNamespace(run=how, words=()), tmp_path / "log")
    assert found.endswith(" GiB") if wrong.endswith("GiB") else found == wrong


def test_a_seed_makes_the_same_damage_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TESTS)
    damage = importlib.import_module("fuzz.damage")
    words, content = ("analyze", "--kernel", "tiled", "--size", "64"), bytes(range(256)) * 4
    for change, given in ((damage.damaged_words, words), (damage.damaged_bytes, content)):
        first = [change(given, random.Random(seed)) for seed in range(50)]
        assert first == [change(given, random.Random(seed)) for seed in range(50)]
        assert sum(list(one) != list(given) for one in first) > 40 and len(set(map(str, first))) > 40
    assert all(change[0] == "analyze" for change in (damage.damaged_words(words, random.Random(n)) for n in range(99)))
