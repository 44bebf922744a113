"""Bottleneck and advice: each rule speaks where it should, with numbers worked out here, and is silent elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_factory import CODE, ROWS, evidence, traffic

from gemmsim.analysis.code.instruction_mix import by_class
from gemmsim.analysis.code.source_lines import by_line
from gemmsim.analysis.findings import Advice
from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, L2, utilisations
from gemmsim.analysis.verdict import advice
from gemmsim.analysis.verdict.bottleneck import find_bottleneck
from gemmsim.analysis.verdict.spills import LocalTraffic, local_traffic, spills
from gemmsim.isa.opcodes import MixClass
from gemmsim.memory.types import InstructionTraffic

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
        ({"duration_us": 5.1}, "launch", "us (51"),
        ({"duration_us": 5.3}, "latency", "short_scoreboard"),  # 49 %
        ({"issue_active_pct": 83.0}, "issue", "issue slots: 83% of peak"),
        ({"issue_active_pct": 60.0}, "issue", "issue slots: 60% of peak"),
        ({"issue_active_pct": 59.9}, "latency", "no unit is above 60%"),
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
    assert idle.evidence == "8 blocks on 108 SMs: 7% have work"
    one = advice.idle_sms(evidence(grid=(1, 1, 1)))
    assert one is not None and one.evidence == "1 block on 108 SMs: 1% have work"
    assert "107 for 108 SMs, so 1 SM stands idle" in find_bottleneck(evidence(grid=(107, 1, 1))).sentence
    assert advice.idle_sms(evidence()) is None


@pytest.mark.parametrize(
    ("blocks", "rules", "kind"),
    [
        (54, ["idle_sms", "bank_conflicts"], "small_grid"),
        (54, ["bank_conflicts", "idle_sms"], "pipe"),
        (107, [], "small_grid"),
        (108, [], "pipe"),
    ],
)
def test_the_verdict_is_the_first_advice(blocks: int, rules: list[str], kind: str) -> None:
    """Idle SMs are the verdict where they are what costs most; else the unit that is busy."""
    given = [Advice(rule, "", "", "") for rule in rules]
    found = find_bottleneck(evidence(grid=(blocks, 1, 1), pipe_utilisation_pct={"lsu": 90.0}), given)
    assert found.kind == kind
    assert (kind == "small_grid") == ("lsu pipe of the others: 90% of peak" in found.sentence)


@pytest.mark.parametrize(("blocks", "over"), [(54, "on the 54 of 108 SMs with blocks"), (216, "on 108 SMs")])
def test_the_verdict_says_over_which_sms_a_share_was_taken(blocks: int, over: str) -> None:
    given = [Advice("bank_conflicts", "", "", "")]
    busy = evidence(grid=(blocks, 1, 1), pipe_utilisation_pct={"lsu": 90.0})
    assert find_bottleneck(busy, given).sentence.endswith(f"cycles {over})")


def test_the_data_stages_of_sms_with_blocks_count() -> None:
    """4210 wavefronts of 8 blocks on 8 SMs, in 14,100 cycles."""
    uses = {use.unit: use.share_pct for use in utilisations(evidence(grid=(8, 1, 1)))}
    assert uses[DATA_STAGE] == pytest.approx(100 * 4210 / (8 * 14_100))


def test_uncoalesced_line() -> None:
    """3200 sectors for 100 requests where 400 do; with the stores' 40: 3240 fall to 440."""
    said = advice.uncoalesced_access(evidence())
    assert said is not None
    assert said.title == "uncoalesced load on line 2: a = A[row, k]"
    assert "32.0 sectors a request where 4.0" in said.evidence
    assert "from 3,240 to 440 (7.4x fewer)" in said.gain
    assert advice.uncoalesced_access(evidence(rows=(PACKED,))) is None


def test_contended_atomics() -> None:
    """The kernel takes 10 us. Of 216 blocks each adds 5 times; one a block is a fifth of that. 216 get no advice."""

    def rows(requests: float, us: float) -> tuple[InstructionTraffic, ...]:
        return (*ROWS, traffic(5, "global", "red", 4, requests=requests, sectors=3 * requests, atomic_us=us))

    said = advice.contended_atomics(evidence(rows=rows(1080.0, 9.0)))
    assert said is not None
    assert "1,080 requests touch sectors 3,240 times" in said.evidence and "for 9.0 us" in said.evidence
    assert said.cures == ((5, 0.2),)
    assert advice.contended_atomics(evidence(rows=rows(216.0, 9.0))) is None
    assert advice.contended_atomics(evidence(rows=rows(1080.0, 5.9))) is None
    found = find_bottleneck(evidence(rows=rows(1080.0, 9.0)))
    assert (found.kind, found.share_pct) == ("atomics", pytest.approx(90))
    assert found.sentence == "L2 atomics: 90% of peak (the busiest slice for 9.0 us in 14,100 cycles)"


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
    kinds = by_class(evidence())
    assert kinds == {MixClass.SHARED: 500, MixClass.FMA: 400, MixClass.GLOBAL: 110, MixClass.INTEGER: 50}
    said = advice.fma_density(evidence(issue_active_pct=50.0))
    assert said is not None and said.evidence.startswith("38% ")  # 400 of 1060
    assert advice.fma_density(evidence(issue_active_pct=49.0)) is None  # not the instructions take the time
    mostly = (("FFMA", 3, 90.0), ("BRA", 3, 10.0))
    assert advice.fma_density(evidence(code=mostly, rows=(), issue_active_pct=50.0)) is None


