"""Which block goes first, what barriers cost and how loads share the data stage: measured on an H200, replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sm_builder import EXIT, ins, issues, program, simulate
from trace_builder import Lanes, launch, warp_trace
from trace_builder import program as traced

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.program import Instruction, Operand, OperandKind
from gemmsim.memory.serve import serve
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.totals import Totals

H200 = load_gpu("h200")
CLOCKED = replace(H200, clock=replace(H200.clock, sm_load_hz=1.98e9))  # as it ran when the loops were measured
ONE = RecordCycles(1, 0, 0, 0)
BRANCH = ins("BRA", 5)


def runs(name: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))["runs"]
    return found


def replay(
    body: list[Instruction], times: int, warps: int, blocks: int, load: RecordCycles = ONE, sms: int = 1
) -> Totals:
    """Blocks that are all resident repeat `body`; every shared access takes a wavefront, an LDG costs `load`."""
    code = program(*body, *[ins("FFMA", 1)] * 2, EXIT)
    pcs = [*list(range(len(body))) * times, *range(len(body), len(body) + 3)]
    costs = {pc: load if i.opcode == "LDG" else ONE for pc, i in enumerate(code.instructions)}
    return simulate(
        code, warps, blocks=blocks, resident=blocks, costs=costs, gpu=CLOCKED, active_sms=sms, pcs=pcs, warm_code=True
    )


def cycles_a_pass(body: list[Instruction], warps: int, blocks: int, **options: Any) -> float:
    return (replay(body, 10, warps, blocks, **options).cycles - replay(body, 2, warps, blocks, **options).cycles) / 8


POLICY_BODIES = {
    "64 FFMA, a branch": [*[ins("FFMA", 1)] * 64, BRANCH],
    "dependent FADD": [*[ins("FADD", 4)] * 8, BRANCH],
    "64 LOP3, a branch": [*[ins("LOP3", 2)] * 64, BRANCH],
}


def test_blocks_end_when_they_do_on_the_gpu() -> None:
    errors = []
    for name, warps, blocks, measured in runs("h200_policy.json"):
        if name in POLICY_BODIES:
            ends = replay(POLICY_BODIES[name], 60, warps, blocks).block_ends
            errors.append(np.abs(ends / ends.max() - measured).max())
    assert len(errors) == 15
    assert np.mean(errors) < 0.065
    assert sorted(errors)[-5] < 0.04  # blocks of dependent chains, and two of 16 warps of FFMA, share otherwise there


@pytest.mark.parametrize("name", ["64 LOP3, a branch", "64 FFMA, a branch"])
@pytest.mark.parametrize(("warps", "blocks"), [(8, 4), (4, 4)])
def test_it_is_the_oldest_block_that_ends_first(name: str, warps: int, blocks: int) -> None:
    body = POLICY_BODIES[name]
    code = program(*body, *[ins("FFMA", 1)] * 2, EXIT)
    pcs = [*list(range(len(body))) * 20, *range(len(body), len(body) + 3)]
    seen = issues(code, warps=warps, blocks=blocks, resident=blocks, gpu=H200, pcs=pcs)
    last = [max(seen.cycles(warps * block + w)[-1] for w in range(warps)) for block in range(blocks)]
    assert last == sorted(last)
    measured = next(ends for *of, ends in runs("h200_policy.json") if of == [name, warps, blocks])
    assert np.array(last) / last[-1] == pytest.approx(measured, abs=0.12)


def barrier_body(opcode: str, accesses: int, barrier: int) -> list[Instruction]:
    """Four times the accesses and a barrier, a branch: stall counts and scoreboards as the compiler set them."""
    load = opcode == "LDS"
    access = [ins(opcode, 4, write=0 if load else None, read=None if load else 0)] * (accesses - 1)
    group = [*access, ins(opcode, 1, write=0 if load else None, read=None if load else 0)]
    if barrier:
        group.append(ins("BAR.SYNC", 6))
    return [*group * 4, BRANCH]


BARRIERS = runs("h200_barriers.json")


def barrier_errors(opcode: str, full: bool) -> np.ndarray:
    """Of runs with a barrier whose warps keep the data stage busy, or do not."""
    errors = []
    for op, accesses, barrier, warps, blocks, cycles, _ in BARRIERS:
        busy = accesses * warps * blocks >= 64
        if op == opcode and barrier and busy == full and warps * blocks <= 32:
            errors.append(cycles_a_pass(barrier_body(op, accesses, 1), warps, blocks) / 4 / cycles - 1)
    assert len(errors) > 20
    return np.array(errors)


@pytest.mark.parametrize(("opcode", "mean", "worst"), [("LDS", 0.03, 0.12), ("STS", 0.045, 0.19)])
def test_a_barrier_flushes_the_data_stage(opcode: str, mean: float, worst: float) -> None:
    errors = np.abs(barrier_errors(opcode, True))
    assert errors.mean() < mean
    assert errors.max() < worst


def test_barriers_with_an_idle_data_stage() -> None:
    for opcode in ("LDS", "STS"):
        assert np.abs(barrier_errors(opcode, False)).mean() < 0.1


def test_a_flush_is_counted_as_two_wavefronts() -> None:
    """What the model's 4 cycles are to Nsight Compute, where blocks are too big to share a flush."""
    excess = [
        counted - accesses * warps for _, accesses, barrier, warps, _, _, counted in BARRIERS if barrier and warps >= 8
    ]
    assert np.mean(excess) == pytest.approx(2, abs=0.1)
    none = [counted - accesses * warps for _, accesses, barrier, warps, _, _, counted in BARRIERS if not barrier]
    assert np.abs(none).max() < 0.2


