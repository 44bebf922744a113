"""The sanitizer on asynchronous kernels of sm_90a that are broken on purpose, and on right ones: defects and lines.

`asynchrony.cu` marks the lines in comments: [entry:first], [ring:load].
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from programs import cuda_program

pytest.importorskip("cuda.bindings")

from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_kernels
from gemmsim.compile.elf import read_cubin
from gemmsim.isa.program import Program
from gemmsim.report.hazards import one_line
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized
from gemmsim.trace.types import Argument, Launch

FILE = Path(__file__).parents[1] / "sources" / "asynchrony.cu"
SOURCE = FILE.read_text()
MARKS = {
    mark: number
    for number, line in enumerate(SOURCE.splitlines(), 1)
    for mark in re.findall(r"\[([a-z_]+:[a-z ]+)\]", line)
}
ROUNDS, WORDS = 5, 576
THREADS = {"ring": 256, "init": 64, "no": 64, "phase": 64}


@cache
def _cubin() -> bytes:
    return compile_cuda(CudaKernel(SOURCE, FILE, options=("-arch=sm_90a",)), "sm_90")[0]


@cache
def _kernels() -> dict[str, Program | GemmsimError]:
    return dict(decode_kernels(_cubin(), [kernel.symbol for kernel in read_cubin(_cubin()).kernels]))


def program(entry: str) -> Program:
    found = _kernels()[entry]
    assert isinstance(found, Program), found
    return found


def run(entry: str, code: Program | None = None) -> Sanitized:
    """One block, which has as many arguments as the entry: input, output, and the number of rounds."""
    code = code or program(entry)
    given = np.arange(ROUNDS * WORDS, dtype=np.uint32)
    arguments = [Argument("u32", given.shape, given), Argument("u32", (4 * 128,), np.zeros(4 * 128, np.uint32))]
    chosen = arguments[2 - min(len(code.parameters), 2) :]
    if len(code.parameters) == 3:
        chosen.append(Argument("i32", (), ROUNDS))
    launch = Launch((1, 1, 1), (THREADS.get(entry.partition("_")[0], 128), 1, 1), tuple(chosen))
    return sanitize(Executor(code, launch, 1_000_000, sanitizing=True), range(1))


def lines(finding: Finding) -> frozenset[int]:
    return frozenset(site.line.line for site in (finding.at, finding.other) if site and site.line)


RIGHT = (
    "ring_right",
    "ring_one_thread_releases",
    "staged_right",
    "staged_fence_of_readers",
    "overwritten_right",
    "tile_right",
    "tile_one_warp_tells",
    "out_right",
    "init_right",
)
RINGS_OF_THREADS = [
    ("ring", 96, ((7, 32), (64,))),
    ("one_warp", 32, ((32,),)),
    ("tokens", 128, ((3, 96),)),
    ("staged", 64, ((5, 64, 4), (5, 64, 4))),
    ("through", 96, ((256,), (256,))),
]


@pytest.mark.parametrize("entry", RIGHT)
def test_right_kernels_are_silent(entry: str) -> None:
    outcome = run(entry)
    assert [one_line(finding) for finding in outcome.findings] == []
    assert not outcome.stopped


@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
@pytest.mark.parametrize(("entry", "threads", "shapes"), RINGS_OF_THREADS)
def test_right_mbarriers_are_silent(entry: str, threads: int, shapes: tuple[tuple[int, ...], ...], arch: str) -> None:
    """Rings, tokens, threads that leave, cp.async that arrives at mbarriers, and bulk copies in and out."""
    kinds = {"staged": ("f32", np.float32), "through": ("u32", np.uint32)}
    dtype, kind = kinds.get(entry, ("i32", np.int32))
    given = [Argument(dtype, shape, np.zeros(shape, kind)) for shape in shapes]
    scalar = {"ring": 7, "one_warp": 13, "staged": 5, "through": 1024}.get(entry)
    scalars = [] if scalar is None else [Argument("i32", (), scalar)]
    code = cuda_program("bulk_copies.cu" if entry == "through" else "mbarriers.cu", entry, arch)
    launch = Launch((1, 1, 1), (threads, 1, 1), (*given, *scalars), dynamic_shared_bytes=1024)
    outcome = sanitize(Executor(code, launch, 1_000_000, sanitizing=True), range(1))
    assert [one_line(finding) for finding in outcome.findings] == []


BROKEN = [  # entry, defect, marks of the lines of each finding
    ("staged_no_fence", Defect.MISSING_FENCE, [{"staged:store", "staged:multiply"}]),
    ("overwritten_by_threads", Defect.UNWAITED_PRODUCT, [{"overwritten_by_threads:first", "staged:multiply"}]),
    ("tile_not_waited_for", Defect.UNWAITED_COPY, [{"tile:load", "tile:read"}]),
    ("tile_one_warp_waits", Defect.UNWAITED_COPY, [{"tile:load", "tile:read"}]),
    ("out_no_fence", Defect.MISSING_FENCE, [{"out:write", "out:store"}]),
    ("out_not_waited_for", Defect.UNWAITED_COPY, [{"out:write", "out:store"}]),
    ("init_without_barrier", Defect.RACE, [{"init_without_barrier:first", "init_without_barrier:second"}]),
    ("no_init", Defect.UNINITIALISED, [{"no_init:first"}]),
    ("phase_passed", Defect.PHASE, [{"passed:wait", "passed:arrive"}]),
]


# The compiler gives some of a ring's multiplications the line of the wait before.
RINGS = [
    (
        "ring_early_release",
        Defect.UNWAITED_PRODUCT,
        [{load, multiply} for load in ("ring:load", "ring:second load") for multiply in ("ring:multiply", "ring:wait")],
        False,
    ),
    ("ring_less_expected", Defect.BYTES_EXPECTED, [{"ring:expect", "ring:second load"}], True),
    ("ring_more_expected", Defect.BYTES_EXPECTED, [{"ring:expect", "ring:second load"}], True),
    ("ring_surplus", Defect.PHASE, [{"ring:surplus"}, {"ring:surplus", "ring:release"}], True),
    ("ring_no_empty", Defect.UNWAITED_COPY, [{"ring:load"}, {"ring:second load"}], True),
    # The consumers multiply the first stage again, before its next tile comes.
    ("ring_one_parity", Defect.UNWAITED_PRODUCT, [{"ring:second load", "ring:wait"}], True),
]


@pytest.mark.parametrize(("entry", "defect", "marks", "stops"), RINGS, ids=[entry for entry, *_ in RINGS])
def test_defects_of_a_ring(entry: str, defect: Defect, marks: list[set[str]], stops: bool) -> None:
    """Where the block then waits forever, the last finding says where."""
    outcome = run(entry)
    assert outcome.stopped == stops
    *found, last = outcome.findings if stops else (*outcome.findings, None)
    assert {lines(f) for f in found if f.defect is defect} == {frozenset(MARKS[m] for m in one) for one in marks}
    assert {f.defect for f in found} <= {defect, Defect.PHASE}
    if last is not None:
        assert last.defect is Defect.PHASE and last.sentence.startswith(
            "threads wait for each other forever: the mbarr"
        )


@pytest.mark.parametrize(("entry", "defect", "marks"), BROKEN, ids=[entry for entry, _, _ in BROKEN])
def test_each_defect_is_found_with_its_lines(entry: str, defect: Defect, marks: list[set[str]]) -> None:
    """Nothing else is found, and nothing at other lines."""
    outcome = run(entry)
    assert {finding.defect for finding in outcome.findings} == {defect}
    assert {lines(finding) for finding in outcome.findings} == {frozenset(MARKS[m] for m in one) for one in marks}


def test_each_warp_reads_its_rows() -> None:
    """Threads overwrite 128 words: the first 16 rows of A, which warp 0 reads."""
    (finding,) = run("overwritten_by_threads").findings
    assert finding.other is not None and (finding.other.warp, finding.count) == (0, 128)


def test_what_is_said_of_bytes() -> None:
    less, more = (run(f"ring_{name}_expected").findings[0] for name in ("less", "more"))
    assert less.sentence == f"at an mbarrier {6 * WORDS} bytes more have come than are expected"  # half a tile, 3 times
    assert more.sentence == "at an mbarrier 16 bytes more are expected than have come"
    assert less.other is not None and (less.at.does, less.other.does) == ("copies to", "expects bytes")
    (copied,) = run("tile_not_waited_for").findings
    assert copied.detail == "its bytes come to the mbarrier at byte 512, phase 0"


def without(entry: str, mnemonic: str) -> Program:
    """An entry without the instructions of a mnemonic: compilers would put back what is left out of the source."""
    code = program(entry)
    empty = next(i for i in code.instructions if i.opcode == "NOP")
    changed = [replace(empty, offset=i.offset) if i.mnemonic == mnemonic else i for i in code.instructions]
    assert changed != list(code.instructions)
    return replace(code, instructions=tuple(changed))


def test_accumulators_are_not_to_be_read_before_their_wait() -> None:
    outcome = run("overwritten_right", without("overwritten_right", "WARPGROUP.DEPBAR.LE"))
    assert {finding.defect for finding in outcome.findings} == {Defect.UNWAITED_PRODUCT}
    registers = [finding for finding in outcome.findings if not finding.space]
    assert {lines(finding) for finding in registers} == {frozenset((MARKS["put:read"], MARKS["staged:multiply"]))}
    assert {finding.at.does for finding in registers} == {"reads"}
    assert registers[0].sentence == "registers of a wgmma are used before anybody has waited for its group"


def test_accumulators_need_a_fence() -> None:
    outcome = run("staged_right", without("staged_right", "WARPGROUP.ARRIVE"))
    assert {finding.defect for finding in outcome.findings} == {Defect.MISSING_FENCE}
    assert {finding.at.line.line for finding in outcome.findings if finding.at.line} == {MARKS["staged:multiply"]}
    assert {finding.other.does for finding in outcome.findings if finding.other} == {"writes"}
