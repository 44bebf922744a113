"""Programs, traces and GPUs by hand, for tests of the SM model: a few words an instruction, round numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmsim.gpu.asynchronous import Mbarrier, Tma
from gemmsim.gpu.load import load_gpu
from gemmsim.gpu.spec import Barrier, GpuSpec, Mio, Pipe, Warpgroup
from gemmsim.isa.program import Control, Instruction, Operand, OperandKind, Program
from gemmsim.memory.types import RecordCost
from gemmsim.native.records import AnyRecord, address_of, allocate
from gemmsim.sm.drive import drive
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.observer import Observer
from gemmsim.sm.pipes import memory_opcode
from gemmsim.sm.schedule import TimingOptions, schedule
from gemmsim.sm.spec import Conditions, Rates
from gemmsim.sm.state import State
from gemmsim.sm.streams import NO_RECORD, RecordCycles, WarpStream
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.totals import Totals
from gemmsim.sm.types import Timing
from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.instruction import Instruction as Access
from gemmsim.sm.units.instruction import Kind
from gemmsim.sm.units.memory_path import request
from gemmsim.trace.types import Launch, Patterns, WarpTrace

START = 1  # cycle of the first issue: block_start_cycles of GPU

_A100 = load_gpu("a100-80gb")


def pipe(name: str, issue_interval_cycles: float, latency_cycles: float) -> Pipe:
    """An A100's pipe with other times."""
    times = {"issue_interval_cycles": issue_interval_cycles, "latency_cycles": latency_cycles}
    return replace(_A100.pipes[name], **times)


# Every field that the SM model reads, in round numbers; the rest is an A100's.
GPU = replace(
    _A100,
    name="test",
    sm=replace(_A100.sm, count=10, sub_partitions=4, max_warps=64),
    clock=replace(_A100.clock, sm_load_hz=1e9, sm_tensor_load_hz=1e9),
    shared=replace(
        _A100.shared,
        load_latency_cycles=(24.0, 24.0, 26.0),
        wavefronts_per_cycle=1.0,
        request_interval_cycles=1.0,
        wavefront_latency_cycles=2.0,
        group_latency_cycles=1.0,
        remote_load_latency_cycles=90.0,
    ),
    l1=replace(
        _A100.l1,
        sector_bytes=32,
        hit_latency_cycles=(32.0, 34.0, 38.0),
        miss_bytes_per_cycle=64.0,
        fill_bytes_per_cycle=128.0,
        tagged_request_cycles=0.0,
        store_bytes_per_cycle=64.0,
        partial_line_cycles=0.0,
        copy_cycles=(0, 1, 3),
        zeros_cycles=0.0,
    ),
    l2=replace(_A100.l2, partitions=1, read_bytes_per_s=1e15, hit_latency_cycles=200.0, far_latency_cycles=200.0),
    dram=replace(
        _A100.dram,
        peak_bytes_per_s=1e15,
        achievable_fraction=1.0,
        latency_cycles=500.0,
        latency_spread_cycles=0.0,
        shared_sooner_cycles=0.0,
        queue_latency_cycles=0.0,
        turnaround=0.0,
    ),
    pipes={
        "fmaheavy": pipe("fmaheavy", 1, 4),
        "alu": pipe("alu", 2, 4),
        "xu": pipe("xu", 8, 20),
        "uniform": pipe("uniform", 1, 6),
        "lsu": pipe("lsu", 4, 24),
        "adu": pipe("adu", 1, 20),
        "cbu": pipe("cbu", 1, 10),
    },
    warpgroup=Warpgroup(2, 128.0, 2.0, 5.0, 10.0, 3.0, 1.0),
    mbarrier=Mbarrier(10.0, 100.0, 20.0, 2.0),
    tma=Tma(64.0, 16.0, 32.0, 16.0, 300.0, 1.0, 0.0, 1.0, 1.0, 40.0, 2, 0, 0, 0),
    mio=Mio(5, 0, 0, 0, 7, 4),
    barrier=Barrier(0, 20, 0, 0, 0, 3, 2, 40),
    fetch=replace(_A100.fetch, near_line_cycles=0.0, far_line_cycles=0.0),
    launch=replace(
        _A100.launch,
        overhead_us=2.0,
        block_start_cycles=1.0,
        block_interval_cycles=0.0,
        dispatch_interval_us=0.0,
        together_share=0.0,
    ),
)
HALVES = replace(GPU, pipes=GPU.pipes | {name: pipe("fmaheavy", 2, 4) for name in ("fmaheavy", "fmalite")})


def ins(
    mnemonic: str,
    stall: int = 1,
    *,
    write: int | None = None,
    read: int | None = None,
    wait: int = 0,
    hint: bool = False,
    operands: tuple[Operand, ...] = (),
) -> Instruction:
    """`wait` is a mask."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode == "BAR" and not operands:
        operands = (Operand(OperandKind.IMMEDIATE, value=0),)
    return Instruction(
        0, opcode, tuple(modifiers), operands, None, Control(stall, hint, write, read, wait, 0), (), mnemonic, 0
    )


def program(*instructions: Instruction, arch: str = "sm_80") -> Program:
    placed = tuple(replace(instruction, offset=16 * i) for i, instruction in enumerate(instructions))
    return Program("test", "test", arch, "c", placed, (), 32, 0, 0, 1, (), 0)


EXIT = ins("EXIT")


class Issues(Observer):
    """An observer that remembers (cycle, warp, instruction)."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []

    def on_issue(self, cycle: int, sub_partition: int, warp: int, instruction: int) -> None:
        assert sub_partition == warp % 4
        self.seen.append((cycle, warp, instruction))

    def cycles(self, warp: int) -> list[int]:
        return [cycle for cycle, w, _ in self.seen if w == warp]


