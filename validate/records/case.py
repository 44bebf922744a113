"""Reads records as `Case`s, which say what was launched on which GPU, how long it took, and what was counted.

A folder of records is from one kind of machine: `h200_wgmma/` has the rungs with wgmma, `h200_tiles/` configurations of
the tiles of several rungs, `h200_foreign/` kernels that others wrote. Half of the kernels and sizes are for study, half
to judge by: see `Case.half`.

A record of kind "measured" is kept with the machine code that ran, so that its replay needs no compiler and does not
depend on one. A record of kind "published" names its source; CUDA C++ of our own in `cuda/` stands for its kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from .files import FOLDER, cubin_path, read_records
from .ways import TIMES

STUDY, JUDGE = "study", "judge"
# A calibration and the tables of times take the first of these ways that a case has instead.
CALIBRATED_TO = ("back_to_back", "published", "rotated")


@dataclass(frozen=True)
class Series:
    """The times of one launch that were taken in one way.

    median_us  the median of the samples, or the one value that a source states
    in_a_row   for a published time: whether its source launched the kernel in a row, on the same operands
    """

    median_us: float
    in_a_row: bool = False


@dataclass(frozen=True)
class Case:
    """One launch of a GEMM kernel on a real GPU.

    kind       "measured" or "published"
    folder     name of the folder that holds the record
    name       name of the kernel; `rung` says whether it is a rung of the ladder
    gpu        name of the preset that predicts the launch
    grid, block  sizes of grid and block; zeros where they are unknown, as for a library's kernel
    times      way of timing ("back_to_back", "rotated", "single_launch" or "published") -> the times taken in that way
    counters   Nsight Compute metric -> value in base units; empty where the launch was only timed
    cubin      path of the zlib-compressed machine code that ran; None where the code is not our own
    data       the whole record, as JSON data
    """

    id: str
    kind: str
    folder: str
    name: str
    gpu: str
    rung: bool
    tunables: dict[str, int]
    m: int
    n: int
    k: int
    dtype: str
    result_dtype: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    times: dict[str, Series]
    counters: dict[str, float]
    cubin: Path | None
    data: dict[str, Any] = field(repr=False)

    @property
    def key(self) -> str:
        """Its folder and its id, as no two cases have both: several runs and GPUs may have made the same launch."""
        return f"{self.folder}/{self.id}"

    @property
    def half(self) -> str:
        """STUDY or JUDGE, by a hash of the kernel's name and the problem's size.

        Mechanisms and constants of the models are chosen on microbenchmarks and on cases for study. Cases to judge by
        are predicted and not looked into. All GPUs, types and tile sizes of a kernel at one size are in one half.
        """
        digest = hashlib.sha256(f"{self.name} {self.m}x{self.n}x{self.k}".encode()).digest()
        return JUDGE if digest[0] % 2 else STUDY

    @property
    def compared_time(self) -> str:
        """The way of timing (one of TIMES) with which a prediction is compared; "" where the case has no times."""
        return next((way for way in TIMES if way in self.times), "")

    def timed(self, ways: Collection[str]) -> Case:
        """Return the case with the times alone that were taken in these ways, and without counters."""
        return replace(self, times={way: times for way, times in self.times.items() if way in ways}, counters={})

    @property
    def calibrated_time(self) -> str:
        """The way of timing (one of CALIBRATED_TO) to which a calibration fits; "" where the case has no such times."""
        return next((way for way in CALIBRATED_TO if way in self.times), "")

    @property
    def calibrated_time_us(self) -> float | None:
        """The median of the times that `calibrated_time` names; None where the launch was only counted."""
        return self.times[self.calibrated_time].median_us if self.calibrated_time else None

    def warm(self, way: str) -> bool:
        """Whether launches that were timed in the way `way` found L2 as the launch before had left it."""
        return way == "back_to_back" or (way in self.times and self.times[way].in_a_row)

    def in_a_row(self, way: str) -> bool:
        """Whether launches that were timed in the way `way` followed many others, after which the board's limit of
        power in the long run holds: `measure` warms up for 50 ms before the first sample (`measure/timing.py`).
        """
        return way == "rotated" or self.warm(way)

    @property
    def is_square(self) -> bool:
        """Whether M = N = K."""
        return self.m == self.n == self.k

    @property
    def size(self) -> str:
        """The problem size as text: "1024" where M = N = K, else "1000x500x77"."""
        return str(self.n) if self.is_square else f"{self.m}x{self.n}x{self.k}"


def load_cases(folder: Path = FOLDER / "h200") -> tuple[Case, ...]:
    """Return the cases of all files in a folder, sorted by id.

    Raises GemmsimError where there is no case, where two cases have the same id, or where a file is damaged or of
    another version.
    """
    cases = [case for path in sorted(folder.glob("*.json")) for case in load_file(path)]
    if not cases:
        raise GemmsimError(f"no records in {folder}")
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise GemmsimError(f"{folder}: two records with the id '{case.id}'")
        seen.add(case.id)
    return tuple(sorted(cases, key=lambda case: case.id))


def load_file(path: Path) -> tuple[Case, ...]:
    """Return the cases of one file in the file's order; their cubins must lie in the folder `cubins/` beside it."""
    records = read_records(path)
    try:
        return tuple(_case(record, path.parent) for record in records)
    except (KeyError, TypeError, ValueError) as error:
        raise GemmsimError(f"cannot read the records in {path}: {type(error).__name__} {error}") from None


def _case(record: dict[str, Any], folder: Path) -> Case:
    subject, problem = record["subject"], record["problem"]
    launch = record.get("launch", {"grid": (0, 0, 0), "block": (0, 0, 0)})
    sha256 = subject.get("cubin_sha256")
    return Case(
        id=record["id"],
        kind=record["kind"],
        folder=folder.name,
        name=subject["name"],
        gpu=record["gpu"],
        rung=subject.get("rung", False),
        tunables=subject.get("tunables", {}),
        m=problem["m"],
        n=problem["n"],
        k=problem["k"],
        dtype=problem["dtype"],
        result_dtype=problem["result_dtype"],
        grid=tuple(launch["grid"]),
        block=tuple(launch["block"]),
        times={
            way: Series(float(series["median_us"]), series.get("in_a_row", False))
            for way, series in record.get("time", {}).items()
        },
        counters=record.get("counters", {}),
        cubin=cubin_path(folder, sha256) if sha256 else None,
        data=record,
    )
