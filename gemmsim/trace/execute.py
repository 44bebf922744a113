"""Runs blocks of a launch functionally and collects their trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError
from gemmsim.isa.program import Program
from gemmsim.trace import micro, state
from gemmsim.trace.constants import constant_bank
from gemmsim.trace.device_memory import DeviceMemory
from gemmsim.trace.executor import run_block
from gemmsim.trace.lower import MicroProgram, lower
from gemmsim.trace.memory_access import HASH_SLOTS
from gemmsim.trace.types import WARP_LANES, Execution, Launch, Patterns, WarpTrace

ALL = 0xFFFFFFFF
LOCAL_SLOTS = 512  # blocks that own a stack at once; a block id selects one
# Only touched pages cost memory, so buffers start large and rarely grow.
_FIRST_CAPACITY = 1 << 22
# Reserved at the start of a block's shared window on sm_80 and later (CUDA Programming Guide: 1 KB a block).
_SHARED_RESERVED_BYTES = 1024


def execute(
    program: Program,
    launch: Launch,
    blocks: Sequence[int] | None = None,
    weight: Sequence[float] | None = None,
    streams: Sequence[bool] | None = None,
    max_instructions: int = 2_000_000_000,
) -> Execution:
    """Execute `blocks` (linear ids, x fastest; all of the grid where None) in order: `Executor` for one use."""
    chosen = range(launch.blocks) if blocks is None else blocks
    return Executor(program, launch, max_instructions).run(chosen, weight, streams)


class _Buffers:
    """The growing arrays that the compiled executor appends to."""

    def __init__(self, warps: int, instructions: int, budget: int) -> None:
        self.counters = np.zeros(state.COUNTERS, np.int64)
        self.counters[state.BUDGET_LEFT] = budget
        capacity = _FIRST_CAPACITY
        self.segment_warp, self.segment_start = np.zeros(4096, np.int32), np.zeros(4096, np.int64)
        self.pc = np.empty(4 * capacity, np.int32)
        self.last = np.full((warps, instructions), -1, np.int32)
        self.record_warp, self.record_pc = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        self.record_pattern, self.record_base = np.empty(capacity, np.int32), np.empty(capacity, np.uint64)
        self.patterns = np.zeros((256, state.PATTERN_WORDS), np.uint64)
        self.table = np.full(HASH_SLOTS, -1, np.int32)

    def trace(self) -> tuple[object, ...]:
        """What `run_block` takes as `trace`; one record and one pattern of room are kept for the instruction in hand."""
        limits = (len(self.record_pc) - 1, len(self.patterns) - 2)
        return (self.counters, self.segment_warp, self.segment_start, self.pc, *limits)

    def fill(self, context: NDArray[np.uint64]) -> None:
        """Write the buffers' addresses into the context."""
        arrays = {
            state.COUNTERS_AT: self.counters,
            state.PATTERNS_AT: self.patterns,
            state.HASH_AT: self.table,
            state.LAST_AT: self.last,
            state.RECORD_WARP_AT: self.record_warp,
            state.RECORD_PC_AT: self.record_pc,
            state.RECORD_PATTERN_AT: self.record_pattern,
            state.RECORD_BASE_AT: self.record_base,
        }
        for slot, array in arrays.items():
            context[slot] = array.ctypes.data

    def grow(self) -> None:
        """Double whatever is nearly full."""
        c = self.counters
        if c[state.SEGMENTS] >= len(self.segment_warp) - 1:
            self.segment_warp, self.segment_start = _doubled(self.segment_warp), _doubled(self.segment_start)
        if c[state.ISSUED] >= len(self.pc):
            self.pc = _doubled(self.pc)
        if c[state.RECORDS] >= len(self.record_pc) - 1:
            self.record_warp, self.record_pc = _doubled(self.record_warp), _doubled(self.record_pc)
            self.record_pattern, self.record_base = _doubled(self.record_pattern), _doubled(self.record_base)
        if c[state.PATTERNS] >= len(self.patterns) - 2:
            if 2 * len(self.patterns) > HASH_SLOTS // 2:
                raise GemmsimError(
                    f"the kernel's accesses have more than {len(self.patterns)} different shapes; analyse a smaller problem"
                )
            self.patterns = _doubled(self.patterns)

    def finish(
        self,
        warps_per_block: int,
        blocks: NDArray[np.int64],
        weight: NDArray[np.float64],
        executed: NDArray[np.int64],
        threads: NDArray[np.int64],
    ) -> WarpTrace:
        """Sort records and streams by warp."""
        warps = len(blocks) * warps_per_block
        records, segments = int(self.counters[state.RECORDS]), int(self.counters[state.SEGMENTS])
        order, record_start = _group(self.record_warp[:records], warps)
        stops = np.append(self.segment_start[1:segments], self.counters[state.ISSUED]).astype(np.int64)
        pc, pc_start = _join(self.pc, self.segment_warp[:segments], self.segment_start[:segments], stops, warps)
        patterns = int(self.counters[state.PATTERNS])
        mask = self.patterns[:patterns, state.PATTERN_MASK].astype(np.uint32)
        active = (mask[:, None] >> np.arange(WARP_LANES, dtype=np.uint32)) & 1 == 1
        offsets = np.where(active, self.patterns[:patterns, :WARP_LANES].astype(np.int64), 0)
        return WarpTrace(
            warps_per_block,
            blocks,
            weight,
            executed,
            threads,
            record_start,
            self.record_pc[:records][order],
            self.record_pattern[:records][order],
            self.record_base[:records][order],
            pc_start,
            pc,
            Patterns(offsets, mask),
        )


