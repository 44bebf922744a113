"""Both drives of the SM model, and its functions interpreted, agree cycle for cycle: at random, and on the ladder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sm_builder import EXIT, GPU, HALVES, program

from gemmsim.api import count
from gemmsim.gpu.load import load_gpu
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Control, Instruction, Operand, OperandKind
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.native.records import fields_of
from gemmsim.sm import state as state_module
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.native_drive import run, run_interpreted
from gemmsim.sm.schedule import TimingOptions, schedule
from gemmsim.sm.simpy_drive import SimpyDrive
from gemmsim.sm.spec import Conditions, Rates, Spec
from gemmsim.sm.state import State
from gemmsim.sm.streams import RecordCycles, WarpStream
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.totals import Totals
from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.instruction import Kind

NARROW = replace(
    HALVES,
    name="narrow",
    mio=replace(
        GPU.mio, queue_entries=3, shared_entries=2, issue_to_address_cycles=6.0, shared_load_interval_cycles=2.0
    ),
    barrier=replace(
        GPU.barrier,
        arrival_cycles=2.0,
        release_cycles=12.5,
        flush_cycles=4.0,
        flush_store_cycles=0.29,
        flush_most_store_cycles=2.0,
    ),
    l1=replace(
        GPU.l1,
        fill_bytes_per_cycle=580.0,
        tagged_request_cycles=0.3,
        store_bytes_per_cycle=32.0,
        partial_line_cycles=1.5,
    ),
    fetch=replace(
        GPU.fetch,
        near_line_cycles=16.6,
        far_line_cycles=45.0,
        first_level_bytes=256,
        second_level_bytes=512,
        first_level_ways=1,
        second_level_ways=2,
    ),
)
COPY_GROUP = Operand(OperandKind.SPECIAL, name="SB0")
PLAIN = ["FFMA", "IMAD.WIDE", "LOP3", "UIADD3", "MUFU", "NOP", "HFMA2.MMA"]
ASYNCHRONOUS = ["SYNCS.ARRIVE", "SYNCS.PHASECHK", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMACMDFLUSH"]
GATES = 3
MEMORY = ["LDG", "LDG.128", "LDS", "LDS.64", "STS", "STG", "LDGSTS", "SHFL", "LDSM.4"]


@st.composite
def instructions(draw: st.DrawFn) -> Instruction:
    name = draw(st.sampled_from([*PLAIN, *MEMORY, *MEMORY, *ASYNCHRONOUS, "BAR", "DEPBAR", "LDGDEPBAR"]))
    opcode, *modifiers = name.split(".")
    boards = st.one_of(st.none(), st.integers(0, 5))
    write, read = (draw(boards), draw(boards)) if opcode not in ("BAR", "DEPBAR", "NOP") else (None, None)
    if opcode == "LDGDEPBAR":
        write, read = 0, None
    wait = draw(st.sampled_from([0, 0, 0, 1, 2, 6, 63]))
    control = Control(draw(st.integers(0, 6)), draw(st.booleans()), write, read, wait, draw(st.integers(0, 7)))
    registers = st.integers(0, 9)
    operands = tuple(Operand(OperandKind.REGISTER, index=draw(registers)) for _ in range(4))
    if opcode == "UIADD3":
        operands = tuple(Operand(OperandKind.UNIFORM_REGISTER, index=draw(registers)) for _ in range(3))
    if opcode == "BAR":
        operands = (Operand(OperandKind.IMMEDIATE, value=draw(st.integers(0, 2))),)
    if opcode == "DEPBAR":
        operands = (COPY_GROUP, Operand(OperandKind.IMMEDIATE, value=draw(st.integers(0, 2))))
    return Instruction(0, opcode, tuple(modifiers), operands, None, control, (), name, 0)


def costs(draw: st.DrawFn, accesses: int) -> list[RecordCycles]:
    few = st.sampled_from([0, 0, 1, 2, 8])
    line = st.integers(0, 3)
    flight = st.integers(0, 1)
    return [
        RecordCycles(draw(few), draw(few), draw(few), draw(few), draw(flight), draw(line), draw(few))
        for _ in range(accesses)
    ]


def syncs(draw: st.DrawFn, names: list[str]) -> list[SyncFields]:
    """What each of these instructions does. Each stream has something that completes each gate, so that all exist."""
    found = [SyncFields(gate, 1) for gate in range(GATES)]
    few, moved = st.integers(0, GATES - 1), st.sampled_from([0, 16, 4096, 20000])
    for name in names:
        completes = name in ("SYNCS.ARRIVE", "UTMALDG")
        gate = -1 if name in ("UTMASTG", "UTMAREDG") else draw(few) if completes else draw(st.integers(-1, GATES - 1))
        more = draw(st.integers(0, 1)) if name != "SYNCS.PHASECHK" else 0
        rest = (draw(moved), draw(few) * 100, draw(few) * 100, draw(st.integers(0, 1)))
        found += [SyncFields(gate, int(completes), n, *rest) for n in range(more, -1, -1)]
    return found


@st.composite
def launches(draw: st.DrawFn):
    arrival = Instruction(0, "SYNCS", ("ARRIVE",), (), None, Control(1, False, None, None, 0, 0), (), "SYNCS.ARRIVE", 0)
    code = program(
        *[arrival] * GATES,
        *draw(st.lists(instructions(), min_size=1, max_size=40)),
        Instruction(0, "EXIT", (), (), None, Control(1, False, None, None, 0, 0), (), "EXIT", 0),
    )
    gpu = draw(st.sampled_from([GPU, NARROW]))
    table = instruction_table(code, gpu, True, draw(st.booleans()))
    last = len(table) - 1
    begin = draw(st.integers(GATES, last - 1))
    passes = draw(st.integers(0, 6))
    pcs = [*range(last), *(list(range(begin, last)) * passes), last]  # a loop from `begin` on
    warps = draw(st.integers(1, 9))
    accesses = sum(table.rows["kind"][pc] == Kind.MEMORY for pc in pcs)
    names = [code.instructions[pc].text for pc in pcs[GATES:] if table.rows["syncs"][pc]]
    streams = [WarpStream.of(pcs, costs(draw, accesses), syncs(draw, names)) for _ in range(min(warps, 3))]
    turned = draw(st.integers(0, 1))  # whether blocks differ
    count = draw(st.integers(1, 5))
    blocks = [[streams[(w + turned * b) % len(streams)] for w in range(warps)] for b in range(count)]
    resident = draw(st.integers(1, 4))
    marks = sorted(draw(st.sets(st.integers(1, len(blocks) * warps * len(pcs)), max_size=2)))
    return gpu, table, blocks, resident, marks, draw(st.booleans())


def same(one: Totals, other: Totals) -> None:
    assert one.cycles == other.cycles
    assert np.array_equal(one.issued, other.issued)
    assert np.array_equal(one.stall_cycles, other.stall_cycles)
    assert one.busy_cycles == other.busy_cycles
    assert np.array_equal(one.block_ends, other.block_ends)


def run_simpy(state: State) -> None:
    SimpyDrive(state).run()


DRIVES = {"native": run, "simpy": run_simpy, "interpreted": run_interpreted}


@settings(max_examples=150, deadline=None)
@given(launches())
def test_random_programs(launch):
    gpu, table, blocks, resident, marks, oldest_block_first = launch
    rates = Rates.share(replace(gpu, l2=replace(gpu.l2, read_bytes_per_s=4e11)), 10, 1e9)
    instructions = sum(len(stream.pcs) for block in blocks for stream in block)
    found = {}
    for name, drive in DRIVES.items():
        if name == "interpreted" and instructions > 150:
            continue  # which would take seconds
        state = State(table, gpu, rates, blocks, resident, marks=marks, conditions=Conditions(oldest_block_first))
        spec, rows = state.bytes_of_spec(), table.rows.tobytes()
        drive(state)
        assert (state.bytes_of_spec(), table.rows.tobytes()) == (spec, rows), "units never write what is immutable"
        found[name] = state.totals, state.snapshots
        assert len(state.snapshots) == len(marks)
    totals, snapshots = found.pop("native")
    for others, other_snapshots in found.values():
        same(totals, others)
        for one, other in zip(snapshots, other_snapshots, strict=True):
            same(one, other)


def test_costs_have_the_fields_of_their_record():
    assert tuple(fields_of(AccessCost)) == RecordCycles._fields
    assert set(fields_of(Spec)) >= {"near_line_cycles", "release_cycles"}


def timings(case: LadderCase, gpu: GpuSpec):
    request = ladder_launch(case, gpu)
    counted = count(request)
    return [
        schedule(
            counted.program,
            request.launch,
            counted.execution.trace,
            counted.traffic.cost,
            gpu,
            counted.occupancy.blocks_per_sm,
            TimingOptions(max_instructions=30_000, engine=engine),
        )
        for engine in ("native", "simpy")
    ]


# Two rungs on both GPUs, the others by default on one of them
ON_BOTH, ON_H200 = ("warptiled", "async_pipelined"), ("tiled", "warp_shuffle", "split_k")
LADDER = [
    pytest.param(
        kernel, gpu, marks=() if kernel in ON_BOTH or (gpu == "h200") == (kernel in ON_H200) else pytest.mark.slow
    )
    for kernel in ("naive", *ON_H200, *ON_BOTH)
    for gpu in ("h200", "rtx4090")
]


@pytest.mark.parametrize(("kernel", "gpu"), LADDER)
def test_ladder(kernel, gpu):
    fast, slow = timings(LadderCase(kernel, 256, 256, 256), load_gpu(gpu))
    assert fast.simulated_instructions == slow.simulated_instructions > 10_000
    assert (fast.cycles, fast.pipe_utilisation_pct) == (slow.cycles, slow.pipe_utilisation_pct)
    assert np.array_equal(fast.stall_samples, slow.stall_samples)


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
def test_lists_without_room_grow(drive, monkeypatch):
    """200 loads that a DEPBAR counts are outstanding; at first there is room for 64 beyond the reserve."""
    load = Instruction(0, "LDG", ("E",), (), None, Control(1, False, 0, None, 0, 0), (), "LDG", 0)
    counts = (COPY_GROUP, Operand(OperandKind.IMMEDIATE, value=1))
    fence = Instruction(0, "DEPBAR", ("LE",), counts, None, Control(1, False, None, None, 0, 0), (), "DEPBAR", 0)
    table = instruction_table(program(*[load] * 200, fence, EXIT), GPU)
    stream = WarpStream.of(list(range(202)), [RecordCycles(1, 1, 1, 0)] * 200)
    totals, sizes = [], []
    for entries in (1024, 1):
        monkeypatch.setattr(state_module, "FIRST_ENTRIES", entries)
        state = State(table, GPU, Rates.share(GPU, 1, 1e9), [[stream] * 2], 1)
        before = state.sm.room.entries
        drive(state)
        totals.append(state.totals)
        sizes.append((before, state.sm.room.entries))
    assert sizes == [(1024, 1024), (128, 512)]
    same(*totals)


@pytest.mark.parametrize("drive", DRIVES.values(), ids=DRIVES)
def test_of_blocks_that_leave_in_one_cycle_the_first_to_end_makes_room_first(drive):
    """Blocks 0 and 1, a warp each on sub-partitions 0 and 1, end in one cycle: the third takes the first's place."""
    table = instruction_table(program(EXIT), GPU)
    state = State(table, GPU, Rates.share(GPU, 1, 1e9), [[WarpStream.of([0], [])]] * 3, 2)
    drive(state)
    assert [state.sm.blocks[slot].order for slot in (0, 1)] == [2, 1]