def test_double_arithmetic() -> None:
    """10 of 1000 are 1 %. What was double before is wanted; what is widened and not computed with costs little."""
    rest = ("FFMA", 3, 980.0)
    said = advice.double_arithmetic(evidence(code=(("F2F.F64.F32", 3, 10.0), ("DADD", 3, 10.0), rest), rows=()))
    assert said is not None and said.evidence.startswith("10 warp instructions")
    for code in (
        (("F2F.F64.F32", 3, 11.0), ("DADD", 3, 9.0), rest),
        (("F2F.F32.F64", 3, 10.0), ("DADD", 3, 10.0), rest),
        (("F2F.F64.F32", 3, 0.0), ("DADD", 3, 20.0), rest),
        (("F2F.F64.F32", 3, 20.0), rest),
    ):
        assert advice.double_arithmetic(evidence(code=code, rows=())) is None


def test_integer_arithmetic() -> None:
    code = (("IADD3", 3, 60.0), ("FFMA", 3, 20.0), ("LDG", 2, 20.0))
    assert advice.integer_arithmetic(evidence(code=code, rows=(), issue_active_pct=49.0)) is None
    said = advice.integer_arithmetic(evidence(code=code, rows=(), issue_active_pct=50.0))
    assert said is not None and said.evidence == "60% of the warp instructions are integer, 3.0 for each multiply-add"
    assert advice.integer_arithmetic(evidence(issue_active_pct=50.0)) is None


@pytest.mark.parametrize(("waves", "part"), [(1.5, 0.75), (1.0, None), (1.9, None), (0.5, None), (20.1, None)])
def test_tail_wave(waves: float, part: float | None) -> None:
    """1.5 waves take the time of two: a quarter of it is idle."""
    said = advice.tail_wave(evidence(waves=waves))
    assert (None if said is None else said.at_best) == part
    busy = advice.tail_wave(evidence(waves=1.5, pipe_utilisation_pct={"lsu": 90.0}))  # 216 blocks on 108 SMs: even
    assert busy is not None and busy.at_best == 1


def test_low_occupancy() -> None:
    given = evidence()
    few = {"theoretical_pct": 25.0, "warps_per_sm": 16, "limiters": ("registers",), "blocks_per_sm": 1}
    low = replace(given, occupancy=replace(given.occupancy, **few, registers_cliff=8, shared_cliff_bytes=None))
    said = advice.low_occupancy(low)
    assert said is not None and said.title == "occupancy is limited by registers"
    assert said.evidence == "16 of 64 warps (25%)"
    assert said.change == "one more block an SM takes 8 registers fewer a thread"
    assert advice.low_occupancy(given) is None
    busy = replace(low, timing=replace(low.timing, pipe_utilisation_pct={"tensor": 60.0}))
    assert advice.low_occupancy(busy) is None  # more warps would wait for the same pipe
    for blocks in (1, 108):  # all of them are resident already, one an SM: there is no other to take the room
        assert advice.low_occupancy(replace(low, grid=(blocks, 1, 1))) is None
    assert advice.low_occupancy(replace(low, grid=(109, 1, 1))) is not None


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


LOCAL = (
    traffic(0, "global", "ld", 4, requests=100, sectors=400, l2_sectors=100),
    traffic(1, "local", "ld", 4, requests=200, sectors=800, l2_sectors=100),
    traffic(2, "local", "st", 4, requests=100, sectors=400, l2_sectors=200),
)
SPILLING = (("LDG.E", 2, 100.0), ("LDL", 3, 200.0), ("STL", 3, 100.0), ("FFMA", 3, 600.0))


def test_spills_are_counted_by_instruction_sector_and_byte() -> None:
    """300 of 1000 instructions, 1200 of 1600 sectors, 300 of 400 sectors to L2; 32 bytes each."""
    found = local_traffic(evidence(SPILLING, LOCAL))
    assert found == LocalTraffic(0, 200, 100, 1200, 300, 0.3, 0.75, 0.75, 0)
    said = spills(evidence(SPILLING, LOCAL))
    assert said is not None
    assert "200 loads and 100 stores of local memory are 30% of the warp instructions" in said.evidence
    assert "1,200 sectors (0.0 MB) are 75% of those asked of L1, and 300 (75%) of those sent to L2" in said.evidence
    assert said.gain.startswith("without them 1,000 warp instructions would be 700")


def test_no_word_of_spills_where_there_are_none_or_few() -> None:
    assert local_traffic(evidence()) is None and spills(evidence()) is None
    few = (LOCAL[0], traffic(1, "local", "ld", 4, requests=1, sectors=4, l2_sectors=1))
    assert spills(evidence((("LDG.E", 2, 100.0), ("LDL", 3, 1.0)), few)) is None


@pytest.mark.parametrize(("registers", "words"), [(255, "no register left"), (128, "register limit, or an array")])
def test_the_cause_of_spills_is_told_from_the_registers(registers: int, words: str) -> None:
    given = evidence(SPILLING, LOCAL)
    said = spills(replace(given, program=replace(given.program, registers=registers, local_bytes=2000)))
    assert (
        said is not None and said.title.startswith("2,000 bytes a thread lie in local memory") and words in said.title
    )
