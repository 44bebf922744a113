"""Predicts the rungs of the course, and reads from each run what its questions ask for."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.analysis.code.instruction_mix import by_class
from gemmsim.analysis.code.source_lines import source_line
from gemmsim.analysis.studies.differences import causes
from gemmsim.analysis.studies.launch_summary import LaunchSummary, summarise
from gemmsim.api import analyze
from gemmsim.checks.quantities import read
from gemmsim.checks.selection import everything, select
from gemmsim.gpu import GpuSpec
from gemmsim.isa.opcodes import MixClass
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.ladder import kernel_info
from gemmsim.report.report import Report
from gemmsim.report.studies.comparison import why
from gemmsim.support.errors import GemmsimError, nearest

MOST_SOURCE_LINES = 40
# What is held against the step before: quantity of `gemmsim check`, and its name here.
COUNTERS = (
    ("time_us", "time, us"),
    ("smsp__inst_executed.sum", "warp instructions"),
    ("sectors", "sectors asked of L1"),
    ("wavefronts", "wavefronts of shared memory"),
    ("bank_conflicts", "bank conflicts"),
    ("dram_bytes", "bytes of DRAM"),
    ("registers", "registers a thread"),
    ("achieved_occupancy", "occupancy achieved, %"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a number of the run answers.

    within  how near a guess must be to count as right: a part of the answer, 0 where it must be exact
    """

    ask: str
    unit: str
    within: float
    because: str
    answer: float

    def right(self, guess: float) -> bool:
        return math.isclose(guess, self.answer, rel_tol=0.0, abs_tol=max(self.within * abs(self.answer), 0.005))


@dataclass(frozen=True, slots=True)
class Step:
    """One rung as the course shows it.

    title, teaches  of the rung
    story, next     what to know before predicting, and what leads to the next rung
    source          (number, text) of the lines that the machine code was made from; () where it has none
    verdict         the bottleneck
    counters        (name, value in the step before or None, value), see COUNTERS
    why             why the time differs from that of the step before, "" for the first
    command         which shows the whole report of the run
    """

    kernel: str
    title: str
    story: str
    teaches: str
    next: str
    questions: tuple[Question, ...]
    source: tuple[tuple[int, str], ...]
    time_us: float
    verdict: str
    counters: tuple[tuple[str, float | None, float], ...]
    why: str
    command: str


def names() -> list[str]:
    return [row["kernel"] for row in _rows()]


def steps(size: int, gpu: GpuSpec, first: str | None = None) -> Iterator[Step]:
    """Yield the steps one after the other, from the rung `first` on, each once its run is predicted.

    The run before the first is predicted, too, as it is asked how they compare. Raises GemmsimError for a rung that is
    no step.
    """
    rows = _rows()
    if first is not None and first not in names():
        raise GemmsimError(f"'{first}' is no step of the course{nearest(first, names())}: {', '.join(names())}")
    start = names().index(first) if first else 0
    before = _predicted(rows[start - 1], size, gpu) if start else None
    for row in rows[start:]:
        now = _predicted(row, size, gpu)
        yield _step(row, now, before, f"--size {size} --gpu {gpu.name}")
        before = now


def _rows() -> list[dict[str, Any]]:
    text = Path(__file__).with_name("course.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["step"]
    return found


def _predicted(row: dict[str, Any], size: int, gpu: GpuSpec) -> Report:
    return analyze(ladder_launch(LadderCase(row["kernel"], size, size, size), gpu))


def _step(row: dict[str, Any], report: Report, before: Report | None, where: str) -> Step:
    info = kernel_info(row["kernel"])
    questions = tuple(
        Question(one["ask"], one["unit"], one["within"], one["because"], _answer(one, report, before))
        for one in row["question"]
    )
    return Step(
        kernel=row["kernel"],
        title=info.title,
        story=row["story"],
        teaches=info.teaches,
        next=row["next"],
        questions=questions,
        source=_source(report),
        time_us=report.evidence.timing.duration_us,
        verdict=report.bottleneck.sentence,
        counters=tuple(
            (label, _value(before, name) if before else None, _value(report, name)) for name, label in COUNTERS
        ),
        why=_why(before, report) if before else "",
        command=f"gemmsim analyze --kernel {row['kernel']} {where}",
    )


def _answer(row: dict[str, Any], report: Report, before: Report | None) -> float:
    name, evidence = row["quantity"], report.evidence
    if name == "busy_sms":
        return min(evidence.gpu.sm.count, evidence.blocks)
    if name == "multiply_adds":
        return 100 * by_class(evidence).get(MixClass.FMA, 0.0) / evidence.warp_instructions
    if name == "speed_up" or name.startswith("fall "):
        assert before is not None, "the first step has none before it"
        quantity = "time_us" if name == "speed_up" else name.removeprefix("fall ")
        return _value(before, quantity) / _value(report, quantity)
    return read(select(report, row["at"]) if "at" in row else everything(report), name).value


def _value(report: Report, name: str) -> float:
    return read(everything(report), name).value


def _source(report: Report) -> tuple[tuple[int, str], ...]:
    """Return the lines of the kernel's file from the first to the last that made code, but not of other functions."""
    program = report.evidence.program
    found = [
        line for one in program.instructions if (line := source_line(program, one)) and line.file in program.source
    ]
    if not found:
        return ()
    most = max({line.file for line in found}, key=lambda file: sum(line.file == file for line in found))
    numbers = [line.line for line in found if line.file == most]
    text = program.source[most].splitlines()
    lines = range(min(numbers), min(max(numbers), min(numbers) + MOST_SOURCE_LINES - 1) + 1)
    return tuple((number, re.sub(r"\s+#.*", "", text[number - 1])) for number in lines)  # comments tell the answers


def _why(before: Report, report: Report) -> str:
    below, above = _summary(before), _summary(report)
    return why(causes(below, above), below.time_us / above.time_us)


def _summary(report: Report) -> LaunchSummary:
    name = report.labels.kernel
    return summarise(name, report.labels, "", report.evidence, report.bottleneck, report.verified)
