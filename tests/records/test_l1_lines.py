"""Which lines an H200's L1 keeps: sequences of accesses of one warp, and what hit (h200_l1_lines.json).

The sequences were drawn at random there, and are drawn anew here: `SEQUENCES` has how. So shares are compared, and not
single lines. Where they depend much on what is drawn, it is drawn several times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from requests_builder import replayed

from gemmsim.gpu.load import load_gpu
from gemmsim.memory.caches.l1_cache import l1_cache

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("h200_l1_lines.json").read_text(encoding="utf-8"))
LINES = 1 << 23  # in which they are scattered
FAR = 8192  # lines that are read once lie so far behind the others
LOAD, FIRST, SECOND, STORE, STORE_FIRST, STORE_PART = range(6)
PARTS = {
    "load": LOAD,
    "load first": FIRST,
    "load second": SECOND,
    "store": STORE,
    "store first": STORE_FIRST,
    "store part": STORE_PART,
}

Order = NDArray[np.int64]  # line * 8 + what is done with it
Drawn = tuple[Order, list[slice | NDArray[np.int64]]]  # and of which accesses hits are counted


def loads(lines: object, what: int = LOAD) -> Order:
    return np.asarray(lines, np.int64) * 8 + what


def over_and_over(lines: Order, times: int) -> Drawn:
    size = len(lines)
    return loads(np.tile(lines, times)), [slice(size, 2 * size), slice((times - 1) * size, times * size)]


def hot(random: np.random.Generator, lines: int, streamed: int) -> Drawn:
    """A line of some at random, then others that come but once."""
    rounds = 16000 // (1 + streamed)
    order = FAR + np.arange(rounds * (1 + streamed)).reshape(rounds, -1)
    order[:, 0] = random.integers(0, lines, rounds)
    return loads(order.reshape(-1)), [np.arange(rounds // 3, rounds) * (1 + streamed)]


def rows(random: np.random.Generator, lines: int, faster: int = 1, passes: int = 2, stored: int = 0) -> Drawn:
    """Eight places, where a row is read over and over, then another one that is stored, before the next rows come. They
    take turns, a line each; where `faster`, so many of a row that was read before."""
    total, order = (passes + stored) * lines, list[int]()
    done = [-(place * total) // 8 for place in range(8)]
    row = random.integers(0, 8192, 8)
    while len(order) < 15990:
        for place in range(8):
            for _ in range(faster if done[place] >= lines else 1):
                at = int(row[place]) * lines + done[place] % lines
                if done[place] >= 0:
                    order.append(8 * at + LOAD)
                if done[place] >= passes * lines:
                    order.append(8 * (at + 4_000_000) + STORE)
                done[place] += 1
                if done[place] == total:
                    done[place], row[place] = 0, random.integers(0, 8192)
    found = np.array(order)
    return found, [8000 + np.flatnonzero(found[8000:] % 8 == LOAD)]


def used_again(random: np.random.Generator, lines: int, again: int, streamed: int, how: tuple[int, ...] = ()) -> Drawn:
    """Lines, then some of them, then others that come but once; the first ones are looked for then."""
    first, then, stream, look = how or (LOAD, LOAD, LOAD, LOAD)
    chosen, last = random.permutation(lines)[:again], random.permutation(lines)
    before = [loads(np.arange(lines), first), loads(chosen, then), loads(FAR + np.arange(streamed), stream)]
    found = np.isin(last, chosen)
    begin = sum(map(len, before))
    return np.concatenate([*before, loads(last, look)]), [begin + np.flatnonzero(found), begin + np.flatnonzero(~found)]


def touched(random: np.random.Generator, first: str, then: str, streamed: str) -> Drawn:
    how = (PARTS[first], PARTS.get(then, LOAD), PARTS[streamed], FIRST)
    return used_again(random, 1024, 256 if then else 0, 6144, how)


def once(random: np.random.Generator, lines: int, streamed: int) -> Drawn:
    """Lines, then others; the first ones are looked for, the last of them first."""
    order = np.concatenate([np.arange(lines), FAR + np.arange(streamed), np.arange(lines)[::-1]])
    return loads(order), [slice(lines + streamed, None)]


def kept(random: np.random.Generator, lines: int, streamed: int) -> Drawn:
    """Lines twice, then others that come but once; the first ones are looked for, in any order."""
    first, stream = np.arange(lines), FAR + np.arange(streamed)
    return loads(np.concatenate([first, first, stream, random.permutation(lines)])), [slice(-lines, None)]


SEQUENCES: dict[str, Callable[..., Drawn]] = {
    "again": lambda random, lines: over_and_over(np.arange(lines), 6),
    "strided": lambda random, lines, apart: over_and_over(np.arange(lines) * apart, 4),
    "scattered": lambda random, lines: over_and_over(random.choice(LINES, lines, replace=False), 6),
    "uniform": lambda random, lines: (loads(random.integers(0, lines, 16000)), [slice(6000, None)]),
    "hot": hot,
    "rows": rows,
    "rows_stored": lambda random, lines, passes: rows(random, lines, passes=passes, stored=1),
    "used_again": used_again,
    "touched": touched,
    "once": once,
    "kept": kept,
}


def hits(order: Order, lines: int) -> NDArray[np.bool_]:
    """Which accesses find all that they ask for in an L1 with room for so many lines."""
    return replayed(order, l1_cache(lines * 128, load_gpu("h200").l1))


def compared(kind: str) -> list[tuple[dict[str, Any], list[float], list[float]]]:
    """For each sequence of a kind: its numbers, hits in % as measured, and as predicted: the mean of some draws."""
    found = []
    draws = 6 if kind.startswith("rows") else 1
    for number, (of, lines, numbers, measured) in enumerate(RECORD["sequences"]):
        if of == kind and numbers.get("first") != "load twice at once":
            shares = []
            for draw in range(draws):
                random = np.random.default_rng(number + 1000 * draw)
                order, counted = SEQUENCES[kind](random, **numbers)
                hit = hits(order + 8 * 16384 * int(random.integers(0, 200)), lines)
                shares.append([100 * float(hit[of].mean()) if hit[of].size else 0.0 for of in counted])
            found.append((numbers, measured, np.mean(shares, axis=0).tolist()))
    return found


@pytest.mark.parametrize(
    ("kind", "mean", "most"),
    [
        ("strided", 0, 0),
        ("touched", 0, 0),
        ("kept", 0.2, 1),
        ("scattered", 2, 3),
        ("uniform", 0.5, 1.5),
        ("hot", 2, 6),
        ("rows", 2, 4),
        ("used_again", 0.5, 3),
        ("once", 1, 2),
        ("rows_stored", 6, 14),  # rows that are read twice and then stored elsewhere stay longer there
    ],
)
def test_hits(kind: str, mean: float, most: float) -> None:
    apart = [
        abs(here - there) for _, measured, found in compared(kind) for there, here in zip(measured, found, strict=True)
    ]
    assert np.mean(apart) <= mean and max(apart) <= most


def test_lines_one_after_another_over_and_over() -> None:
    """All hit up to 93 % of what there is room for. From there on an H200 finds up to 31 points fewer the last time,
    where it is not known which of the lines used again a full set loses (deviation 3)."""
    ran = [(measured, found) for _, measured, found in compared("again")]
    full = [found for measured, found in ran if measured == [100.0, 100.0]]
    assert full == [[100.0, 100.0]] * 19
    for time, mean, most in ((0, 1.3, 26), (1, 3.2, 31)):
        apart = [abs(found[time] - measured[time]) for measured, found in ran]
        assert np.mean(apart) <= mean and max(apart) <= most
