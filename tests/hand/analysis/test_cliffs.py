"""The stairs of occupancy against steps worked out by hand, the chart's flows, and reuse of loaded words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_factory import ROWS, evidence, traffic

from gemmsim.analysis.code.instruction_costs import instruction_costs, waits_of_instructions
from gemmsim.analysis.code.reuse import reuse
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.hardware.memory_flow import Flow, MemoryFlow, memory_flow
from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.analysis.limits.occupancy_cliffs import Cliffs, Stairs, Step, cliffs
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Operand, OperandKind
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.errors import GemmsimError

H200 = load_gpu("h200")


def launched(registers: int, shared_bytes: int, threads: int) -> Evidence:
    base = evidence()
    program = replace(base.program, registers=registers, static_shared_bytes=shared_bytes)
    occupancy = theoretical_occupancy(registers, shared_bytes, threads, H200)
    return replace(base, gpu=H200, program=program, block=(threads, 1, 1), occupancy=occupancy)


def cliffs_of(given: Evidence) -> Cliffs:
    return cliffs(given.occupancy, given.program.registers, given.shared_bytes, given.threads_per_block, given.gpu)


def stairs(given: Evidence) -> dict[str, Stairs]:
    return {one.resource: one for one in cliffs_of(given).stairs}


def test_registers_go_in_units_of_eight() -> None:
    """256 threads are 8 warps. A warp gets 32 r registers, in units of 256: up to 32 registers 64 warps fit the 65,536,
    8 blocks; 40: 51 warps, 48 in whole fours, 6 blocks; 48: 42, so 40 warps, 5; 56: 36, 4; 64: 32, 4; 80: 25, 24, 3;
    96: 21, 20, 2; up to 128: 16, 2; beyond: 1."""
    found = stairs(launched(168, 8192, 256))["registers"]
    assert found.value == 168
    assert [(step.first, step.last, step.blocks) for step in found.steps] == [
        (1, 32, 8),
        (33, 40, 6),
        (41, 48, 5),
        (49, 64, 4),
        (65, 80, 3),
        (81, 128, 2),
        (129, 255, 1),
    ]
    assert all(step.warps == 8 * step.blocks for step in found.steps)


def test_shared_memory_goes_in_units_of_128() -> None:
    """228 KiB, 1 KiB of each block reserved: 32 registers allow 8 blocks, which fit while each takes at most
    228 / 8 - 1 = 27.5 KiB = 28,160 bytes; 7 up to 228 KiB / 7 = 33,353 bytes - 1024 = 32,329, down to 32,256."""
    steps = stairs(launched(32, 49152, 256))["shared_bytes"].steps
    assert [(step.first, step.last, step.blocks) for step in steps[:3]] == [
        (0, 28160, 8),
        (28161, 32256, 7),
        (32257, 37888, 6),  # 233,472 / 6 = 38,912, less 1024
    ]
    assert steps[-1].last == H200.shared.max_bytes_per_block and steps[-1].blocks == 1


def test_threads_of_a_block() -> None:
    """64 registers: 32 warps fit. Blocks of 96 threads (3 warps): 10; of 992 (31): 1, as of 1024."""
    steps = stairs(launched(64, 0, 256))["threads"].steps
    assert next(step for step in steps if step.first <= 96 <= step.last) == Step(65, 96, 10, 30)
    assert steps[-1] == Step(993, 1024, 1, 32)


def test_sentences_name_what_to_save_and_what_would_cost() -> None:
    """As tests/hand/analysis/test_occupancy.py: 40 registers fewer; with 168 and 1 block nothing more can be lost by
    registers, and shared memory never fits fewer than one."""
    assert cliffs_of(launched(168, 8192, 256)).sentences == (
        "40 registers a thread fewer give one more block on each SM: 2 instead of 1.",
    )
    shared = cliffs_of(launched(32, 49152, 256)).sentences
    assert shared[0] == "3,584 bytes of shared memory a block less give one more block on each SM: 5 instead of 4."
    # 4 blocks want 32 warps: 64 registers, 65 take 80; and 233,472 / 4 - 1024 = 57,344 bytes.
    assert shared[1] == "From 65 registers a thread on (33 more than now) an SM holds 3 instead of 4."
    assert (
        shared[2] == "From 57,345 bytes of shared memory a block on (8,193 more than now) an SM holds 3 instead of 4."
    )


def test_nothing_to_save_is_said() -> None:
    assert cliffs_of(launched(32, 0, 1024)).sentences[0].startswith("The SM has no slots for more blocks of this size")
    # 37 registers in 256 threads: 6 blocks; 32 would do for 8 warps more, and shared memory stands in no way
    assert "5 registers a thread fewer" in cliffs_of(launched(37, 0, 256)).sentences[0]


@pytest.mark.parametrize(("resource", "field"), [("registers", 0), ("shared_bytes", 1), ("threads", 2)])
def test_every_step_is_what_theoretical_occupancy_says(resource: str, field: int) -> None:
    numbers = [96, 20_000, 192]
    for step in stairs(launched(*numbers))[resource].steps:
        for value in {max(step.first, 1), step.last}:
            asked = [*numbers[:field], value, *numbers[field + 1 :]]
            if step.blocks:
                assert theoretical_occupancy(*asked, H200).blocks_per_sm == step.blocks
            else:
                with pytest.raises(GemmsimError, match="do not fit"):
                    theoretical_occupancy(*asked, H200)


def unshared(found: MemoryFlow) -> tuple[Flow, ...]:
    return tuple(replace(flow, share_pct=None) for flow in found.flows)


def test_flows_in_percent_of_peak() -> None:
    """14,100 cycles at 1.41 GHz are 10 us. The data stages of 108 SMs pass 1,522,800 wavefronts in them, of 8 SMs with
    blocks 112,800; L2 moves 54.3 MB, and of TMA's loads what merges takes nothing; copies within an SM have no peak.
    """
    rows = (
        *ROWS,
        traffic(0, "global", "ldgsts", 16, requests=10, sectors=160, l2_sectors=80),
        traffic(1, "global", "tma_ld", 16, requests=5, sectors=3200, l2_sectors=3200, merged_sectors=800),
    )
    shares = {(f.source, f.target, f.what): f.share_pct for f in memory_flow(evidence(rows=rows)).flows}
    assert shares["l1", "kernel", "global"] == pytest.approx(100 * 3200 / 1_522_800)
    assert shares["shared", "kernel", "shared"] == pytest.approx(100 * 1000 / 1_522_800)
    assert shares["l2", "l1", ""] == pytest.approx(100 * 880 * 32 / 54.3e6)
    assert shares["l2", "shared", "TMA"] == pytest.approx(100 * 2400 * 32 / 54.3e6)
    assert shares["l1", "shared", "cp.async"] is None
    few = memory_flow(evidence(grid=(8, 1, 1))).flows[0]
    assert few.share_pct == pytest.approx(100 * 3200 / 112_800)


def test_flows_of_the_factory_report() -> None:
    """Its LDG: 100 requests, 3200 sectors, 800 of them on to L2; STG: 10 and 40; LDS: 100 + 400 requests."""
    found = memory_flow(evidence())
    assert unshared(found) == (
        Flow("l1", "kernel", "global", 100, 3200 * 32),
        Flow("kernel", "l1", "global", 10, 40 * 32),
        Flow("shared", "kernel", "shared", 500, 1600 + 51200, 1000),
        Flow("l2", "l1", "", 0, 800 * 32),
        Flow("l1", "l2", "", 0, 40 * 32),
    )
    assert found.l1_hit_pct == pytest.approx(100 * 2400 / 3240)
    assert found.conflicts == 400


def test_flows_of_copies_to_shared_memory() -> None:
    """cp.async goes from L1 to shared memory; of TMA's loads L2 sends 3200 sectors, 800 merged, to two SMs each."""
    rows = (
        traffic(0, "global", "ldgsts", 16, requests=10, sectors=160, l2_sectors=80),
        traffic(
            1, "global", "tma_ld", 16, requests=5, sectors=3200, l2_sectors=3200, merged_sectors=800, receivers=2.0
        ),
        traffic(5, "global", "tma_st", 16, requests=2, sectors=640, l2_sectors=640),
    )
    assert unshared(memory_flow(evidence(rows=rows))) == (
        Flow("l1", "shared", "cp.async", 10, 160 * 32),
        Flow("l2", "l1", "", 0, 80 * 32),
        Flow("l2", "shared", "TMA", 5, 3200 * 32, 0, 2 * 3200 * 32, 800 * 32),
        Flow("shared", "l2", "TMA", 2, 640 * 32),
    )


