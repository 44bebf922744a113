"""Which records are compared: all of them, or the part that the tests replay."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..records import FOLDER, Case, load_cases

LARGEST_IN_TESTS = 1024
ONE_IN = 12  # of the smaller cases; of the larger ones a quarter of that


def every_record(folders: Sequence[Path] = ()) -> tuple[Case, ...]:
    """All cases below the folders, in the order of their names; records of code that is not ours (cuBLAS) left out."""
    chosen = folders or [path for path in sorted(FOLDER.iterdir()) if path.is_dir() and any(path.glob("*.json"))]
    cases = [case for folder in chosen for case in load_cases(folder)]
    return tuple(case for case in cases if case.cubin is not None or "cuda" in case.data["subject"])


def replayed_in_tests(cases: Iterable[Case]) -> tuple[Case, ...]:
    """By rule, not by result.

    For each kernel, type and GPU: the smallest case with counters, and of the others up to LARGEST_IN_TESTS those whose
    name falls into one of ONE_IN parts; of the larger ones one in 4 ONE_IN. The rest is compared by `gemmsim-validate
    compare` alone.
    """
    chosen = []
    smallest: dict[tuple[str, ...], Case] = {}
    every = tuple(cases)
    for case in every:
        key = (case.gpu, case.name, case.dtype, str(sorted(case.tunables.items())))
        if case.counters and (key not in smallest or _work(case) < _work(smallest[key])):
            smallest[key] = case
    kept = {case.id for case in smallest.values() if _work(case) <= LARGEST_IN_TESTS**3}
    for case in every:
        small = _work(case) <= LARGEST_IN_TESTS**3
        if case.id in kept or _part(case, ONE_IN if small else 4 * ONE_IN) == 0:
            chosen.append(case)
    return tuple(chosen)


def _work(case: Case) -> int:
    return case.m * case.n * case.k


def _part(case: Case, parts: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{case.gpu}/{case.id}".encode()).digest()[:4], "big") % parts
