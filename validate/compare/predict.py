"""Predictions of records, several at a time, kept on disk while nothing that they depend on changes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path

import gemmsim
from gemmsim.gpu import load_gpu
from gemmsim.support.errors import GemmsimError

from ..records import CUDA_FOLDER, Case, write_bytes

# What compiles CUDA C++ and decodes machine code; a record with a cubin depends on the second alone.
TOOLCHAIN = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm", "numba", "numpy")


@dataclass(frozen=True)
class Prediction:
    """What is kept of a report. error: why there is none, "" where there is; the rest is then empty.

    time_us       with warm caches where the case's launches were timed in a row; all else then is of a launch with cold
                  ones if the case has counters
    overhead_us   of the launch, in `time_us`
    pipes_pct     pipe -> percent of peak; stalls: reason -> cycles an instruction
    sass          memory instruction ("LDS.128") -> how many the program has
    seconds       that the prediction took
    """

    error: str = ""
    time_us: float = 0.0
    overhead_us: float = 0.0
    bottleneck: str = ""
    verified: bool | None = None
    counters: dict[str, float] = field(default_factory=dict)
    stalls: dict[str, float] = field(default_factory=dict)
    pipes_pct: dict[str, float] = field(default_factory=dict)
    sass: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def predict(case: Case) -> Prediction:
    """One case, without a cache."""
    from gemmsim import api

    start = time.perf_counter()
    try:
        warm = case.warm(case.held_against)
        request = replace(case.request(), warm_caches=warm and not case.counters)
        counted = api.count(request)
        report = api.conclude(counted, request, accesses=False)
        time_us = report.evidence.timing.duration_us
        if warm and case.counters:
            again = replace(request, warm_caches=True)
            time_us = api.time(api.recount(counted, again), again).duration_us
    except GemmsimError as error:
        return Prediction(error=str(error), seconds=time.perf_counter() - start)
    evidence = report.evidence
    sass: dict[str, int] = {}
    for instruction in evidence.program.instructions:
        if instruction.opcode[:3] in ("LDG", "STG", "LDS", "STS", "LDT", "STT") or instruction.opcode in (
            "HMMA",
            "DMMA",
        ):
            name = ".".join((instruction.opcode, *instruction.modifiers))
            sass[name] = sass.get(name, 0) + 1
    return Prediction(
        time_us=time_us,
        overhead_us=evidence.gpu.launch.overhead_us,
        bottleneck=report.bottleneck.kind,
        verified=report.verified.ok,
        counters={name: float(value) for name, value in evidence.counters.items()},
        stalls=dict(evidence.timing.stalls),
        pipes_pct=dict(evidence.timing.pipe_utilisation_pct),
        sass=sass,
        seconds=time.perf_counter() - start,
    )


def predict_all(
    cases: Iterable[Case],
    folder: Path | None,
    jobs: int,
    progress: Callable[[Case, Prediction, bool], None] = lambda case, prediction, kept: None,
) -> dict[str, Prediction]:
    """Prediction by case id. `folder` keeps them, None: nothing is kept; `progress` also hears whether it was kept.

    A case that cannot be predicted has an error in its place; the others go on.
    """
    found: dict[str, Prediction] = {}
    missing: list[Case] = []
    for case in cases:
        kept = _load(_place(folder, case))
        if kept:
            found[case.id] = kept
            progress(case, kept, True)
        else:
            missing.append(case)
    for case, prediction in _run(_by_program(missing), jobs):
        found[case.id] = prediction
        place = _place(folder, case)
        if place and not prediction.error:
            write_bytes(place, json.dumps(asdict(prediction)).encode())
        progress(case, prediction, False)
    return found


def _by_program(cases: Iterable[Case]) -> list[list[Case]]:
    """Cases of one program together: it is decoded and lowered once. The longest first, so that no worker is left with
    the longest at the end."""
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        subject = case.data["subject"]
        groups.setdefault((case.gpu, str(case.cubin), json.dumps(subject.get("cuda"))), []).append(case)
    return sorted(groups.values(), key=lambda group: -sum(_expected_seconds(case) for case in group))


def _expected_seconds(case: Case) -> float:
    """Roughly, as of November 2026."""
    return 0.5 + max(case.m, case.n, case.k) / 4096


def _run(groups: list[list[Case]], jobs: int) -> Iterable[tuple[Case, Prediction]]:
    if jobs <= 1 or len(groups) <= 1:
        for group in groups:
            for case in group:
                yield case, predict(case)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(_predict_group, group): group for group in groups}
        for done in as_completed(running):
            yield from zip(running[done], done.result(), strict=True)


def _predict_group(cases: list[Case]) -> list[Prediction]:
    return [predict(case) for case in cases]


def key_of(case: Case) -> str:
    """Of everything a prediction depends on: code, launch, GPU, this program's source and the toolchain."""
    data = case.data
    parts = [source_digest(), load_gpu(case.gpu, data.get("settings", ())).sha256]
    parts += [json.dumps(data.get(name, {}), sort_keys=True) for name in ("subject", "problem", "launch")]
    parts.append(f"warm {case.warm(case.held_against)}, counted {bool(case.counters)}")
    parts += [_version(name) for name in TOOLCHAIN]
    if "cuda" in data["subject"]:
        parts.append((CUDA_FOLDER / data["subject"]["cuda"]["file"]).read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def source_digest() -> str:
    """Of every source and data file of gemmsim, and of what makes requests of records."""
    digest = hashlib.sha256()
    root = Path(gemmsim.__file__).parent
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".toml")]
    for path in [*sorted(files), Path(__file__), Path(__file__).parents[1] / "replay.py"]:
        digest.update(str(path.name).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"


def _place(folder: Path | None, case: Case) -> Path | None:
    return folder / f"{key_of(case)}.json" if folder else None


def _load(path: Path | None) -> Prediction | None:
    try:
        return Prediction(**json.loads(path.read_bytes())) if path else None
    except (OSError, ValueError, TypeError):  # absent, or of another version: predicted again
        return None
