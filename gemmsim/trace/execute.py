"""Executes blocks of a launch, without any timing, and collects their trace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro, words
from gemmsim.trace.engine.faults import describe
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.engine.variants import ACROSS_LANES, executor_for
from gemmsim.trace.launch_data.constant_bank import constant_bank, stack_bytes
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.lower import MicroProgram, lower
from gemmsim.trace.sanitizer.shadow_state import ShadowState
from gemmsim.trace.slicing.program_slice import program_slice
from gemmsim.trace.types import Execution, Launch, Sketch, WarpTrace

ALL = 0xFFFFFFFF
LOCAL_SLOTS = 512  # so many stacks (local memory) of blocks there are; a block's id modulo this number selects its own
# Shared memory is handed out in these units (CUDA C++ Programming Guide, compute capabilities). Compilers read beyond
# an array's end within one of them.
_SHARED_UNIT_BYTES = 128


def execute(
    program: Program,
    launch: Launch,
    blocks: Sequence[int] | None = None,
    weight: Sequence[float] | None = None,
    streams: Sequence[bool] | None = None,
    max_instructions: int = 2_000_000_000,
) -> Execution:
    """Execute `blocks` (linear ids, x fastest; the whole grid where None) in order; return their trace and outputs.

    `Executor` and `Executor.run`, which do the work, describe the other parameters.
    """
    chosen = range(launch.blocks) if blocks is None else blocks
    return Executor(program, launch, max_instructions).run(chosen, weight, streams)


class Stopped(GemmsimError):  # noqa: N818 - a block was stopped, at its limit or by a bad address
    """Says that a block cannot be finished. `status` is what `run_block` returned, `block` the block's linear id."""

    def __init__(self, message: str, status: int, block: int) -> None:
        super().__init__(message)
        self.status, self.block = status, block


