"""Bottleneck and advice: each rule speaks where it should, with numbers worked out here, and is silent elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_factory import CODE, ROWS, evidence, traffic

from gemmsim.analysis import advice
from gemmsim.analysis.bottleneck import find_bottleneck
from gemmsim.analysis.lines import by_line
from gemmsim.analysis.mix import Kind, by_kind
from gemmsim.analysis.utilisation import DATA_STAGE, DRAM, L2, utilisations

PACKED = traffic(0, "global", "ld", 4, requests=100, sectors=400, ideal_sectors=400, used_bytes=12800)


def share(unit: str, **timing: float) -> float:
    return next(use.share_pct for use in utilisations(evidence(**timing)) if use.unit == unit)


def test_data_stage_share() -> None:
    """4210 wavefronts over 108 SMs in 39 cycles, one a cycle each: 4210 / (108 * 39) = 99.95 %."""
    assert share(DATA_STAGE, cycles=39.0) == pytest.approx(100 * 4210 / (108 * 39))


def test_bandwidth_shares() -> None:
    """14,100 cycles at 1.41 GHz are 10 us. L2: 840 sectors of 32 B in it; DRAM: 200."""
    gpu = evidence().gpu
    assert share(L2) == pytest.approx(100 * 840 * 32 / 10e-6 / gpu.l2.read_bytes_per_s)
    peak = gpu.dram.peak_bytes_per_s * gpu.dram.achievable_fraction
    assert share(DRAM) == pytest.approx(100 * 200 * 32 / 10e-6 / peak)


@pytest.mark.parametrize(
    ("timing", "kind", "number"),
    [
        ({"duration_us": 4.0}, "launch", "us (6"),  # 2.6 of 4.0 us
        ({"issue_active_pct": 83.0}, "issue", "issue slots: 83% of peak"),
        ({"pipe_utilisation_pct": {"fmaheavy": 91.0}}, "pipe", "fmaheavy pipe: 91% of peak"),
        ({"cycles": 50.0, "duration_us": 8.0}, "l1_data", "78% of peak"),  # 4210 / (108 * 50)
        # a pipe that is about as busy as the data stage behind it is not what binds; one that is busier is
        ({"cycles": 50.0, "duration_us": 8.0, "pipe_utilisation_pct": {"lsu": 82.0}}, "l1_data", "78% of peak"),
        ({"cycles": 50.0, "duration_us": 8.0, "pipe_utilisation_pct": {"lsu": 90.0}}, "pipe", "lsu pipe: 90% of peak"),
        ({}, "latency", "short_scoreboard: 6.0 of 8.0 cycles"),
    ],
)
def test_bottleneck_kinds(timing: dict, kind: str, number: str) -> None:
    found = find_bottleneck(evidence(**timing))
    assert found.kind == kind
    assert number in found.sentence


def test_few_blocks_leave_sms_idle() -> None:
    found = find_bottleneck(evidence(grid=(8, 1, 1)))
    assert (found.kind, "8 for 108 SMs, so 100 SMs stand idle" in found.sentence) == ("small_grid", True)
    idle = advice.idle_sms(evidence(grid=(8, 1, 1)))
    assert idle is not None and idle.gain == "up to 13.5x with every SM at work"
    assert advice.idle_sms(evidence()) is None


def test_uncoalesced_line() -> None:
    """3200 sectors for 100 requests where 400 do; with the stores' 40: 3240 fall to 440."""
    said = advice.uncoalesced_access(evidence())
    assert said is not None
    assert said.title == "uncoalesced load on line 2: a = A[row, k]"
    assert "32.0 sectors a request where 4.0" in said.evidence
    assert "from 3,240 to 440 (7.4x fewer)" in said.gain
    assert advice.uncoalesced_access(evidence(rows=(PACKED,))) is None


def test_bank_conflicts() -> None:
    said = advice.bank_conflicts(evidence())
    assert said is not None and "400 of 800 are conflicts" in said.evidence and said.gain.endswith("from 1,000 to 600")
    assert advice.bank_conflicts(evidence(rows=tuple(replace(row, conflicts=0.0) for row in ROWS))) is None


def test_register_tiling() -> None:
    """500 loads and 1000 wavefronts for 400 FFMA; 100 * 4 + 400 * 1 words are 2 a multiply-add."""
    said = advice.register_tiling(evidence())
    assert said is not None and said.evidence.startswith("1.25 shared loads and 2.50 wavefronts")
    assert said.gain.endswith("0.25 words a multiply-add, now 2.00")
    assert advice.register_tiling(evidence(rows=(ROWS[1],))) is None  # 100 loads for 400 FFMA


def test_instruction_mix() -> None:
    kinds = by_kind(evidence())
    assert kinds == {Kind.SHARED: 500, Kind.FMA: 400, Kind.GLOBAL: 110, Kind.INTEGER: 50}
    said = advice.fma_density(evidence())
    assert said is not None and said.evidence.startswith("38% ")  # 400 of 1060
    assert advice.fma_density(evidence(code=(("FFMA", 3, 90.0), ("BRA", 3, 10.0)), rows=())) is None


def test_integer_arithmetic() -> None:
    said = advice.integer_arithmetic(evidence(code=(("IADD3", 3, 60.0), ("FFMA", 3, 20.0), ("LDG", 2, 20.0)), rows=()))
    assert said is not None and said.evidence == "60% of the warp instructions are integer, 3.0 for each multiply-add"
    assert advice.integer_arithmetic(evidence()) is None


@pytest.mark.parametrize(("waves", "gain"), [(1.5, "at most 25%"), (1.0, None), (1.9, None), (0.5, None), (20.1, None)])
def test_tail_wave(waves: float, gain: str | None) -> None:
    """1.5 waves take the time of two: a quarter of it is idle."""
    said = advice.tail_wave(evidence(waves=waves))
    assert (said is None) == (gain is None)
    assert said is None or gain is None or said.gain.startswith(gain)


def test_low_occupancy() -> None:
    given = evidence()
    few = {"theoretical_pct": 25.0, "warps_per_sm": 16, "limiters": ("registers",)}
    low = replace(given, occupancy=replace(given.occupancy, **few, registers_cliff=8, shared_cliff_bytes=None))
    said = advice.low_occupancy(low)
    assert said is not None and said.title == "occupancy is limited by registers"
    assert said.evidence == "16 of 64 warps (25%)"
    assert said.change == "one more block an SM takes 8 registers fewer a thread"
    assert advice.low_occupancy(given) is None


def test_rules_keep_silent_without_memory_or_multiply_adds() -> None:
    """Only what does not depend on either may speak: 60 integer instructions, nothing else."""
    assert advice.advise(evidence(code=(("IADD3", 3, 60.0),), rows=())) == ()


def test_lines_merge_instructions_of_one_kind() -> None:
    """Two LDS of line 3 become one row of their sums; LDS.128 stays apart."""
    code = (*CODE, ("LDS", 3, 40.0))
    rows = (*ROWS, traffic(6, "shared", "ld", 4, requests=40, wavefronts=40))
    merged = {row.mnemonic: row for row in by_line(evidence(code=code, rows=rows)) if row.space == "shared"}
    assert (merged["LDS"].static_count, merged["LDS"].requests, merged["LDS"].wavefronts) == (2, 440, 840)
    assert merged["LDS.128"].requests == 100