def simulate(
    code: Program,
    warps: int = 1,
    *,
    blocks: int = 1,
    resident: int = 1,
    cost: RecordCycles = RecordCycles(1, 0, 0, 0),  # noqa: B008
    costs: dict[int, RecordCycles] | None = None,
    gpu: GpuSpec = GPU,
    active_sms: int = 1,
    pcs: list[int] | None = None,
    streams: list[list[int]] | None = None,
    observer: Observer | None = None,
    oldest_block_first: bool = True,
    warm_code: bool = False,
    math_behind_barriers: bool = True,
    syncs: dict[int, list[SyncFields]] | None = None,
) -> Totals:
    """Every warp executes `pcs` (default: straight down), or each its own of `streams`.

    An access costs `cost`, or what `costs` says of its instruction. What an instruction does at mbarriers, or moves in
    bulk, is what `syncs` has for it.

    The native drive runs where nothing observes, else SimPy's.
    """
    pcs = list(range(len(code.instructions))) if pcs is None else pcs
    table = instruction_table(code, gpu, True, math_behind_barriers)
    kinds, of, rows = table.rows["kind"].tolist(), costs or {}, syncs or {}
    block = [
        WarpStream.of(
            stream,
            [of.get(pc, cost) for pc in stream if kinds[pc] == Kind.MEMORY],
            [row for pc in stream for row in rows.get(pc, [])],
        )
        for stream in streams or [pcs] * warps
    ]
    rates = Rates.share(gpu, active_sms, gpu.clock.sm_load_hz)
    watched = observer is not None
    conditions = Conditions(oldest_block_first, warm_code)
    state = State(table, gpu, rates, [block] * blocks, resident, conditions=conditions, watched=watched)
    drive(state, "simpy" if watched else "native", observer)
    return state.totals


def idle_sm(gpu: GpuSpec = GPU) -> State:
    """An SM on which nothing runs yet, whose units tests call one by one; accesses may be of fetches 1 to 7. The caller
    keeps the state alive."""
    code, costs = program(EXIT), [RecordCycles(1, 1, 1, 0, fetch=number) for number in range(1, 8)]
    return State(instruction_table(code, gpu), gpu, Rates.share(gpu, 1, 1e9), [[WarpStream.of([0], costs)]], 1)


def row(record: type[AnyRecord], **values: float) -> AnyRecord:
    """A record with these fields, all others 0. Its memory is never freed."""
    memory = allocate(record)
    for name, value in values.items():
        memory[name] = value
    _MEMORY.append(memory)
    return record(address_of(memory))


_MEMORY: list[np.ndarray] = []


class Path:
    """The memory path of an idle SM, as a warp of its first block uses it."""

    def __init__(self, gpu: GpuSpec = GPU) -> None:
        self._state = idle_sm(gpu)
        self.sm = self._state.sm

    def request(self, now: int, access: Access, cost: RecordCycles, part: int = 0) -> tuple[int, int, int]:
        """Cycles at which the queue entry is free, the sources are read, and the access is complete."""
        sm, warp = self.sm, self.sm.warps[0]
        request(sm, sm.sub_partitions[part], warp, access, row(AccessCost, **cost._asdict()), now)
        return warp.release, warp.sources_read, warp.done


def issues(code: Program, warps: int = 1, **options: object) -> Issues:
    seen = Issues()
    simulate(code, warps, observer=seen, **options)  # type: ignore[arg-type]
    return seen


def trace_of(code: Program, streams: list[list[int]], warps_per_block: int) -> WarpTrace:
    """A trace of len(streams) / warps_per_block blocks in which every memory instruction leaves a record."""
    recorded = [memory_opcode(i.opcode) is not None for i in code.instructions]
    records = [[pc for pc in stream if recorded[pc]] for stream in streams]
    count = len(streams) // warps_per_block
    none = np.zeros((0, 32), np.int64)
    n = sum(map(len, records))
    of_warps = np.array([np.bincount(stream, minlength=len(code.instructions)) for stream in streams])
    executed = of_warps.reshape(count, warps_per_block, -1).sum(axis=1)
    return WarpTrace(
        warps_per_block,
        np.arange(count),
        np.ones(count),
        executed,
        32 * executed,
        np.cumsum([0, *map(len, records)]),
        np.array([pc for record in records for pc in record], np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.uint64),
        np.cumsum([0, *map(len, streams)]),
        np.array([pc for stream in streams for pc in stream], np.int32),
        Patterns(none, np.zeros(0, np.uint32)),
    )


def cost_of(trace: WarpTrace, cost: RecordCycles) -> RecordCost:
    n = len(trace.record_pc)
    return RecordCost(*(np.full(n, value, np.uint16) for value in (*cost[:7], cost.partial_lines, cost.remote, 0, 0)))


def time_of(
    code: Program,
    streams: list[list[int]],
    warps_per_block: int,
    grid: int,
    resident: int,
    cost: RecordCycles = NO_RECORD,
    gpu: GpuSpec = GPU,
    budget: int = 120_000,
    oldest_block_first: bool = True,
) -> Timing:
    trace = trace_of(code, streams, warps_per_block)
    launch = Launch((grid, 1, 1), (32 * warps_per_block, 1, 1), ())
    options = TimingOptions(max_instructions=budget, oldest_block_first=oldest_block_first)
    return schedule(code, launch, trace, cost_of(trace, cost), gpu, resident, options)
