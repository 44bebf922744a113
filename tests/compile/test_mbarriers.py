"""Warps that wait for each other at mbarriers of sm_90 and sm_120: results against NumPy, deadlocks by name."""

from __future__ import annotations

import numpy as np
import pytest
from programs import SOURCES, cuda_program

pytest.importorskip("cuda.bindings")

from gemmsim.trace import words
from gemmsim.trace.blocks.choice import plan
from gemmsim.trace.execute import Executor
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Argument, Execution, Launch

ARCHITECTURES = ("sm_90", "sm_120")
DTYPES = {"float32": "f32", "int32": "i32"}


def executor(entry: str, arch: str, grid: int, block: int, *args: np.ndarray | int) -> Executor:
    given = tuple(
        Argument("i32", (), a) if isinstance(a, int) else Argument(DTYPES[a.dtype.name], a.shape, a) for a in args
    )
    program = cuda_program("mbarriers.cu", entry, arch)
    return Executor(program, Launch((grid, 1, 1), (block, 1, 1), given), 5_000_000)


def run(entry: str, arch: str, grid: int, block: int, *args: np.ndarray | int) -> Execution:
    return executor(entry, arch, grid, block, *args).run(range(grid))


def output(execution: Execution, position: int) -> np.ndarray:
    found = execution.outputs[position]
    assert found is not None
    return found


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_ring_hands_over_each_slot_once(arch: str) -> None:
    n, given = 7, np.random.default_rng(1).integers(0, 1000, (3, 7, 32), dtype=np.int32)
    execution = run("ring", arch, 3, 96, given, np.zeros((3, 64), np.int32), n)
    total = np.zeros((3, 32), np.int64)
    for k in range(n):
        total = 31 * total + given[:, k, ::-1]
    expected = np.tile(total.astype(np.uint32).astype(np.int32), (1, 2))
    np.testing.assert_array_equal(output(execution, 1), expected)
    program = cuda_program("mbarriers.cu", "ring", arch)
    waits = [n for n, i in enumerate(program.instructions) if i.mnemonic == "SYNCS.PHASECHK.TRANS64.TRYWAIT"]
    # A warp that waits is suspended, as mbarrier.try_wait may do: it executes each wait once.
    assert execution.trace.executed[:, waits].sum(axis=1).tolist() == [3 * n] * 3


@pytest.mark.parametrize("last", [0, 13, 31])
def test_threads_of_a_warp_wait_for_one_of_them(last: int) -> None:
    out = output(run("one_warp", "sm_90", 1, 32, np.zeros(32, np.int32), last), 0)
    assert (out == 41 + last).all()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_tokens_and_threads_that_leave(arch: str) -> None:
    out = output(run("tokens", arch, 1, 128, np.zeros((3, 96), np.int32)), 0)
    np.testing.assert_array_equal(out, 100 * np.arange(3)[:, None] + np.arange(95, -1, -1))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_copies_arrive_at_mbarriers(arch: str) -> None:
    given = np.arange(5 * 64 * 4, dtype=np.float32).reshape(5, 64, 4)
    out = output(run("staged", arch, 1, 64, given, np.zeros_like(given), 5), 1)
    np.testing.assert_array_equal(out, given[:, ::-1])


def test_a_deadlock_is_named() -> None:
    source = (SOURCES / "mbarriers.cu").read_text().splitlines()
    wait, block = (next(n for n, text in enumerate(source, 1) if f"[{mark}]" in text) for mark in ("wait", "block"))
    with pytest.raises(Stopped) as stopped:
        run("starved", "sm_90", 1, 128, 96, 3)
    message = str(stopped.value)
    assert stopped.value.status == words.DEADLOCK
    for part in (
        "the mbarrier at 0x400 of shared memory, phase 0, which lacks 2 of 3 arrivals and lacks 96 bytes, holds",
        " holds warps 0-2 (",
        f"(line {wait} of {SOURCES / 'mbarriers.cu'}, '",
        "barrier 0, at which 32 threads have arrived, holds warp 3 (",
        f"(line {block} of {SOURCES / 'mbarriers.cu'}, '",
        "(block 0 of kernel 'starved')",
    ):
        assert part in message, message


def test_bytes_that_nobody_expected_are_named() -> None:
    with pytest.raises(Stopped, match=r"phase 0, which got 96 bytes that it did not expect, holds warps 0-2"):
        run("starved", "sm_90", 1, 128, -96, 1)


def test_blocks_that_differ_by_address_are_one_class() -> None:
    given = np.zeros((40, 4, 32), np.int32)
    some = executor("ring", "sm_90", 40, 64, given, np.zeros((40, 32), np.int32), 4)
    classes = plan(some, 2, 4, full_below=0).classes
    assert [len(one.members) for one in classes] == [40]
