"""The sanitizer on many small kernels: `planted.cu` has one defect each, `tricky.cu` none, `planted_numba.py` both.

Before each kernel stands what it should find, how it is launched, and, in planted.cu, HERE marks the lines that a
finding may name: at least one of its lines is marked, in the kernel or in a function that it calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from programs import SOURCES, cuda_program, cuda_ptx

from gemmsim.compile import ArgType, PythonKernel
from gemmsim.compile.apart import ProgramApart, compiled_apart, program_apart
from gemmsim.compile.arrays_apart import arrays_apart
from gemmsim.compile.kernel import build_kernel
from gemmsim.isa.program import Program
from gemmsim.report.hazards import one_line
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.beyond_arrays import beyond_arrays, with_overruns
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized
from gemmsim.trace.types import Argument, Launch

ELEMENTS = 1024


@dataclass(frozen=True)
class Case:
    """A kernel of a file: what should be found ("a|b": either), numbers of its launch, and its marked lines."""

    file: str
    entry: str
    defects: frozenset[str]
    numbers: dict[str, str]
    marked: frozenset[int]

    @property
    def only_sm_90(self) -> bool:
        return "arch" in self.numbers


def cases(file: str) -> list[Case]:
    """All kernels of a file. Lines that are marked outside of kernels count for each of them."""
    text = (SOURCES / file).read_text().splitlines()
    marked = {number for number, line in enumerate(text, 1) if line.rstrip("\\ ").endswith("// HERE")}
    found, within = [], set[int]()
    for head in (number for number, line in enumerate(text, 1) if line.startswith("//:")):
        end = next(number for number in range(head, len(text) + 1) if text[number - 1].startswith("}"))
        own, words = set(range(head, end + 1)) & marked, text[head - 1].removeprefix("//:").split()
        within |= own
        defects = " ".join(word for word in words if "=" not in word)
        numbers = dict(word.split("=") for word in words if "=" in word)
        entry = re.findall(r"KERNEL (\w+)", text[head])[0]
        found.append(Case(file, entry, frozenset(defects.split("|")), numbers, frozenset(own)))
    shared = frozenset(marked - within)
    return [Case(one.file, one.entry, one.defects, one.numbers, one.marked | shared) for one in found]


def run(case: Case, arch: str, least_arrays: int = 2) -> Sanitized:
    """What is found in a kernel. To keep its arrays apart takes half a second; with fewer arrays that is not done."""

    def number(name: str, otherwise: int) -> int:
        return int(case.numbers.get(name, otherwise))

    program, n = cuda_program(case.file, case.entry, arch), number("n", ELEMENTS)
    more: dict[str, Any] = {"cluster": (number("cluster", 1), 1, 1)} if "cluster" in case.numbers else {}
    more["dynamic_shared_bytes"] = number("shared", 0)
    found = sanitized(program, number("grid", 1), n, **more)
    apart = case_apart(case, program, least_arrays)
    return with_overruns(found, overruns(apart, number("grid", 1), n, **more))


def case_apart(case: Case, program: Program, least_arrays: int) -> ProgramApart | None:
    """What `program_apart` makes of a kernel, but that its file is compiled once for all of its kernels."""
    if not program.static_shared_bytes:
        return None
    try:
        apart = arrays_apart(cuda_ptx(case.file, program.arch), program.symbol)
        return compiled_apart(apart, program) if len(apart.arrays) >= least_arrays else None
    except GemmsimError:
        return None


def overruns(apart: ProgramApart | None, blocks: int, n: int = ELEMENTS, **more: Any) -> list[Finding]:
    if apart is None:
        return []
    return beyond_arrays(executor(apart.program, blocks, n, **more), range(blocks), apart.arrays) or []


def sanitized(program: Program, blocks: int, n: int = ELEMENTS, **more: Any) -> Sanitized:
    return sanitize(executor(program, blocks, n, **more), range(blocks))


def executor(program: Program, blocks: int, n: int, **more: Any) -> Executor:
    random = np.random.default_rng(0)
    args = (
        Argument("f32", (ELEMENTS,), random.random(ELEMENTS, np.float32)),
        Argument("f32", (ELEMENTS,), np.zeros(ELEMENTS, np.float32)),
        Argument("i32", (), n),
    )
    launch = Launch((blocks, 1, 1), (64, 1, 1), args, **more)
    return Executor(program, launch, 1_000_000, sanitizing=True)


def lines(finding: Finding) -> set[int]:
    return {site.line.line for site in (finding.at, finding.other) if site and site.line}


ARCHITECTURES = ("sm_90", pytest.param("sm_80", marks=pytest.mark.slow))
PLANTED, TRICKY = cases("planted.cu"), cases("tricky.cu")


def test_how_many_there_are() -> None:
    assert (len(PLANTED), len(TRICKY)) == (63, 39)
    assert all(case.marked for case in PLANTED)


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case.entry)
def test_a_planted_defect_is_found(case: Case, arch: str) -> None:
    if case.only_sm_90 and arch != "sm_90":
        pytest.skip("needs sm_90")
    findings = run(case, arch).findings
    found = any(finding.defect in case.defects and lines(finding) & case.marked for finding in findings)
    assert found, [one_line(finding) for finding in findings]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("case", TRICKY, ids=lambda case: case.entry)
def test_a_tricky_kernel_is_silent(case: Case, arch: str) -> None:
    if case.only_sm_90 and arch != "sm_90":
        pytest.skip("needs sm_90")
    outcome = run(case, arch)
    assert [one_line(finding) for finding in outcome.findings] == [] and not outcome.stopped


def test_what_is_said_of_an_overrun() -> None:
    """Of row_too_many each of 64 threads reads row 8 of x, which has rows 0 to 7; of the first kernel only the last
    thread writes x[64]. That an access leaves all shared memory is said once."""
    by_name = {case.entry: case for case in PLANTED}
    (row,) = (one for one in run(by_name["row_too_many"], "sm_90").findings if one.defect is Defect.OVERRUN)
    assert row.sentence == "an access right behind the end of the shared array 'x', which has 288 bytes"
    assert (row.at.does, row.at.thread, row.count, row.width_bytes) == ("reads", (0, 0, 0), 64, 4)
    (one,) = (one for one in run(by_name["into_the_next_array"], "sm_90").findings if one.defect is Defect.OVERRUN)
    assert (one.at.does, one.at.thread, one.count) == ("writes", (63, 0, 0), 1)
    left = run(by_name["beyond_shared"], "sm_90", least_arrays=1).findings
    assert {one.defect for one in left} == {Defect.OUT_OF_BOUNDS, Defect.UNINITIALISED}


def test_what_is_said_of_other_memory_than_shared() -> None:
    """weights has 16 elements of 4 bytes, and thread 32 reads element 16, the first beyond; 32 of the 64 threads do."""
    by_name = {case.entry: case for case in PLANTED}
    (bank,) = run(by_name["beyond_constant"], "sm_90").findings
    assert (bank.space, bank.address, bank.width_bytes, bank.count) == ("constant", 64, 4, 32)
    assert bank.sentence == "an access outside the 64 bytes of constant bank 3"
    assert bank.at.thread == (32, 0, 0)
    early, tile = run(by_name["global_tile"], "sm_90").findings
    assert early.other is not None and tile.other is not None
    assert (early.space, early.at.does, early.other.does) == ("global", "writes", "reads")  # warp 0 runs first
    assert (tile.space, tile.at.does, tile.other.does) == ("global", "reads", "writes")
    assert tile.sentence == "two threads use the same bytes of global memory and no barrier lies between"
    (barrier,) = run(by_name["barrier_of_too_many"], "sm_90").findings
    assert barrier.sentence == "threads wait at a barrier of more threads than can still come to it"
    assert barrier.other is None and barrier.at.does == "waits at"


NUMBA = [  # kernel, blocks, what should be found
    ("missing_barrier", 1, Defect.RACE),
    ("stale_tile", 1, Defect.RACE),
    ("one_beyond", 17, Defect.OUT_OF_BOUNDS),
    ("barrier_in_a_branch", 1, Defect.DIVERGENT_BARRIER),
    ("split_without_atomics", 4, Defect.RACE),
    ("halo_not_loaded", 1, Defect.UNINITIALISED),
    ("into_the_next_array", 1, Defect.OVERRUN),
    ("right_tiles", 1, None),
    ("right_warps", 4, None),
]
QUICK = ("stale_tile", "into_the_next_array", "right_tiles")  # of these a second each to compile


@pytest.mark.parametrize(
    ("kernel", "blocks", "defect"),
    [pytest.param(*case, marks=() if case[0] in QUICK else pytest.mark.slow, id=case[0]) for case in NUMBA],
)
def test_kernels_of_numba(kernel: str, blocks: int, defect: Defect | None) -> None:
    path = SOURCES / "planted_numba.py"
    text = path.read_text().splitlines()
    begin = text.index(f"def {kernel}(a, c, n):") + 1
    end = next((number for number in range(begin, len(text)) if not text[number]), len(text))
    marked = {number for number in range(begin, end + 1) if text[number - 1].endswith("# HERE")}
    signature = (ArgType("f32", 1), ArgType("f32", 1), ArgType("i32", 0))
    source = PythonKernel(path, kernel, signature)
    program = build_kernel(source, "sm_90").program
    beyond = overruns(program_apart(source, program, None), blocks)
    findings = with_overruns(sanitized(program, blocks), beyond).findings
    assert {finding.defect for finding in findings} == ({defect} if defect else set())
    assert all(lines(finding) & marked for finding in findings)