class Executor:
    """Executes blocks of one launch. It holds the launch's memory and lowered code, and the state of the current block.

    max_instructions  warp instructions after which a run is given up
    sanitizing        whether the executor looks for races and other defects (`gemmsim.trace.sanitize`)
    """

    def __init__(
        self, program: Program, launch: Launch, max_instructions: int = 2_000_000_000, sanitizing: bool = False
    ) -> None:
        self.program, self.launch, self.budget = program, launch, max_instructions
        self.micro: MicroProgram = lower(program)
        self.memory = DeviceMemory(launch.args)
        self.bank = constant_bank(program, launch, tuple(self.memory.pointers))
        warps = launch.warps_per_block
        self.code = np.ascontiguousarray(self.micro.code)
        self.run_block = executor_for(bool(np.isin(self.code[:, micro.OP], ACROSS_LANES).any()), sanitizing)
        self.initial = self._initial_registers(warps)
        self.registers = self.initial.copy()
        own_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
        self.shared_bytes = program.reserved_shared_bytes + -(-own_bytes // _SHARED_UNIT_BYTES) * _SHARED_UNIT_BYTES
        self.shared = np.zeros(self.shared_bytes // 4, np.uint32)
        self.local = np.zeros((warps, stack_bytes(program) // 4, WARP_LANES), np.uint32)
        self.banks = self._constant_banks()
        self.warps = np.zeros((warps, words.WARP_WORDS), np.int64)
        self.barriers = np.zeros(words.OUTCOME + words.BARRIER_WORDS, np.int64)
        live = [min(WARP_LANES, launch.threads_per_block - WARP_LANES * w) for w in range(warps)]
        self.alive = np.array([(1 << n) - 1 for n in live], np.int64)
        self.stale = np.zeros(len(self.memory.starts), np.uint64)
        self.context = self._context(warps)
        self.slice_suffices = not sanitizing
        self.probe_buffers: Buffers | None = None
        self.shadow = ShadowState(program, launch, self.code, self.shared_bytes) if sanitizing else None
        if self.shadow:
            self.shadow.fill(self.context)

    def run(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> Execution:
        """Execute `blocks` (linear ids, x fastest) in order, starting from the arguments' initial content.

        weight    how many blocks of the grid each of `blocks` stands for (None: 1 each)
        streams   for which of `blocks` the instruction stream is recorded (None: all)

        Raises GemmsimError for an access outside the arguments, a misaligned access, a barrier that cannot complete,
        and a kernel that exceeds its budget; each names the instruction, its source line, block and warp.
        """
        trace = self.trace(blocks, weight, streams)
        return Execution(trace, self.memory.arrays(), self.memory.stored(), len(blocks) != self.launch.blocks)

    def trace(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> WarpTrace:
        """Execute `blocks` as `run` does, but return only the trace."""
        self.buffers = Buffers(self.launch.warps_per_block, self.micro.accesses, self.budget)
        wanted = np.ones(len(blocks), bool) if streams is None else np.asarray(streams, bool)
        executed, threads = self._blocks(blocks, wanted)
        weights = np.ones(len(blocks)) if weight is None else np.asarray(weight, float)
        return self.buffers.finish(
            self.launch.warps_per_block, np.asarray(blocks, np.int64), weights, executed, threads
        )

    def probe(self, blocks: Sequence[int]) -> Sketch:
        """Execute `blocks` in order and return a `Sketch` of what they did.

        Runs `trace_slice`, which computes only what the trace depends on and stores nothing to the arguments' arrays.
        When sanitizing, and from the first call on in which that does not suffice (`words.STALE`), runs the whole
        program.
        """
        code = self.trace_slice if self.slice_suffices else self.code
        assert code is not None
        try:
            return self._sketch(code, blocks)
        except Stopped as stopped:
            if stopped.status != words.STALE:
                raise
        self.slice_suffices = False
        return self._sketch(self.code, blocks)

    def counts(self, blocks: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Count how often `blocks` execute each instruction, and by how many threads.

        Returns two arrays, int64 [blocks, instructions], or None where the counts depend on the content of global
        memory or the executor is sanitizing. This method is cheaper than `probe`, because it computes no addresses.
        """
        if self.count_slice is None or self.shadow is not None:
            return None
        found = self._sketch(self.count_slice, blocks)
        return found.executed, found.threads_executed

    @cached_property
    def trace_slice(self) -> NDArray[np.uint32] | None:
        """The lowered code without the computations that do not affect the trace (see `program_slice`)."""
        return program_slice(self.micro, True)

    @cached_property
    def count_slice(self) -> NDArray[np.uint32] | None:
        """The part of the lowered code that decides which instructions run; None where global memory does."""
        return program_slice(self.micro, False)

    def _sketch(self, code: NDArray[np.uint32], blocks: Sequence[int]) -> Sketch:
        if self.probe_buffers is None:
            self.probe_buffers = Buffers(self.launch.warps_per_block, self.micro.accesses, self.budget)
        self.buffers = self.probe_buffers
        self.buffers.clear(self.budget)
        self.stale[:] = 0
        self.context[words.CODE_AT] = code.ctypes.data
        try:
            return self.buffers.sketch(*self._blocks(blocks, np.zeros(len(blocks), bool)))
        finally:
            self.context[words.CODE_AT] = self.code.ctypes.data
            self.stale[:] = 0

    def _blocks(self, blocks: Sequence[int], streams: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Execute `blocks` in order, and append their trace to the buffers.

        streams  bool [blocks]: whether the block's instruction stream is recorded

        Returns how often each block executed each instruction, and by how many threads, int64 [blocks, instructions].
        """
        self.memory.restore()
        executed = np.zeros((len(blocks), len(self.program.instructions)), np.int64)
        threads = np.zeros_like(executed)
        for number, block in enumerate(blocks):
            self._block(int(block), number, executed[number], threads[number], bool(streams[number]))
        return executed, threads

    def _context(self, warps: int) -> NDArray[np.uint64]:
        """Make the context, an array of words for the compiled executor (`gemmsim.trace.words`).

        The words that are the same for all blocks are filled in.

        The context holds the addresses of arrays; `self` keeps these arrays alive.
        """
        context, memory = np.zeros(words.CONTEXT_SLOTS, np.uint64), self.memory
        arrays = {
            words.WRITTEN_AT: memory.written,
            words.TOUCHED_AT: memory.touched,
            words.ALLOCATION_START: memory.starts,
            words.ALLOCATION_SIZE: memory.sizes,
            words.ALLOCATION_POSITION: memory.positions,
            words.ALLOCATION_PLACE: memory.places,
            words.ALLOCATION_LENT: memory.lent,
            words.ALLOCATION_STALE: self.stale,
            words.SHARED_AT: self.shared,
            words.LOCAL_AT: self.local,
            words.BANKS_AT: self.banks,
            words.CODE_AT: self.code,
            words.START_AT: self.micro.start,
            words.REGISTERS_AT: self.registers,
            words.WARPS_AT: self.warps,
            words.BARRIERS_AT: self.barriers,
        }
        numbers = {
            words.ALLOCATIONS: len(memory.starts),
            words.SHARED_BYTES: self.shared_bytes,
            words.LOCAL_WORDS: self.local.shape[1],
            words.WARPS: warps,
            words.ACCESSES: self.micro.accesses,
            words.ROW_WORDS: self.registers.shape[1],
        }
        for slot, array in arrays.items():
            context[slot] = array.ctypes.data
        for slot, number in numbers.items():
            context[slot] = number
        return context

    def _constant_banks(self) -> NDArray[np.uint64]:
        """Return uint64 [banks, 2]: the address in this process and the size in bytes of each constant bank."""
        self._bank_arrays: dict[int, NDArray] = {
            n: np.frombuffer(data + bytes(16), np.uint8) for n, data in self.program.constants.items()
        }
        self._bank_arrays[0] = self.bank
        banks = np.zeros((max(self._bank_arrays) + 1, 2), np.uint64)
        for number, array in self._bank_arrays.items():
            banks[number] = array.ctypes.data, array.nbytes if number == 0 else array.nbytes - 16
        return banks

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
            "SR_SWINHI": np.full_like(thread, words.SHARED_WINDOW),
            "SR_LTMASK": (np.uint32(1) << thread % WARP_LANES) - np.uint32(1),
            "SR_EQMASK": np.uint32(1) << thread % WARP_LANES,
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
                f"kernel '{self.program.name}' reads constant bank {bank} at {offset:#x}, "
                f"but the cubin holds {len(data)} bytes of it"
            )
        return int.from_bytes(data[offset : offset + 4], "little")

    def _block(self, block: int, number: int, executed: NDArray, threads: NDArray, record_pcs: bool) -> None:
        """Execute the block with the linear id `block`, and append its trace as that of block `number` of the trace.

        executed, threads  int64 [instructions]: the block's executions, by warps and by threads, are added to them
        record_pcs         whether the block's instruction stream is recorded
        """
        warps, grid = self.launch.warps_per_block, self.launch.grid
        self.registers[:] = self.initial
        rows = self.registers.reshape(warps, -1, WARP_LANES)
        position = {"X": block % grid[0], "Y": block // grid[0] % grid[1], "Z": block // (grid[0] * grid[1])}
        for axis, value in position.items():
            if (row := self.micro.specials.get(f"SR_CTAID.{axis}")) is not None:
                rows[:, row] = value
        self.shared[:] = 0
        self.warps[:] = 0
        self.warps[:, words.ACTIVE] = self.warps[:, words.ALIVE] = self.alive
        self.barriers[:] = 0
        if self.shadow:
            self.shadow.begin_block()
        context = self.context
        self.buffers.counters[words.WARP_BASE] = number * warps
        context[words.LOCAL_SLOT] = block % LOCAL_SLOTS
        context[words.EXECUTED_AT], context[words.THREADS_AT] = executed.ctypes.data, threads.ctypes.data
        context[words.STREAM] = record_pcs
        while True:
            self.buffers.fill(context)
            status = self.run_block(np.uint64(context.ctypes.data))
            if self.shadow:
                self.shadow.end_block(block)
            if status == words.FINISHED:
                return
            counters = self.buffers.counters
            if status == words.LENT:
                self.memory.own(int(counters[words.FAULT_LANE]))
            elif status == words.GROW:
                self.buffers.grow()
            elif status == words.STALE:
                raise Stopped("a program slice reads what it did not store", status, block)
            else:
                message = describe(status, counters, self.program, block, self.budget, self.memory, self.shared_bytes)
                raise Stopped(message, status, block)
