"""Predicts the launches of records, several at a time, and keeps the predictions on disk.

A kept prediction is used again while nothing that it depends on has changed.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path

import gemmsim
from gemmsim.gpu import load_gpu
from gemmsim.support.errors import GemmsimError
from gemmsim.support.processes import map_unordered

from ..records.case import Case
from ..records.files import CUDA_FOLDER, write_bytes

# Python distributions that compile CUDA C++, decode machine code, and execute it.
TOOLCHAIN = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvdisasm", "numba", "numpy")


@dataclass(frozen=True)
class Prediction:
    """The part of a case's report that a comparison needs, and that is kept on disk.

    error        why the case could not be predicted; "" where it could. With an error, all fields but `seconds` are
                 empty
    time_us      predicted time, with warm caches where the case's launches were timed in a row on the same operands,
                 and at the clock of many launches in a row where they were. All other fields describe a single launch,
                 with cold caches if the case has counters
    overhead_us  the part of `time_us` that the launch itself takes
    verified     whether the simulated launch computed C right; None where that was not checked
    stalls       stall reason -> cycles per instruction for which warps wait because of it
    sass         memory or matrix instruction, such as "LDS.128" -> how often it stands in the program
    seconds      how long the prediction took
    """

    error: str = ""
    time_us: float = 0.0
    overhead_us: float = 0.0
    bottleneck: str = ""
    verified: bool | None = None
    counters: dict[str, float] = field(default_factory=dict)
    stalls: dict[str, float] = field(default_factory=dict)
    sass: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def predict(case: Case) -> Prediction:
    """Predict one case, without looking for a prediction on disk."""
    from gemmsim import api

    from ..records.replay import launch_of, timed_launch

    start = time.perf_counter()
    try:
        timed = timed_launch(case, case.compared_time)
        again = replace(timed, settings=timed.settings.for_many())
        warm = timed.warm_caches
        profiled = launch_of(case)
        request = replace(profiled, warm_caches=warm and not case.counters, settings=profiled.settings.for_many())
        counted = api.count(request)
        report = api.conclude(counted, request, accesses=False)
        timing = report.evidence.timing
        if warm and case.counters:
            timing = api.time(api.recount(counted, again), again)
        elif again != request:
            timing = api.time(counted, again)
        time_us = timing.duration_us
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
        sass=sass,
        seconds=time.perf_counter() - start,
    )


def predict_all(
    cases: Iterable[Case],
    folder: Path | None,
    jobs: int,
    progress: Callable[[Case, Prediction, bool], None] = lambda case, prediction, was_kept: None,
) -> dict[str, Prediction]:
    """Predict the cases, and return their predictions by the cases' keys.

    A case that cannot be predicted has a `Prediction` with an error.

    folder    folder in which predictions are kept; None: nothing is kept
    jobs      how many processes predict at once
    progress  is called with each case, its prediction, and whether the prediction was found in the folder
    """
    found: dict[str, Prediction] = {}
    missing: list[Case] = []
    for case in cases:
        kept = _load(_path(folder, case))
        if kept:
            found[case.key] = kept
            progress(case, kept, True)
        else:
            missing.append(case)
    for group, predictions in map_unordered(_predict_group, _by_program(missing), jobs):
        for case, prediction in zip(group, predictions, strict=True):
            found[case.key] = prediction
            path = _path(folder, case)
            if path and not prediction.error:
                write_bytes(path, json.dumps(asdict(prediction)).encode())
            progress(case, prediction, False)
    return found


def _by_program(cases: Iterable[Case]) -> list[list[Case]]:
    """Group the cases by program, so that each program is decoded and lowered once.

    The group that takes longest comes first, so that no process is left with it at the end.
    """
    groups: dict[tuple[str, ...], list[Case]] = {}
    for case in cases:
        subject = case.data["subject"]
        groups.setdefault((case.gpu, str(case.cubin), json.dumps(subject.get("cuda"))), []).append(case)
    return sorted(groups.values(), key=lambda group: -sum(_expected_seconds(case) for case in group))


def _expected_seconds(case: Case) -> float:
    """Return roughly how many seconds the prediction of a case takes, as of November 2026."""
    return 0.5 + max(case.m, case.n, case.k) / 4096


def _predict_group(cases: list[Case]) -> list[Prediction]:
    return [predict(case) for case in cases]


def key_of(case: Case) -> str:
    """Return a hash of all that a prediction depends on: code, launch, GPU, gemmsim's own source and the toolchain."""
    data = case.data
    parts = [source_digest(), load_gpu(case.gpu, data.get("settings", ())).sha256]
    parts += [json.dumps(data.get(name, {}), sort_keys=True) for name in ("subject", "problem", "launch")]
    parts.append(f"warm {case.warm(case.compared_time)}, counted {bool(case.counters)}")
    parts += [_version(name) for name in TOOLCHAIN]
    if "cuda" in data["subject"]:
        parts.append((CUDA_FOLDER / data["subject"]["cuda"]["file"]).read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def source_digest() -> str:
    """Return a hash of gemmsim's source and data files, and of the modules here that turn records into launches."""
    digest = hashlib.sha256()
    root = Path(gemmsim.__file__).parent
    files = [path for path in root.rglob("*") if path.suffix in (".py", ".toml")]
    for path in [*sorted(files), Path(__file__), Path(__file__).parents[1] / "records" / "replay.py"]:
        digest.update(str(path.name).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"


def _path(folder: Path | None, case: Case) -> Path | None:
    return folder / f"{key_of(case)}.json" if folder else None


def _load(path: Path | None) -> Prediction | None:
    try:
        return Prediction(**json.loads(path.read_bytes())) if path else None
    except (OSError, ValueError, TypeError):  # absent, or of another version: the case is predicted again
        return None