def with_loop(code: tuple[tuple[str, int, float], ...]) -> Evidence:
    """The loop goes from the first instruction to a branch behind the last but one."""
    base = evidence(code=(*code, ("BRA", 3, 100.0)), rows=())
    back = replace(base.program.instructions[-1], operands=(Operand(OperandKind.TARGET, value=0),))
    return replace(base, program=replace(base.program, instructions=(*base.program.instructions[:-1], back)))


@pytest.mark.parametrize(
    ("code", "products", "shared", "expected"),
    [
        # an 8 x 8 register tile: 64 products of 4 LDS.128 (16 words) a step
        ((("LDS.128", 3, 400.0), ("FFMA", 3, 6400.0)), 204_800, 51_200, 4.0),
        ((("LDS", 3, 200.0), ("FFMA", 3, 100.0)), 3200, 6400, 0.5),
        # 16 x 8 x 16 products a warp; LDSM.4 hands four words to a lane
        ((("LDSM.16.M88.4", 3, 100.0), ("HMMA.16816.F32", 3, 400.0)), 400 * 2048, 400 * 32, 64.0),
        ((("LDG.E", 3, 100.0), ("HFMA2", 3, 100.0)), 6400, 0, 2.0),
    ],
)
def test_reuse_of_loaded_words(code: Any, products: float, shared: float, expected: float) -> None:
    found = reuse(with_loop(code))
    assert found is not None
    assert (found.products, found.shared_words, found.products_a_word) == (products, shared, expected)


