"""Runs blocks of a launch functionally and collects their trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gemmsim.errors import GemmsimError
from gemmsim.isa.program import Program
from gemmsim.trace import state
from gemmsim.trace.buffers import Buffers
from gemmsim.trace.constants import constant_bank
from gemmsim.trace.device_memory import DeviceMemory
from gemmsim.trace.executor import run_block
from gemmsim.trace.faults import describe
from gemmsim.trace.lower import MicroProgram, lower
from gemmsim.trace.types import WARP_LANES, Execution, Launch, WarpTrace

ALL = 0xFFFFFFFF
LOCAL_SLOTS = 512  # blocks that own a stack at once; a block id selects one
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

        Raises GemmsimError for an access outside the arguments, a misaligned access, a barrier that cannot complete,
        and a kernel that exceeds its budget; each names the instruction, its source line, block and warp.
        """
        trace = self.trace(blocks, weight, streams)
        return Execution(trace, self.memory.arrays(), self.memory.stored(), len(blocks) != self.launch.blocks)

    def trace(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> WarpTrace:
        """As `run`, without the outputs."""
        self.memory.restore()
        chosen = np.asarray(blocks, np.int64)
        wanted = np.ones(len(chosen), bool) if streams is None else np.asarray(streams, bool)
        warps = self.launch.warps_per_block
        self.buffers = Buffers(warps, len(self.program.instructions), self.budget)
        executed = np.zeros((len(chosen), len(self.program.instructions)), np.int64)
        threads = np.zeros_like(executed)
        for number, block in enumerate(chosen):
            self._block(int(block), number, executed[number], threads[number], bool(wanted[number]))
        weights = np.ones(len(chosen)) if weight is None else np.asarray(weight, float)
        return self.buffers.finish(warps, chosen, weights, executed, threads)

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
                f"kernel '{self.program.name}' reads constant bank {bank} at {offset:#x}, "
                f"but the cubin holds {len(data)} bytes of it"
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
                counters, shared = self.buffers.counters, int(self.shared_bytes)
                raise GemmsimError(describe(status, counters, self.program, block, self.budget, self.memory, shared))
            self.buffers.grow()