def _doubled(array: NDArray) -> NDArray:
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@njit(cache=True)
def _group(keys, groups):  # type: ignore[no-untyped-def]
    """Stable order that sorts `keys` (0 .. groups - 1), and where each group starts."""
    start = np.zeros(groups + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    at = start[:-1].copy()
    order = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        order[at[keys[i]]] = i
        at[keys[i]] += 1
    return order, start


@njit(cache=True)
def _join(pc, segment_warp, segment_start, segment_stop, warps):  # type: ignore[no-untyped-def]
    """Concatenate each warp's segments of the instruction stream."""
    start = np.zeros(warps + 1, np.int64)
    for s in range(len(segment_warp)):
        start[segment_warp[s] + 1] += segment_stop[s] - segment_start[s]
    for w in range(warps):
        start[w + 1] += start[w]
    at = start[:-1].copy()
    out = np.empty(start[warps], np.int32)
    for s in range(len(segment_warp)):
        w = segment_warp[s]
        length = segment_stop[s] - segment_start[s]
        for i in range(length):  # a loop: slice assignment costs numba seconds to compile
            out[at[w] + i] = pc[segment_start[s] + i]
        at[w] += length
    return out, start


class Executor:
    """One launch: its memory, its lowered code, and the state of the block being executed.

    max_instructions   warp instructions after which a run is given up
    """

    def __init__(self, program: Program, launch: Launch, max_instructions: int = 2_000_000_000) -> None:
        self.program, self.launch, self.budget = program, launch, max_instructions
        self.micro: MicroProgram = lower(program)
        self.memory = DeviceMemory(launch.args)
        self.bank = constant_bank(program, launch, tuple(self.memory.pointers))
        warps = launch.warps_per_block
        self.code = np.ascontiguousarray(self.micro.code)
        self.initial = self._initial_registers(warps)
        self.registers = self.initial.copy()
        shared_bytes = _SHARED_RESERVED_BYTES + program.static_shared_bytes + launch.dynamic_shared_bytes
        self.shared_bytes = np.uint64(shared_bytes)
        self.shared = np.zeros(-(-shared_bytes // 4) + 4, np.uint32)
        self.local = np.zeros((warps, -(-program.local_bytes // 4), WARP_LANES), np.uint32)
        live = [min(WARP_LANES, launch.threads_per_block - WARP_LANES * w) for w in range(warps)]
        self.alive = np.array([(1 << n) - 1 for n in live], np.uint32)
        self.context = self._context(warps)

    def run(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> Execution:
        """Execute `blocks` (linear ids, x fastest) in order, starting from the arguments' initial content.

        weight    how many blocks of the grid each stands for (1 where None)
        streams   for which blocks the instruction stream is recorded (all where None)

        Raises GemmsimError for an access outside the arguments, a misaligned access, a barrier that cannot complete, and
        a kernel that exceeds its budget; each names the instruction, its source line, block and warp.
        """
        self.memory.restore()
        chosen = np.asarray(blocks, np.int64)
        wanted = np.ones(len(chosen), bool) if streams is None else np.asarray(streams, bool)
        warps = self.launch.warps_per_block
        self.buffers = _Buffers(warps, len(self.program.instructions), self.budget)
        executed = np.zeros((len(chosen), len(self.program.instructions)), np.int64)
        threads = np.zeros_like(executed)
        for number, block in enumerate(chosen):
            self._block(int(block), number, executed[number], threads[number], bool(wanted[number]))
        weights = np.ones(len(chosen)) if weight is None else np.asarray(weight, float)
        trace = self.buffers.finish(warps, chosen, weights, executed, threads)
        sampled = len(chosen) != self.launch.blocks
        return Execution(trace, self.memory.arrays(), self.memory.stored(), sampled)

    def _context(self, warps: int) -> NDArray[np.uint64]:
        """The slots that do not change between blocks; every array named here is kept alive by `self`."""
        context, memory = np.zeros(state.CONTEXT_SLOTS, np.uint64), self.memory
        starts, sizes, positions = memory.table
        values = {
            state.GLOBAL_AT: memory.bytes.ctypes.data,
            state.WRITTEN_AT: memory.written.ctypes.data,
            state.ALLOCATION_START: starts.ctypes.data,
            state.ALLOCATION_SIZE: sizes.ctypes.data,
            state.ALLOCATION_POSITION: positions.ctypes.data,
            state.ALLOCATIONS: len(starts),
            state.SHARED_AT: self.shared.ctypes.data,
            state.SHARED_BYTES: int(self.shared_bytes),
            state.LOCAL_AT: self.local.ctypes.data,
            state.LOCAL_WORDS: self.local.shape[1],
            state.CONSTANTS: self.bank.ctypes.data,
            state.CONSTANT_WORDS: len(self.bank),
            state.WARPS: warps,
            state.INSTRUCTIONS: len(self.program.instructions),
        }
        for slot, value in values.items():
            context[slot] = value
        return context

    def _initial_registers(self, warps: int) -> NDArray[np.uint32]:
        rows = np.zeros((warps, self.micro.rows, WARP_LANES), np.uint32)
        rows[:, self.micro.ones] = ALL
        for row, word in self.micro.literals:
            rows[:, row] = word
        for constant in self.micro.constants:
            rows[:, constant.row] = self._constant(constant.bank, constant.offset_bytes)
        x, y, z = self.launch.block
        thread = np.arange(warps * WARP_LANES, dtype=np.uint32).reshape(warps, WARP_LANES)
        known = {
            "SR_TID.X": thread % x,
            "SR_TID.Y": thread // x % y,
            "SR_TID.Z": thread // (x * y),
            "SR_LANEID": thread % WARP_LANES,
            "SR_CgaCtaId": np.zeros_like(thread),  # no cluster launch: every block is block 0 of its own
        }
        assert z
        for name, row in self.micro.specials.items():
            if name in known:
                rows[:, row] = known[name]
            elif name not in ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z"):
                raise GemmsimError(f"kernel '{self.program.name}' reads {name}, which gemmsim does not provide")
        return rows.reshape(warps, -1)

    def _constant(self, bank: int, offset: int) -> int:
        if bank == 0:
            return int(self.bank[offset // 4])
        data = self.program.constants.get(bank, b"")
        if offset + 4 > len(data):
            raise GemmsimError(
                f"kernel '{self.program.name}' reads constant bank {bank} at {offset:#x}, but the cubin holds {len(data)} bytes of it"
            )
        return int.from_bytes(data[offset : offset + 4], "little")

    def _block(self, block: int, number: int, executed: NDArray, threads: NDArray, record_pcs: bool) -> None:
        """Execute one block and append its trace as block `number`."""
        warps, grid = self.launch.warps_per_block, self.launch.grid
        self.registers[:] = self.initial
        rows = self.registers.reshape(warps, -1, WARP_LANES)
        position = {"X": block % grid[0], "Y": block // grid[0] % grid[1], "Z": block // (grid[0] * grid[1])}
        for axis, value in position.items():
            if (row := self.micro.specials.get(f"SR_CTAID.{axis}")) is not None:
                rows[:, row] = value
        self.shared[:] = 0
        paths, barriers = (warps, state.MAX_PATHS), (warps, state.CONVERGENCE_BARRIERS)
        alive = self.alive.copy()
        warp_state = (
            *(np.zeros(warps, np.int32), alive.copy(), alive, np.zeros(warps, np.uint8)),
            *(np.zeros(paths, np.int32), np.zeros(paths, np.uint32), np.zeros(paths, np.int8)),
            *(np.zeros(warps, np.int32), np.zeros(barriers, np.uint32)),
        )
        self.buffers.counters[state.WARP_BASE] = number * warps
        self.context[state.LOCAL_SLOT] = block % LOCAL_SLOTS
        code, registers = np.uint64(self.code.ctypes.data), np.uint64(self.registers.ctypes.data)
        context, row_words = np.uint64(self.context.ctypes.data), self.registers.shape[1]
        while True:
            self.buffers.fill(self.context)
            trace = self.buffers.trace()
            status = run_block(code, registers, row_words, warp_state, context, trace, executed, threads, record_pcs)
            if status == state.FINISHED:
                return
            if status != state.GROW:
                raise GemmsimError(self._fault(status, block))
            self.buffers.grow()

    def _fault(self, status: int, block: int) -> str:
        c = self.buffers.counters
        instruction = self.program.instructions[int(c[state.FAULT_INSTRUCTION])]
        line = f", line {instruction.sources[0].line} of {instruction.sources[0].file}" if instruction.sources else ""
        where = f"block {block}, warp {c[state.FAULT_WARP]}, '{instruction.text}' at {instruction.offset:#06x}{line}"
        address = int(c[state.FAULT_ADDRESS]) & 0xFFFFFFFFFFFFFFFF
        lane = int(c[state.FAULT_LANE])
        if status == state.BUDGET:
            return (
                f"kernel '{self.program.name}' is still running after {self.budget} warp instructions ({where}): it may never end; "
                "raise --max-instructions if it should"
            )
        messages = {
            state.OUT_OF_BOUNDS: f"out-of-bounds access by lane {lane}: address {address:#x} is {self.memory.owner(address)}",
            state.MISALIGNED: f"misaligned access by lane {lane}: address {address:#x}",
            state.SHARED_RANGE: f"lane {lane} leaves the block's shared memory: address {address:#x} of {int(self.shared_bytes)} bytes",
            state.DEADLOCK: "threads of a warp wait for each other forever (a barrier that not all of them reach)",
            state.TOO_DIVERGENT: f"a warp splits into more than {state.MAX_PATHS} divergent paths",
        }
        return f"{messages[status]} ({where})"
