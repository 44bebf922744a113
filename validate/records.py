"""Measurements of real GPUs: what a record says, and reading and writing files of them.

The form is `record.schema.json`. A record of kind "measured" is kept with the machine code that ran, so that replaying
it needs no compiler and does not depend on one; one of kind "published" names its source, and CUDA C++ of our own in
`cuda/` stands for its kernel. Nothing here needs a GPU or NumPy.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.launch.request import AnalyzeRequest

FOLDER = Path(__file__).parent / "records"
CUDA_FOLDER = Path(__file__).parent / "cuda"
SCHEMA = Path(__file__).with_name("record.schema.json")
SCHEMA_VERSION = 2
CUBIN_NAME_DIGITS = 16
# What a prediction is held against, the first that there is: times with operands that are in no cache come first.
TIMES = ("rotated", "published", "back_to_back", "single_launch")
CALIBRATED_TO = ("back_to_back", "published", "rotated")  # likewise, of a calibration and of tables of times


@dataclass(frozen=True)
class Series:
    """Times of one launch, taken one way.

    median_us      of the samples, or the one value that a source states
    quartiles_us   25th and 75th percentile, None where unknown
    sm_clock_mhz   [least, median, most] seen meanwhile, empty where unknown
    in_a_row       of a published time: whether its source launched the kernel in a row, on the same operands
    """

    median_us: float
    quartiles_us: tuple[float, float] | None = None
    samples_us: tuple[float, ...] = ()
    sm_clock_mhz: tuple[float, ...] = ()
    in_a_row: bool = False


@dataclass(frozen=True)
class Case:
    """One launch of a GEMM kernel on a real GPU.

    name       of the kernel; `rung` where it is one of the ladder's
    kind       "measured" or "published"
    gpu        the preset that predicts it
    times      by the way they were taken: "back_to_back", "rotated", "single_launch", "published"
    grid, block  zeros where unknown: a library's kernel
    counters   Nsight Compute metric -> value in base units; empty where the launch was only timed
    cubin      the machine code that ran, zlib-compressed; None where it is not ours
    data       the whole record
    """

    id: str
    kind: str
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
    def time_us(self) -> float | None:
        """The time to hold a prediction against: back to back, else as published, else rotated; None: only counted."""
        for how in CALIBRATED_TO:
            if how in self.times:
                return self.times[how].median_us
        return None

    @property
    def held_against(self) -> str:
        """Which of TIMES a prediction is held against, "" where there is none."""
        return next((how for how in TIMES if how in self.times), "")

    def warm(self, how: str) -> bool:
        """Whether launches timed in this way found L2 as the one before had left it."""
        return how == "back_to_back" or (how in self.times and self.times[how].in_a_row)

    @property
    def back_to_back_us(self) -> float:
        return self.times["back_to_back"].median_us

    def request(self, seed: int = 0) -> AnalyzeRequest:
        """What predicts this case. Raises GemmsimError where its machine code or source is not there."""
        from .replay import replay  # NumPy and the models

        return replay(self, seed)


def load_cases(folder: Path = FOLDER / "h200") -> tuple[Case, ...]:
    """The cases of all files in a folder, by id. GemmsimError where a file is of another version or damaged."""
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
    """The cases of one file, in its order; cubins are looked for in `cubins/` beside it."""
    records = read_records(path)
    try:
        return tuple(_case(record, path.parent) for record in records)
    except (KeyError, TypeError, ValueError) as error:
        raise GemmsimError(f"cannot read the records in {path}: {type(error).__name__} {error}") from None


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file as they stand. Raises GemmsimError, one line, for a file that is none of records."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GemmsimError(f"cannot read the records in {path}: {error}") from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise GemmsimError(f"{path} has schema version {version}, this gemmsim reads {SCHEMA_VERSION}")
    records = data.get("records")
    if not isinstance(records, list):
        raise GemmsimError(f"{path} holds no list of records")
    return records


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """One record a line, so that a diff shows the ones that changed; written under another name and renamed."""
    lines = ",\n".join(json.dumps(record, sort_keys=True, separators=(",", ":")) for record in records)
    text = f'{{"schema_version":{SCHEMA_VERSION},"records":[\n{lines}\n]}}\n'
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write by way of a temporary file beside it, so that nobody ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cubin_path(folder: Path, sha256: str) -> Path:
    """Where the compressed cubin of a record in `folder` lies."""
    return folder / "cubins" / f"{sha256[:CUBIN_NAME_DIGITS]}.cubin.z"


def read_cubin(path: Path) -> bytes:
    """A cubin, decompressed. Raises GemmsimError where it is missing or damaged."""
    try:
        return zlib.decompress(path.read_bytes())
    except (OSError, zlib.error) as error:
        raise GemmsimError(f"cannot read the cubin {path}: {error}") from None


def _case(record: dict[str, Any], folder: Path) -> Case:
    subject, problem = record["subject"], record["problem"]
    launch = record.get("launch", {"grid": (0, 0, 0), "block": (0, 0, 0)})
    sha256 = subject.get("cubin_sha256")
    return Case(
        id=record["id"],
        kind=record["kind"],
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
        times={how: _series(series) for how, series in record.get("time", {}).items()},
        counters=record.get("counters", {}),
        cubin=cubin_path(folder, sha256) if sha256 else None,
        data=record,
    )


def _series(data: dict[str, Any]) -> Series:
    quartiles = data.get("quartiles_us")
    return Series(
        median_us=float(data["median_us"]),
        quartiles_us=(quartiles[0], quartiles[1]) if quartiles else None,
        samples_us=tuple(data.get("samples_us", ())),
        sm_clock_mhz=tuple(data.get("sm_clock_mhz", ())),
        in_a_row=data.get("in_a_row", False),
    )
