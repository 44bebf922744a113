"""Theoretical occupancy against Nsight Compute's launch__occupancy_limit_* counters, and cliffs worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmsim.analysis.limits.occupancy import Occupancy, theoretical_occupancy
from gemmsim.gpu import load_gpu
from gemmsim.support.errors import GemmsimError

H200 = load_gpu("h200")

# Measured on an H200, driver 580.159.04, Nsight Compute: (registers, static shared bytes, threads, configured bytes,
# blocks of the grid) -> (limit registers, shared_mem, warps, waves).
MEASURED = {
    "naive 32x32": ((28, 0, 1024, 8192, 1024), (2, 8, 2, 3.88)),
    "coalesced 16x16": ((28, 0, 256, 32768, 4096), (8, 32, 8, 3.88)),
    "tiled 16": ((32, 2048, 256, 65536, 4096), (8, 21, 8, 3.88)),
    "tiled 32": ((32, 8192, 1024, 32768, 1024), (2, 3, 2, 3.88)),
    "1-D block tile": ((40, 4096, 512, 32768, 256), (3, 6, 4, 0.65)),
    "2-D block tile 64": ((234, 4096, 64, 65536, 256), (4, 12, 32, 0.48)),
    "2-D block tile 128": ((168, 8192, 256, 16384, 64), (1, 1, 8, 0.48)),
}


@pytest.mark.parametrize("case", MEASURED)
def test_limits_as_measured(case: str) -> None:
    (registers, shared, threads, carveout, grid), expected = MEASURED[case]
    got = theoretical_occupancy(registers, shared, threads, H200, carveout, grid)
    assert got.waves_per_sm is not None
    limits = (got.limit_registers, got.limit_shared_mem, got.limit_warps, round(got.waves_per_sm, 2))
    assert limits == expected
    assert got.limit_blocks == 32
    assert got == theoretical_occupancy(registers, shared, threads, H200, None, grid)  # the driver's choice is the same


# Tesla T4, Nsight Compute report of alexkato29/cuda-gemm@3c9becf: registers, shared bytes, configured bytes -> limits
# by registers, shared_mem and warps, occupancy.
@pytest.mark.parametrize(
    ("registers", "shared", "carveout", "expected"),
    [
        (49, 0, 32768, (4, 16, 4, 100)),
        (39, 2048, 32768, (6, 16, 4, 100)),
        (64, 32768, 65536, (4, 2, 4, 50)),
        (128, 32768, 65536, (2, 2, 4, 50)),
    ],
)
def test_t4_as_published(registers: int, shared: int, carveout: int, expected: tuple[int, ...]) -> None:
    got = theoretical_occupancy(registers, shared, 256, load_gpu("t4"), carveout)
    assert (got.limit_registers, got.limit_shared_mem, got.limit_warps, got.theoretical_pct) == expected
    assert got.limit_blocks == 16


def test_a_1536_thread_sm_holds_one_block_of_1024() -> None:
    got = theoretical_occupancy(32, 0, 1024, load_gpu("rtx4090"))
    assert (got.blocks_per_sm, got.warps_per_sm, got.limiters) == (1, 32, ("warps",))
    assert got.theoretical_pct == pytest.approx(66.67, abs=0.01)


def test_registers_cliff() -> None:
    # 256 threads, 8 warps. 168 registers are 5376 a warp: 12 warps, one block. Two blocks need 16 warps, 4096 registers
    # each: 128 a thread, 40 fewer. Shared memory is no obstacle: 228 KiB hold 25 blocks of 9 KiB.
    got = theoretical_occupancy(168, 8192, 256, H200)
    assert (got.blocks_per_sm, got.registers_cliff, got.shared_cliff_bytes) == (1, 40, None)
    assert theoretical_occupancy(128, 8192, 256, H200).blocks_per_sm == 2
    assert theoretical_occupancy(129, 8192, 256, H200).blocks_per_sm == 1


def test_shared_cliff() -> None:
    # 48 KiB and 1 KiB reserved: 228 // 49 = 4 blocks. Five need 228 KiB / 5 = 46694.4 bytes each, less the reserved
    # 1024 is 45670.4, down to a multiple of 128: 45568, which is 3584 fewer. 32 registers allow 8 blocks.
    got = theoretical_occupancy(32, 49152, 256, H200)
    assert (got.blocks_per_sm, got.shared_cliff_bytes, got.registers_cliff) == (4, 3584, None)
    assert got.limiters == ("shared_mem",)


def test_shared_cliff_at_no_shared_memory() -> None:
    """Of a GPU that hands out 8 KiB at a time, 64 KiB hold 8 blocks; only blocks without any are more, up to 16."""
    t4 = load_gpu("t4")
    gpu = replace(t4, shared=replace(t4.shared, allocation_unit_bytes=8192))
    got = theoretical_occupancy(16, 100, 64, gpu)
    assert (got.blocks_per_sm, got.shared_cliff_bytes) == (8, 100)
    assert theoretical_occupancy(16, 0, 64, gpu).blocks_per_sm == 16


def test_full_occupancy_has_no_cliff() -> None:
    got = theoretical_occupancy(32, 0, 1024, H200)
    assert (got.theoretical_pct, got.registers_cliff, got.shared_cliff_bytes) == (100, None, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((32, 0, 0), "takes 1 to 1024"),
        ((32, 0, 1025), "takes 1 to 1024"),
        ((32, 227 * 1024 + 1, 256), "at most 232448"),
        ((256, 0, 32), "at most 255 a thread"),
        ((65, 0, 1024), "do not fit the 65536 registers"),
    ],
)
def test_a_block_that_does_not_fit(arguments: tuple[int, int, int], message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        theoretical_occupancy(*arguments, H200)


def _place(registers: int, shared: int, threads: int, carveout: int) -> int:
    """The slow twin: put blocks on an H200's SM one by one, warp by warp, until something runs out."""
    free_registers = [65536 // 4] * 4
    warps = shared_used = blocks = placed = 0
    while blocks < 32:
        shared_used += -(-shared // 128) * 128 + 1024
        for _ in range(-(-threads // 32)):
            free_registers[placed % 4] -= -(-registers * 32 // 256) * 256
            placed += 1
            warps += 1
        if warps > 64 or min(free_registers) < 0 or shared_used > carveout:
            return blocks
        blocks += 1
    return blocks


@settings(max_examples=200, deadline=None)
@given(
    st.integers(16, 255), st.integers(0, 60000), st.integers(1, 1024), st.sampled_from((65536, 102400, 167936, 233472))
)
def test_equals_placing_blocks_one_by_one(registers: int, shared: int, threads: int, carveout: int) -> None:
    try:
        got = theoretical_occupancy(registers, shared, threads, H200, carveout)
    except GemmsimError:
        assert _place(registers, shared, threads, carveout) == 0
    else:
        assert got.blocks_per_sm == _place(registers, shared, threads, carveout)


@settings(max_examples=60, deadline=None)
@given(st.integers(16, 128), st.integers(0, 90000), st.integers(1, 16).map(lambda warps: 32 * warps))
def test_cliffs_are_the_first_step(registers: int, shared: int, threads: int) -> None:
    def at(registers: int, shared: int) -> Occupancy:
        return theoretical_occupancy(registers, shared, threads, H200, 233472)

    here = at(registers, shared)
    if here.registers_cliff is not None:
        assert at(registers - here.registers_cliff, shared).blocks_per_sm > here.blocks_per_sm
        assert at(registers - here.registers_cliff + 1, shared).blocks_per_sm == here.blocks_per_sm
    if here.shared_cliff_bytes is not None:
        assert at(registers, shared - here.shared_cliff_bytes).blocks_per_sm > here.blocks_per_sm
        assert at(registers, shared - here.shared_cliff_bytes + 1).blocks_per_sm == here.blocks_per_sm
