"""Blocks that wait for each other or share out work run interleaved; results against NumPy, deadlocks by name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cubins import SOURCES
from programs import cuda_program

from gemmsim.cli.main import main
from gemmsim.compile import ArgType, PythonKernel
from gemmsim.compile.kernel import build_kernel
from gemmsim.support.errors import GemmsimError
from gemmsim.trace import words
from gemmsim.trace.execute import Executor
from gemmsim.trace.launch_data.grid_workspace import check_cooperative
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.turns import takes_turns, with_turns
from gemmsim.trace.types import Argument, Execution, Launch

SOURCE = (Path(__file__).parents[1] / "sources" / "residents.cu").read_text().splitlines()
FILES = {"grid_total": "grid_sync.cu"}
DTYPES = {"float32": "f32", "int32": "i32", "uint32": "u32"}


def line(mark: str) -> int:
    return next(number for number, text in enumerate(SOURCE, 1) if f"[{mark}]" in text)


def executor(
    entry: str,
    blocks: int,
    block: tuple[int, int, int],
    *args: np.ndarray | int,
    resident: int | None = None,
    arch: str = "sm_90",
    sanitizing: bool = False,
) -> Executor:
    given = tuple(
        Argument("i32", (), a) if isinstance(a, int) else Argument(DTYPES[a.dtype.name], a.shape, a) for a in args
    )
    program = cuda_program(FILES.get(entry, "residents.cu"), entry, arch)
    return Executor(program, Launch((blocks, 1, 1), block, given), 20_000_000, sanitizing, resident)


def run(
    entry: str, blocks: int, block: tuple[int, int, int], *args: np.ndarray | int, resident: int | None = None
) -> Execution:
    return executor(entry, blocks, block, *args, resident=resident).run(range(blocks))


def output(execution: Execution, position: int) -> np.ndarray:
    found = execution.outputs[position]
    assert found is not None
    return found


def test_a_counter_shares_out_tiles_by_the_work_done() -> None:
    """Block 0 has a tile as long as all others together; blocks 1 and 2 share those, and block 3 begins too late."""
    length = np.ones(41, np.int32)
    length[0] = 10_000
    zeros = np.zeros((41, 64), np.float32)
    arguments = (length, np.full(41, -1, np.int32), zeros, np.zeros(1, np.int32), 41)
    execution = run("tiles", 4, (64, 1, 1), *arguments, resident=3)
    assert np.bincount(output(execution, 1), minlength=4).tolist() == [1, 20, 20, 0]
    assert np.allclose(output(execution, 2)[1:], np.arange(64) * 0.5)
    assert output(execution, 3)[0] == 41 + 4  # each of the four blocks asks once in vain


def test_equal_tiles_are_dealt_in_turn() -> None:
    arguments = (np.full(12, 5, np.int32), np.zeros(12, np.int32), np.zeros((12, 64), np.float32))
    execution = run("tiles", 3, (64, 1, 1), *arguments, np.zeros(1, np.int32), 12)
    assert output(execution, 1).tolist() == [0, 1, 2] * 4


def consumer(blocks: int, resident: int | None) -> Execution:
    arrays = np.zeros(1, np.int32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    return run("consume", blocks, (64, 1, 1), *arrays, resident=resident)


def test_a_block_waits_for_a_later_one() -> None:
    assert np.array_equal(output(consumer(5, None), 2), np.arange(64) + 1.0)
    assert np.array_equal(output(consumer(5, 2), 2), np.arange(64) + 1.0)  # blocks 1 to 3 end and make room


def test_a_wait_for_a_block_that_finds_no_room_is_named() -> None:
    with pytest.raises(Stopped) as caught:
        consumer(5, 1)
    text = str(caught.value)
    assert "block 0 waits for a value that no resident block will write: 5 blocks, 1 fit" in text
    assert f"line {line('consume:wait')} of" in text and "STRONG" in text
    assert caught.value.status == words.STUCK and caught.value.block == 0


def test_a_barrier_by_hand() -> None:
    given = np.arange(6 * 32, dtype=np.int32).reshape(6, 32)
    arrays = given, np.zeros_like(given), np.zeros_like(given), np.zeros(1, np.uint32)
    execution = run("rotate", 6, (32, 1, 1), *arrays)
    first = given + np.roll(given, -1, 0)
    assert np.array_equal(output(execution, 2), first + np.roll(first, -1, 0))
    with pytest.raises(GemmsimError, match=r"block 0 and 4 more wait .* no resident block will write: 6 blocks, 5 fit"):
        run("rotate", 6, (32, 1, 1), *arrays, resident=5)


def test_a_lock() -> None:
    execution = run("locked", 7, (32, 1, 1), np.zeros(1, np.int32), np.zeros(1, np.int32), 9, resident=4)
    assert output(execution, 1)[0] == 9 * sum(range(1, 8))
    assert output(execution, 0)[0] == 0


def test_crossed_locks_never_open() -> None:
    with pytest.raises(GemmsimError, match=r"block 0 and 1 more wait for a value that no block will write") as caught:
        run("crossed", 2, (32, 1, 1), np.zeros(2, np.int32), np.zeros(2, np.int32))
    assert f"line {line('crossed:wait')} of" in str(caught.value)


@pytest.mark.parametrize(("blocks", "resident"), [(4, 4), (7, 4), (16, 3)])
def test_stream_k(blocks: int, resident: int) -> None:
    """The block that begins a tile waits for blocks behind it, which have room as long as three are resident."""
    n = 48
    random = np.random.default_rng(0)
    a, b = (random.random((n, n), np.float32) for _ in range(2))
    arrays = a, b, np.zeros((n, n), np.float32), np.zeros((blocks, 256), np.float32), np.zeros(blocks, np.int32)
    one = executor("stream_k", blocks, (16, 16, 1), *arrays, n, 3, 3, 27, resident=resident)
    execution = one.run(range(blocks))
    assert one.residents is not None
    assert one.residents.turns > 0  # a tile is split, so that a block has waited
    assert np.allclose(output(execution, 2), a @ b, rtol=1e-5)
    again = run("stream_k", blocks, (16, 16, 1), *arrays, n, 3, 3, 27, resident=resident)
    assert np.array_equal(execution.trace.pc, again.trace.pc)  # the order is the same in every run


def test_only_such_kernels_run_interleaved() -> None:
    for entry in ("tiles", "consume", "rotate", "locked", "crossed", "stream_k"):
        assert takes_turns(with_turns(cuda_program("residents.cu", entry, "sm_90")))
    arrays = np.arange(5, dtype=np.float32), np.zeros(5, np.float32), np.zeros(1, np.int32), np.zeros(1, np.float32)
    one_by_one = executor("last_adds", 5, (32, 1, 1), *arrays)
    assert one_by_one.residents is None
    assert output(one_by_one.run(range(5)), 3)[0] == 10.0


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])  # they differ in where the workspace is named
def test_grid_sync(arch: str) -> None:
    """Both rounds of two barriers each: the total of 9 parts, then 9 times that total."""
    x = np.random.default_rng(0).random(1000, np.float32)
    arrays = x, np.zeros(9, np.float32), np.zeros(9, np.float32)
    one = executor("grid_total", 9, (64, 1, 1), *arrays, 1000, arch=arch)
    assert np.allclose(output(one.run(range(9)), 2), 9 * x.sum(), rtol=1e-5)
    too_few = executor("grid_total", 9, (64, 1, 1), *arrays, 1000, arch=arch, resident=8)
    with pytest.raises(
        GemmsimError, match=r"block 0 and 7 more wait for .*: 9 blocks, 8 fit \(line \d+ of .*grid_sync"
    ):
        too_few.run(range(9))


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_grid_sync_of_numba(arch: str) -> None:
    """Row k is k more than row 0, which is mirrored in every second row. With one block fewer it never ends."""
    source = PythonKernel(SOURCES / "python_kernels.py", "mirrored_rows", (ArgType("i32", 2),))
    program = build_kernel(source, arch).program
    x = np.zeros((6, 192), np.int32)
    x[0] = np.arange(192) ** 2
    launch = Launch((3, 1, 1), (64, 1, 1), (Argument("i32", x.shape, x),))
    found = output(Executor(program, launch).run(range(3)), 0)
    for row in range(6):
        np.testing.assert_array_equal(found[row], x[0][:: 1 - 2 * (row % 2)] + row)
    with pytest.raises(GemmsimError, match=r"block 0 and 1 more wait for a value .*: 3 blocks, 2 fit"):
        Executor(program, launch, 20_000_000, False, 2).run(range(3))


@pytest.mark.parametrize(("cooperative", "entry"), [(True, "rotate"), (False, "grid_total")])
def test_a_cooperative_launch_must_fit(cooperative: bool, entry: str) -> None:
    program = cuda_program(FILES.get(entry, "residents.cu"), entry, "sm_90")
    check_cooperative(program, Launch((264, 1, 1), (64, 1, 1), (), cooperative=cooperative), 264, "h200")
    with pytest.raises(
        GemmsimError, match="needs all 265 blocks on the GPU at once, but 264 fit on h200: CUDA refuses"
    ):
        check_cooperative(program, Launch((265, 1, 1), (64, 1, 1), (), cooperative=cooperative), 264, "h200")


def test_the_workspace_is_no_argument() -> None:
    """It lies behind the arguments, and neither outputs nor pointers name it; a kernel that needs none gets none."""
    arrays = np.ones(8, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float32)
    one = executor("grid_total", 2, (64, 1, 1), *arrays, 8)
    assert len(one.memory.pointers) == len(one.run(range(2)).outputs) == 4
    assert list(one.memory.hidden.values()) == [int(one.memory.starts[-1])]
    assert executor("rotate", 1, (32, 1, 1), *[np.zeros(32, np.int32)] * 3, np.zeros(1, np.uint32)).memory.hidden == {}


def test_the_sanitizer_looks_at_blocks_that_wait_for_each_other() -> None:
    zeros = np.zeros(4, np.int32)
    found = sanitize(executor("racing", 4, (64, 1, 1), np.zeros(1, np.uint32), zeros, sanitizing=True), range(4))
    (race,) = found.findings
    assert (race.defect, race.space, race.count) == (Defect.RACE, "shared", 4)  # once in each block
    assert line("racing:read") in {site.line.line for site in (race.at, race.other) if site and site.line}
    given = np.arange(6 * 32, dtype=np.int32).reshape(6, 32)
    arrays = given, np.zeros_like(given), np.zeros_like(given), np.zeros(1, np.uint32)
    right = executor("rotate", 6, (32, 1, 1), *arrays, sanitizing=True, resident=6)
    assert sanitize(right, range(6)).findings == ()
    tiles = np.full(9, 5, np.int32), np.zeros(9, np.int32), np.zeros((9, 64), np.float32), np.zeros(1, np.int32), 9
    assert sanitize(executor("tiles", 3, (64, 1, 1), *tiles, sanitizing=True), range(3)).findings == ()


def test_the_sanitizer_names_a_wait_that_never_ends() -> None:
    arrays = np.zeros(1, np.int32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    found = sanitize(executor("consume", 5, (64, 1, 1), *arrays, sanitizing=True, resident=1), range(5))
    (stuck,) = found.findings
    assert (stuck.defect, found.blocks) == (Defect.FAULT, 1)
    assert "block 0 waits for a value that no resident block will write: 5 blocks, 1 fit" in stuck.sentence
    assert stuck.at.line is not None
    assert stuck.at.line.line == line("consume:wait")


@pytest.mark.parametrize("entry", ["tiles", "rotate", "stream_k", "grid_total"])
def test_a_program_slice_runs_interleaved_too(entry: str) -> None:
    """What blocks wait for is kept in the slice, so that it leaves the trace of the whole program. grid.sync() polls
    with a generic load, which might read shared memory, so that all stores there matter: the whole program runs."""
    floats = np.random.default_rng(0).random((48, 48), np.float32)
    tiles = (
        np.arange(1, 10, dtype=np.int32),
        np.zeros(9, np.int32),
        np.zeros((9, 64), np.float32),
        np.zeros(1, np.int32),
    )
    given = np.arange(6 * 32, dtype=np.int32).reshape(6, 32)
    flags = np.zeros(7, np.int32)
    one = {
        "tiles": lambda: executor("tiles", 4, (64, 1, 1), *tiles, 9, resident=3),
        "rotate": lambda: executor("rotate", 6, (32, 1, 1), given, given, given, np.zeros(1, np.uint32)),
        "stream_k": lambda: executor(
            "stream_k", 7, (16, 16, 1), floats, floats, floats, np.zeros((7, 256), np.float32), flags, 48, 3, 3, 27
        ),
        "grid_total": lambda: executor("grid_total", 3, (64, 1, 1), floats, floats, floats, 1000),
    }[entry]()
    blocks = range(one.launch.blocks)
    probed, whole = one.probe(blocks), one.trace(blocks, streams=[False] * len(blocks))
    assert one.slice_suffices == (entry != "grid_total")
    assert np.array_equal(probed.executed, whole.executed)
    assert np.array_equal(np.sort(probed.record_base), np.sort(whole.record_base))


def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Counters of such a launch are those of one order of several, so that none that was executed is called exact."""
    source = Path(__file__).parents[1] / "sources" / "residents.cu"
    command = ["analyze", str(source), "--gpu", "h200", "--entry", "rotate", "--block", "32", "--format", "json"]
    arrays = ["--arg", "u32[1]=0"]
    for blocks, more, message in (
        (8, (), ""),
        (4225, ("--cooperative",), "needs all 4225 blocks on the GPU at once, but 4224 fit on h200"),
        (4225, (), "no resident block will write: 4225 blocks, 4224 fit"),
    ):
        three = ["--arg", f"i32[{blocks},32]"] * 3
        status = main([*command, "--grid", str(blocks), *three, *arrays, *more])
        said = capsys.readouterr()
        assert (status, message in said.err) == (2 if message else 0, True)
        if not message:
            report = json.loads(said.out)
            assert report["provenance"]["smsp__inst_executed.sum"] == "modelled"
            assert report["provenance"]["launch__registers_per_thread"] == "exact"
            assert any("ran interleaved" in note for note in report["sampling"]["notes"])