def test_no_loop_no_reuse() -> None:
    assert reuse(evidence()) is None


def test_costs_of_instructions() -> None:
    samples = np.zeros((6, len(STALL_REASONS)))
    samples[0, STALL_REASONS.index("long_scoreboard")] = 30
    samples[0, STALL_REASONS.index("wait")] = 10
    samples[3, STALL_REASONS.index("selected")] = 60
    costs = instruction_costs(evidence(stall_samples=samples))
    assert [(cost.stall_share, cost.stall) for cost in costs[:4]] == [
        (0.4, "long_scoreboard"),
        (0, ""),
        (0, ""),
        (0.6, "selected"),
    ]
    assert (costs[0].requests, costs[0].sectors, costs[2].conflicts, costs[0].conflicts) == (100, 3200, 400, 0)
    assert [cost.line.line for cost in costs if cost.line] == [2, 3, 3, 3, 3, 4]


def test_waits_at_a_barrier_are_the_barrier_s() -> None:
    """A warp is held up two instructions behind it; what is behind a branch was not reached from there."""
    code = (("BAR.SYNC", 3, 9.0), ("UMOV", 3, 9.0), ("FFMA", 4, 9.0), ("BRA", 4, 9.0), ("FFMA", 5, 9.0))
    barrier, wait = STALL_REASONS.index("barrier"), STALL_REASONS.index("wait")
    samples = np.zeros((5, len(STALL_REASONS)))
    samples[2, barrier], samples[2, wait], samples[4, barrier] = 30, 5, 7
    found = waits_of_instructions(evidence(code=code, rows=(), stall_samples=samples))
    assert found[:, barrier].tolist() == [30, 0, 0, 0, 7] and found[2, wait] == 5
    assert samples[2, barrier] == 30
