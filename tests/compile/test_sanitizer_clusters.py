"""The sanitizer on kernels in clusters that are broken on purpose, and on right ones: defects, lines and blocks.

`broken_clusters.cu` marks the lines in comments: [ring:load].
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.report.hazards import one_line
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized
from gemmsim.trace.types import Argument, Launch

SOURCES = Path(__file__).parents[1] / "sources"
MARKS = {
    mark: number
    for number, line in enumerate((SOURCES / "broken_clusters.cu").read_text().splitlines(), 1)
    for mark in re.findall(r"\[([a-z_]+:[a-z ]+)\]", line)
}
ROUNDS = 5
ARCHITECTURES = ("sm_90", "sm_120")
RIGHT = ("exchange_right", "counts_right", "sent_right")
BROKEN = [  # entry, defect, marks of the lines of each finding
    ("exchange_not_ordered", Defect.RACE, [{"exchange:write", "exchange:read"}]),
    ("exchange_only_arrives", Defect.RACE, [{"exchange:write", "exchange:read"}]),
    ("exchange_ends", Defect.ENDED_BLOCK, [{"exchange:end", "exchange:read"}]),
    ("exchange_may_end", Defect.ENDED_BLOCK, [{"exchange:may end", "exchange:read"}]),
    ("counts_not_cleared", Defect.RACE, [{"counts:clear", "counts:add"}]),
    ("counts_not_waited_for", Defect.RACE, [{"counts:add", "counts:read"}]),
    ("sent_not_waited_for", Defect.RACE, [{"sent:store", "sent:read"}]),
]


def run(entry: str, arch: str = "sm_90", blocks: int = 4) -> Sanitized:
    """Clusters of two blocks; arguments as many as the entry has: input, output, and the number of rounds."""
    code = cuda_program("broken_clusters.cu", entry, arch)
    out = Argument("u32", (blocks * 32,), np.zeros(blocks * 32, np.uint32))
    given = Argument("u32", (ROUNDS * 64,), np.arange(ROUNDS * 64, dtype=np.uint32))
    arguments = (given, out, Argument("i32", (), ROUNDS)) if entry.startswith("ring") else (out,)
    threads = 64 if entry.startswith("ring") else 32
    launch = Launch((blocks, 1, 1), (threads, 1, 1), arguments, cluster=(2, 1, 1))
    return sanitize(Executor(code, launch, 1_000_000, sanitizing=True), range(blocks))


def lines(finding: Finding) -> frozenset[int]:
    return frozenset(site.line.line for site in (finding.at, finding.other) if site and site.line)


@pytest.mark.parametrize(("entry", "arch"), [*product(RIGHT, ARCHITECTURES), ("ring_right", "sm_90")])
def test_right_kernels_are_silent(entry: str, arch: str) -> None:
    outcome = run(entry, arch)
    assert [one_line(finding) for finding in outcome.findings] == []
    assert not outcome.stopped and outcome.blocks == 4


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("entry", "defect", "marks"), BROKEN, ids=[entry for entry, _, _ in BROKEN])
def test_each_defect_is_found_with_its_lines(entry: str, defect: Defect, marks: list[set[str]], arch: str) -> None:
    """Nothing else is found, and nothing at other lines."""
    outcome = run(entry, arch)
    assert {finding.defect for finding in outcome.findings} == {defect}
    assert {lines(finding) for finding in outcome.findings} == {frozenset(MARKS[m] for m in one) for one in marks}


def marked(outcome: Sanitized, defect: Defect) -> set[frozenset[int]]:
    return {lines(finding) for finding in outcome.findings if finding.defect is defect}


def at(*marks: str) -> frozenset[int]:
    return frozenset(MARKS[mark] for mark in marks)


def test_a_multicast_overwrites_what_the_other_block_reads() -> None:
    """A producer waits for its own block's consumer alone. What it loads for the other block then comes too early."""
    outcome = run("ring_own_release")
    assert marked(outcome, Defect.RACE) == {at("ring:load", "ring:read")}
    assert marked(outcome, Defect.UNWAITED_COPY) == {at("ring:load"), at("ring:load", "ring:read")}
    race = next(finding for finding in outcome.findings if finding.defect is Defect.RACE)
    assert (race.block, race.at.does, race.other and race.other.does) == ((0, 0, 0), "copies to", "reads")
    assert race.detail == "in the shared memory of block (1,0,0); the other thread is of block (1,0,0)"


def test_an_arrival_that_no_other_block_makes() -> None:
    outcome = run("ring_no_remote_release")
    assert outcome.stopped
    (finding,) = outcome.findings
    assert (finding.defect, lines(finding)) == (Defect.PHASE, at("ring:wait for empty", "ring:release"))
    assert "phase 0, which lacks 1 of 2 arrivals" in finding.sentence


def test_mbarriers_of_other_blocks_before_their_initialisation() -> None:
    outcome = run("ring_no_first_meeting")
    assert marked(outcome, Defect.UNINITIALISED) == {at("ring:load")}
    assert at("ring:init", "ring:load") in marked(outcome, Defect.RACE)


def test_arrivals_at_blocks_that_may_have_ended() -> None:
    """The line of the end is the compiler's choice. One block is told of by the other's arrival, and one by its end."""
    outcome = run("ring_no_last_meeting")
    assert {finding.defect for finding in outcome.findings} == {Defect.ENDED_BLOCK}
    ends = [[site.does for site in (f.at, f.other) if site] for f in outcome.findings]
    assert ends == [["ends at", "updates"], ["updates", "ends at"]]
    assert all(MARKS["ring:release"] in lines(finding) for finding in outcome.findings)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    ("entry", "threads", "words", "scalar"),
    [
        ("reduce", 96, (768, 8), None),
        ("halo", 64, (512, 512), None),
        ("ring", 32, (256,), 7),
        ("arrivals", 32, (256,), 32),
        ("sends", 32, (256,), None),
    ],
)
def test_kernels_with_other_forms_of_the_barrier_are_silent(
    entry: str, threads: int, words: tuple[int, ...], scalar: int | None, size: int
) -> None:
    """Cooperative groups, barriers that are split, arrivals at each next block; clusters of one block, too."""
    kind = "u32" if scalar else "f32"
    given = [Argument(kind, (n,), np.zeros(n, np.uint32 if scalar else np.float32)) for n in words]
    scalars = [Argument("i32", (), scalar)] if scalar else []
    launch = Launch((8, 1, 1), (threads, 1, 1), (*given, *scalars), cluster=(size, 1, 1))
    outcome = sanitize(
        Executor(cuda_program("clusters.cu", entry, "sm_90"), launch, 1_000_000, sanitizing=True), range(8)
    )
    assert [one_line(finding) for finding in outcome.findings] == []
