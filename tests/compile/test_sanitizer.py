"""The sanitizer on kernels broken on purpose, one defect each, and on right ones beside them: defect, lines, threads.

`broken.cu` marks the lines in comments: [entry:first], [entry:second].
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized
from gemmsim.trace.types import Argument, Launch

SOURCE = (Path(__file__).parents[1] / "sources" / "broken.cu").read_text()
MARKS = {
    mark: number
    for number, line in enumerate(SOURCE.splitlines(), 1)
    for mark in re.findall(r"\[([a-z_ ]+(?::[a-z ]+)?)\]", line)
}
ARCHITECTURES = ("sm_80", "sm_90")
SCALARS = {"barriers_of_two_branches": 40, "warp_branches": 2}


def run(entry: str, arch: str = "sm_80", blocks: int = 1, size: int = 320) -> Sanitized:
    """One launch of `blocks` blocks of 64 threads (2 by 2 of them where the entry is a tiled one)."""
    program = cuda_program("broken.cu", entry, arch)
    random = np.random.default_rng(0)
    arrays = [Argument("f32", (size,), random.random(size, np.float32)) for _ in program.parameters]
    args = [*arrays[:-1], Argument("i32", (), SCALARS[entry])] if entry in SCALARS else arrays
    grid = (2, 2, 1) if len(arrays) == 3 and entry not in SCALARS else (blocks, 1, 1)
    executor = Executor(program, Launch(grid, (64, 1, 1), tuple(args)), 1_000_000, sanitizing=True)
    return sanitize(executor, range(executor.launch.blocks))


BETWEEN_BLOCKS = [
    ("sum_without_atomics", {":first"}, ("reads", "writes")),
    ("one_tile_for_two_blocks", {":first"}, ("writes", "writes")),
    ("neighbour_of_a_block", {":first", ":second"}, ("reads", "writes")),
]


@pytest.mark.parametrize(("entry", "marks", "does"), BETWEEN_BLOCKS, ids=[entry for entry, *_ in BETWEEN_BLOCKS])
def test_blocks_race_on_global_memory(entry: str, marks: set[str], does: tuple[str, str]) -> None:
    """Of two blocks, the second one finds what the first one has done, and not what it has done itself."""
    outcome = run(entry, blocks=2)
    race = outcome.findings[0]
    assert {lines(finding) == {MARKS[entry + mark] for mark in marks} for finding in outcome.findings} == {True}
    assert {finding.defect for finding in outcome.findings} == {Defect.RACE}
    assert race.other is not None and (race.at.does, race.other.does) == does
    assert (race.block, race.space, race.count) == ((1, 0, 0), "global", 64)
    assert race.detail.endswith("; the other block is (0,0,0)")
    assert run(entry).findings == ()


def test_blocks_that_add_by_atomics_do_not_race() -> None:
    assert run("blocks_right", blocks=2).findings == ()


@pytest.mark.parametrize("entry", ["null_pointer", "null_pointer_global"])
def test_a_null_pointer_is_called_so(entry: str) -> None:
    (found,) = run(entry).findings
    assert found.sentence == "an access through a null pointer"
    assert (found.defect, found.space, found.address, found.count) == (Defect.OUT_OF_BOUNDS, "global", 256, 64)
    assert lines(found) == {MARKS[f"{entry}:first"]}


def lines(finding: Finding) -> set[int]:
    return {site.line.line for site in (finding.at, finding.other) if site and site.line}


RIGHT = (
    "tiled_right",
    "two_tiles_right",
    "named_barriers_right",
    "copies_right",
    "warp_in_order",
    "same_value_for_all",
    "atomics_right",
)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("entry", RIGHT)
def test_right_kernels_are_silent(entry: str, arch: str) -> None:
    outcome = run(entry, arch)
    assert outcome.findings == ()
    assert not outcome.stopped and outcome.blocks == outcome.blocks_total


BROKEN = [  # entry, defect, marks of the lines
    ("no_barrier_before_products", Defect.RACE, {"tile:store b", "tile:read"}),
    ("no_barrier_after_products", Defect.RACE, {"tile:store b", "tile:read"}),
    ("two_tiles_too_few_barriers", Defect.RACE, {":first", ":second"}),
    ("one_too_far", Defect.OUT_OF_BOUNDS, {":first"}),
    ("one_too_far_shared", Defect.OUT_OF_BOUNDS, {":first"}),
    ("misaligned_vector", Defect.MISALIGNED, {":first"}),
    ("misaligned_shared", Defect.MISALIGNED, {":first"}),
    ("tile_half_written", Defect.UNINITIALISED, {":first"}),
    ("barrier_under_if", Defect.DIVERGENT_BARRIER, {":first", ":second"}),
    ("barriers_of_two_branches", Defect.DIVERGENT_BARRIER, {":first", ":second"}),
    ("waits_forever", Defect.DIVERGENT_BARRIER, {":first", ":second"}),
    ("named_barrier_missing", Defect.RACE, {":first", ":second"}),
    ("copy_not_waited_for", Defect.UNWAITED_COPY, {":first", "copy"}),
    ("copy_without_barrier", Defect.RACE, {":first", "copy"}),
    ("warp_branches", Defect.RACE, {":first", ":second"}),
    ("one_place_for_all", Defect.RACE, {":first"}),
    ("atomics_too_early", Defect.RACE, {":first", ":second"}),
]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("entry", "defect", "marks"), BROKEN, ids=[entry for entry, _, _ in BROKEN])
def test_each_defect_is_found_with_its_lines(entry: str, defect: Defect, marks: set[str], arch: str) -> None:
    """Nothing else is found, and nothing at other lines."""
    outcome = run(entry, arch, *((2, 100) if entry == "one_too_far" else ()))
    expected = {MARKS[mark if mark in MARKS else entry + mark] for mark in marks}
    assert outcome.findings
    assert {finding.defect for finding in outcome.findings} == {defect}
    assert {frozenset(lines(finding)) for finding in outcome.findings} == {frozenset(expected)}
    assert outcome.stopped == (entry == "waits_forever")


def test_what_a_race_says() -> None:
    """Between the barriers of k = 0 and 2 each warp reads tile 0 (of k = 0), stores and reads tile 1, and stores tile 0
    (of k = 2), always the words that the other stores or reads. Warp 0 is simulated first. So each of the 32 threads of
    warp 1 reads words that warp 0 stores at k = 0, 1 and, after the second barrier, 3; and stores words that warp 0
    reads at k = 1, 2 and 3. The first: thread 32 reads word 31 of tile 0; and stores word 32 of tile 1."""
    race, other = sorted(run("two_tiles_too_few_barriers").findings, key=lambda f: f.at.does)
    assert (race.at.does, race.at.thread, race.at.warp, race.at.lane) == ("reads", (32, 0, 0), 1, 0)
    assert race.other is not None
    assert (race.other.does, race.other.thread) == ("writes", (31, 0, 0))
    assert (race.space, race.address, race.width_bytes, race.block) == ("shared", 31 * 4, 4, (0, 0, 0))
    assert (other.at.does, other.at.thread, other.address) == ("writes", (32, 0, 0), (64 + 32) * 4)
    assert (race.count, other.count) == (3 * 32, 3 * 32)


def test_addresses_are_told_as_elements() -> None:
    read, write = run("one_too_far", blocks=2, size=100).findings
    assert read.detail == "argument 0 (f32[100]), element [100]: right past its end"
    assert write.detail == "argument 1 (f32[100]), element [100]: right past its end"
    assert (read.at.does, write.at.does) == ("reads", "writes")
    assert (read.block, read.at.thread, read.count) == ((1, 0, 0), (36, 0, 0), 1)
    (vector,) = run("misaligned_vector").findings
    assert vector.detail == "argument 0 (f32[320]), element [5]"
    assert (vector.at.thread, vector.width_bytes, vector.count) == ((1, 0, 0), 16, 48)  # threads that are no 4th


def test_uninitialised_words_are_counted() -> None:
    """Words 48 to 63 are not written; thread t reads word 63 - t."""
    (finding,) = run("tile_half_written").findings
    assert (finding.count, finding.at.thread, finding.address) == (16, (0, 0, 0), 63 * 4)


def test_a_launch_without_the_sanitizer_stops_at_the_first_fault() -> None:
    """As before the sanitizer: the plain executor raises."""
    from gemmsim.support.errors import GemmsimError

    program = cuda_program("broken.cu", "one_too_far", "sm_80")
    arrays = tuple(Argument("f32", (100,), np.zeros(100, np.float32)) for _ in range(2))
    with pytest.raises(GemmsimError, match="out-of-bounds"):
        Executor(program, Launch((2, 1, 1), (64, 1, 1), arrays)).run(range(2))