def data_stage_cycles(run: list[Any]) -> tuple[float, float]:
    loads, stores, ldg, misses, lines, measured = run
    load = RecordCycles(lines, lines, max(4, lines) if misses else 0, 0)
    group = [
        *[ins("LDG.E", 1, write=1)] * ldg,
        *[ins("LDS", 1, write=0)] * loads,
        *[ins("STS", 1, read=2)] * stores,
    ]
    body = [*group * 4, ins("FADD", 4, wait=2), BRANCH]
    return cycles_a_pass(body, 32, 1, load=load, sms=1) / 4 / 32, measured


@pytest.mark.parametrize("run", [run for run in runs("h200_data_stage.json") if run[0] >= 4])
def test_global_and_shared_accesses_share_the_data_stage(run: list[Any]) -> None:
    """Wavefronts add up; what misses adds next to nothing beside the hits, as a fill is quick."""
    replayed, measured = data_stage_cycles(run)
    assert replayed == pytest.approx(measured, rel=0.035 if not run[3] else 0.14 if run[0] == 4 else 0.07)


def store_pattern(words: int, stride: int) -> tuple[RecordCycles, str]:
    """What `serve` makes of a store of 32 lanes, `words` words every `stride` words; the instruction."""
    mnemonic = {1: "STG.E", 2: "STG.E.64", 4: "STG.E.128"}[words]
    lanes: Lanes = [4 * stride * lane for lane in range(32)]
    cost = serve(traced("LDG.E", mnemonic), launch(), warp_trace(2, {0: [[(1, lanes)]]}), H200, 65536, 1).cost
    columns = (cost.wavefronts, cost.tag_cycles, cost.l2_sectors, cost.dram_sectors, cost.dram_shared)
    return RecordCycles(*(int(column[0]) for column in columns), partial_lines=int(cost.partial_lines[0])), mnemonic


@pytest.mark.parametrize("run", runs("h200_stores.json"), ids=str)
def test_stores_leave_the_sm_a_sector_a_cycle(run: list[Any]) -> None:
    """By hand: a full line 4 cycles, one written in part a cycle more than it has sectors. The address unit takes four
    cycles a store of each sub-partition, one an SM. 128 bytes a store side by side: 4.7 to 7.0 there, not explained."""
    words, stride, warps, measured = run
    cost, mnemonic = store_pattern(words, stride)
    lines = min(32, stride)  # of 128 bytes: 32 lanes of 4 stride bytes
    sectors = min(32, 4 * stride)
    partial = words < min(stride, 8)
    assert (cost.l2_sectors, cost.partial_lines) == (sectors, lines if partial else 0)

    def cycles(stores: int) -> float:
        code = program(*[ins(mnemonic, 6, read=0)] * stores, EXIT)
        return simulate(code, warps, cost=cost, gpu=CLOCKED).cycles

    predicted = (cycles(40) - cycles(20)) / (20 * warps)
    assert predicted == pytest.approx(sectors + (lines if partial else 0), rel=0.02)
    assert predicted == pytest.approx(measured, rel=0.02 if (words, stride) != (1, 1) else 0.45)


WRITES = runs("h200_write_ports.json")


def slots_lost(instead: str, period: int, results: str, warps: int) -> float:
    """By one instruction of a period, in cycles; the loop itself is taken off."""
    registers = [32, 34, 36, 38, 40, 42, 44, 46] if results == "even" else list(range(32, 40))

    def register(index: int) -> Operand:
        return Operand(OperandKind.REGISTER, index=index)

    def loop(instead: str) -> float:
        ffma = [ins("FFMA", 1, operands=(register(registers[n % 8]),)) for n in range(period - 1)]
        last = ins(instead or "FFMA", 1, operands=(register(48 if instead else registers[(period - 1) % 8]),))
        body = [*[*ffma, last] * (384 // period), ins("UIADD3", 6, hint=True), ins("ISETP", 3), BRANCH]
        code = program(*body, EXIT)

        def cycles(passes: int) -> float:
            pcs, idle = [*list(range(len(body))) * passes, len(body)], [len(body)]
            streams = [pcs if w % 4 == 0 else idle for w in range(4 * warps)]
            return simulate(code, streams=streams, cost=ONE, gpu=CLOCKED).cycles

        return (cycles(12) - cycles(2)) / (384 * 10 * warps)

    return (loop(instead) - loop("")) * period


def test_what_loads_return_waits_for_the_write_ports() -> None:
    """Issue slots that a load takes from FFMAs beside its own. Two kinds of loops are not explained: where all results
    are even, an LDSM.x4 in 8 or 16 takes 2 and not 1, and one even register in 32 takes 3 and not none."""
    alone = {warps: cycles for instead, _, _, warps, cycles in WRITES if not instead}
    off = {}
    for instead, period, results, warps, cycles in WRITES:
        if instead:
            predicted, measured = slots_lost(instead, period, results, warps), (cycles - alone[warps]) * period
            off[instead, period, results, warps] = predicted - measured
    known = {key for key in off if key[2] == "even" and key[0].endswith(".4") == (key[1] < 32)} - {
        key for key in off if key[0] == "LDS.128" or (key[1] < 32 and not key[0].endswith(".4"))
    }
    assert len(off) == 120
    assert len(known) == 20
    assert max(abs(off[key]) for key in off if key not in known) < 0.5
    assert sum(abs(off[key]) < 0.3 for key in off if key not in known) > 90


def test_loads_of_128_bits_take_a_slot_more() -> None:
    assert slots_lost("LDS.128", 8, "both", 4) == pytest.approx(1, abs=0.1)
    assert slots_lost("LDS.128", 32, "both", 4) == pytest.approx(2.75, abs=0.3)
    assert slots_lost("LDS.64", 8, "both", 4) == slots_lost("LDS", 8, "both", 4) == pytest.approx(0, abs=0.05)
