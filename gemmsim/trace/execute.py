"""Executes blocks of a launch, without any timing, and collects their trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.progress import blocks_done
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.cluster_waits import notes_of_waits
from gemmsim.trace.comes_back import comes_back
from gemmsim.trace.context import context_of
from gemmsim.trace.endless import Patience
from gemmsim.trace.engine.faults import describe
from gemmsim.trace.engine.parts import linked
from gemmsim.trace.engine.recorded import append
from gemmsim.trace.engine.trace_buffers import Buffers
from gemmsim.trace.engine.variants import executor_for, residents_executor_for
from gemmsim.trace.initial_registers import block_registers, initial_registers
from gemmsim.trace.launch_data.clusters import blocks_meet, clusters_of
from gemmsim.trace.launch_data.constant_bank import stack_bytes
from gemmsim.trace.launch_data.constant_banks import ConstantBanks
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.launch_data.grid_workspace import grid_workspace
from gemmsim.trace.launch_data.module_data import device_globals, variables_after
from gemmsim.trace.launch_data.parameter_window import parameter_window
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.residents import AS_ONE_BLOCK, ONE_ORDER, Residents, Room
from gemmsim.trace.runtime.external_calls import ExternalCalls
from gemmsim.trace.runtime.serving import serve_call
from gemmsim.trace.sanitizer.shadow_state import ShadowState
from gemmsim.trace.slicing.program_slice import program_slice
from gemmsim.trace.steady.cutting import Cutting, run_cut
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.turns import takes_turns, with_turns
from gemmsim.trace.types import Execution, Launch, Sketch, WarpTrace
from gemmsim.trace.waiting import notes_of, waits_at_mbarriers

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


class Executor:
    """Executes blocks of one launch. It holds the launch's memory and lowered code, and the state of the current block.

    max_instructions  warp instructions after which a run is given up
    sanitizing        whether the executor looks for races and other defects (`gemmsim.trace.sanitize`)
    resident          how many blocks fit on the GPU at once, None where all of them do. It matters only to blocks that
                      wait for each other or share out work, and therefore run interleaved (`gemmsim.trace.turns`).
    """

    def __init__(
        self,
        program: Program,
        launch: Launch,
        max_instructions: int = 2_000_000_000,
        sanitizing: bool = False,
        resident: int | None = None,
    ) -> None:
        self.program, self.launch, self.budget = program, launch, max_instructions
        self.clusters = clusters_of(program, launch)
        self.blocks_meet = blocks_meet(program, self.clusters)
        self.micro: MicroProgram = linked(with_turns(program, self.blocks_meet), sanitizing)
        symbols = dict(launch.symbols)
        image_at = partial(device_globals, program, symbols) if program.global_bytes else None
        hidden = (*grid_workspace(program), *parameter_window(program))
        self.memory = DeviceMemory(launch.args, hidden, image_at, launch.globals_at)
        self.externals = ExternalCalls(program, launch)
        self.banks = ConstantBanks(program, launch, symbols, self.memory)
        warps = launch.warps_per_block
        self.code = np.ascontiguousarray(self.micro.code)
        self.run_block = executor_for(sanitizing)
        own_bytes = program.static_shared_bytes + launch.dynamic_shared_bytes
        self.shared_bytes = program.reserved_shared_bytes + -(-own_bytes // _SHARED_UNIT_BYTES) * _SHARED_UNIT_BYTES
        self.initial = initial_registers(program, launch, self.micro, self.banks, self.shared_bytes)
        self.columns = words.UNLIMITED  # that warpgroups multiply in `trace` before the rest is left out
        self.shadow = ShadowState(program, launch, self.clusters, self.micro, self.shared_bytes) if sanitizing else None
        if self.shadow:
            self.code = self.shadow.code
        self.state = self._new_state()
        live = [min(WARP_LANES, launch.threads_per_block - WARP_LANES * w) for w in range(warps)]
        self.alive = np.array([(1 << n) - 1 for n in live], np.int64)
        self.stale = np.zeros(len(self.memory.starts), np.uint64)
        arrays: dict[int, NDArray] = {
            words.ALLOCATION_STALE: self.stale,
            words.BANKS_AT: self.banks.table,
            words.CODE_AT: self.code,
        }
        numbers = {
            words.SHARED_BYTES: self.shared_bytes,
            words.LOCAL_WORDS: self.state.local.shape[1],
            words.WARPS: warps,
            words.ROW_WORDS: self.initial.shape[1],
            words.CLUSTER_BLOCKS: self.clusters.blocks,
        }
        self.context = context_of(self.memory, self.micro, arrays, self.state.addresses() | numbers)
        self.slice_suffices = not sanitizing
        self.cutting = Cutting(allowed=not sanitizing)
        self.probe_buffers: Buffers | None = None
        self.residents: Residents | None = None
        if takes_turns(self.micro) or self.blocks_meet:
            run = residents_executor_for(sanitizing)
            fit = launch.blocks if resident is None else resident
            room = Room(fit if takes_turns(self.micro) else self.clusters.blocks, self.clusters)
            ended = self.shadow.end_turn if self.shadow else None
            self.residents = Residents(room, self.context, run, self._new_state, self._begin, self._recover, ended)
        if self.shadow:
            self.shadow.fill(self.context)
            if not self.residents:
                self.shadow.watch_global(self.context, len(self.memory.written))

    def run(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> Execution:
        """Execute `blocks` (linear ids, x fastest) in order, starting from the arguments' initial content.

        weight    how many blocks of the grid each of `blocks` stands for (None: 1 each)
        streams   for which of `blocks` the instruction stream is recorded (None: all)

        Raises GemmsimError for an access outside the arguments, a misaligned access, a barrier that cannot complete,
        and a kernel that exceeds its budget; each names the instruction, its source line, block and warp.
        """
        try:
            trace = self.trace(blocks, weight, streams)
        except Stopped as stopped:
            stopped.printed = self.externals.printed
            raise
        cut = any(block in self.cutting.cuts for block in blocks)
        one_order = self.residents is not None and len(blocks) > 1 and takes_turns(self.micro)
        return Execution(
            trace=trace,
            outputs=self.memory.arrays(),
            written=self.memory.stored(),
            sampled=len(blocks) != self.launch.blocks or cut,
            notes=(
                *((ONE_ORDER,) if one_order else ()),
                *((AS_ONE_BLOCK,) if self.blocks_meet else ()),
                *(*notes_of(self.program), *self.externals.notes),
                *notes_of_waits(self.program, self.buffers.counters),
            ),
            one_order=one_order,
            variables=variables_after(self.program, self.memory),
            printed=self.externals.printed,
            left_out=cut,
        )

    def trace(
        self, blocks: Sequence[int], weight: Sequence[float] | None = None, streams: Sequence[bool] | None = None
    ) -> WarpTrace:
        """Execute `blocks` as `run` does, but return only the trace."""
        self.probe_buffers = None  # which may be large, as may what is known of loops
        self.cutting.proofs.clear()
        warps = self.launch.warps_per_block
        self.buffers = Buffers(warps, self.micro.accesses, self.budget)
        self.buffers.counters[words.COLUMNS_LEFT], self.context[words.CODE_AT] = self.columns, self.code.ctypes.data
        wanted = np.ones(len(blocks), bool) if streams is None else np.asarray(streams, bool)
        kept = {} if self.residents else self.cutting.take_recorded(blocks, wanted)
        executed, threads = self.execute_blocks(blocks, wanted, left_out=kept)
        for number in list(kept):
            executed[number], threads[number] = append(self.buffers, kept.pop(number), number * warps)
        self.memory.forget_reads()
        weights = np.ones(len(blocks)) if weight is None else np.asarray(weight, float)
        return self.buffers.finish(warps, np.asarray(blocks, np.int64), weights, executed, threads)

    def together(self, block: int) -> tuple[int, ...]:
        """Return the blocks that must run when `block` does: those of its cluster, if they meet."""
        if not self.blocks_meet:
            return (block,)
        number = self.clusters.places(np.array([block]))[0]
        return tuple(self.clusters.members(number)[0].tolist())

    def probe(self, blocks: Sequence[int]) -> Sketch:
        """Execute `blocks` in order and return a `Sketch` of what they did.

        Runs `trace_slice`, which computes only what the trace depends on and stores nothing to the arguments' arrays.
        When sanitizing, and from the first call on in which that does not suffice (`words.STALE`), runs the whole
        program.
        """
        code = self.trace_slice if self.slice_suffices else self.code
        assert code is not None
        try:
            return self.sketch(code, blocks)
        except Stopped as stopped:
            if stopped.status != words.STALE:
                raise
        self.slice_suffices = False
        return self.sketch(self.code, blocks)

    def counts(self, blocks: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Count how often `blocks` execute each instruction, and by how many threads.

        Returns two arrays, int64 [blocks, instructions], or None where the counts depend on the content of global
        memory or the executor is sanitizing. This method is cheaper than `probe`, because it computes no addresses.
        """
        if self.count_slice is None or self.shadow is not None:
            return None
        found = self.sketch(self.count_slice, blocks, cutting=self.cutting.allowed)
        return found.executed, found.threads_executed

    @cached_property
    def trace_slice(self) -> NDArray[np.uint32] | None:
        """The lowered code without the computations that do not affect the trace (see `program_slice`)."""
        return program_slice(self.micro, True)

    @cached_property
    def count_slice(self) -> NDArray[np.uint32] | None:
        """The part of the lowered code that decides which instructions run; None where global memory does."""
        return program_slice(self.micro, False)

    def sketch(
        self, code: NDArray[np.uint32], blocks: Sequence[int], fresh: bool = True, cutting: bool = False
    ) -> Sketch:
        """Execute `code`, the program or a slice of it, for `blocks` in order, and return a `Sketch` of what they did.

        fresh    whether memory is restored to its initial content first
        cutting  whether iterations of steady loops are left out, and counted (`gemmsim.trace.steady`)
        """
        if self.probe_buffers is None:
            self.probe_buffers = Buffers(self.launch.warps_per_block, self.micro.accesses, self.budget)
        self.buffers = self.probe_buffers
        self.buffers.clear(self.budget)
        self.stale[:] = 0
        self.context[words.CODE_AT] = code.ctypes.data
        self.externals.silent, self.cutting.finds, self.cutting.left_out = True, cutting, 0
        try:
            return self.buffers.sketch(*self.execute_blocks(blocks, np.zeros(len(blocks), bool), fresh))
        finally:
            self.context[words.CODE_AT] = self.code.ctypes.data
            self.externals.silent = self.cutting.finds = False
            self.stale[:] = 0
            self.memory.forget_reads()

    def execute_blocks(
        self, blocks: Sequence[int], streams: NDArray[np.bool_], fresh: bool = True, left_out: Collection[int] = ()
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Execute `blocks` in order, and append their trace to the buffers.

        streams   bool [blocks]: whether the block's instruction stream is recorded
        fresh     whether memory is restored to its initial content first
        left_out  places in `blocks` of those that are not executed; the others must run one after the other

        Returns how often each block executed each instruction, and by how many threads, int64 [blocks, instructions].
        """
        if fresh:
            self.memory.restore()
            self.externals.forget()
            if self.shadow:
                self.shadow.forget_global()
        executed = np.zeros((len(blocks), len(self.program.instructions)), np.int64)
        threads = np.zeros_like(executed)
        if self.residents:
            fill = partial(self.buffers.fill, self.context)
            self.residents.run(blocks, streams, executed, threads, fill, self.budget)
            return executed, threads
        state, look = None if self.shadow else self.state, partial(comes_back, self, step=self._go_on)
        patience = Patience(self.program, self.buffers, self.budget, state, self._go_on, look)
        for number, block in enumerate(blocks):
            blocks_done(number, len(blocks))
            if number not in left_out:
                self._block(int(block), number, executed[number], threads[number], bool(streams[number]), patience)
        return executed, threads

    def _block(
        self, block: int, number: int, executed: NDArray, threads: NDArray, record_pcs: bool, patience: Patience
    ) -> None:
        """Execute the block with the linear id `block`, and append its trace as that of block `number` of the trace.

        executed, threads  int64 [instructions]: the block's executions, by warps and by threads, are added to them
        record_pcs         whether the block's instruction stream is recorded
        patience           lends the budget
        """
        self._begin(self.state, block)
        self.buffers.counters[words.WARP_BASE] = number * self.launch.warps_per_block
        self.context[words.EXECUTED_AT], self.context[words.THREADS_AT] = executed.ctypes.data, threads.ctypes.data
        self.context[words.STREAM] = record_pcs
        if self.cutting.finds or block in self.cutting.cuts:
            run_cut(self, block, (executed, threads), record_pcs, patience, self._go_on, self._recover)
            return
        while (status := self._go_on(block)) != words.FINISHED:
            if status != words.BUDGET or not patience.goes_on(block, executed):
                self._recover(status, block, self.state)

    def _go_on(self, block: int = 0) -> int:
        self.buffers.fill(self.context)
        status = int(self.run_block(np.uint64(self.context.ctypes.data)))
        if self.shadow:
            self.shadow.end_turn(block)
        return status

    def _new_state(self) -> BlockState:
        shadow = self.shadow.new_block() if self.shadow else None
        return BlockState(self.initial, self.shared_bytes, stack_bytes(self.program), self.micro.accesses, shadow)

    def _begin(self, state: BlockState, block: int) -> None:
        """Let the block with the linear id `block` begin in `state`."""
        rank = self.clusters.rank(block) if self.clusters.blocks > 1 else 0
        state.begin(self.initial, block_registers(self.micro, self.launch, self.clusters, block), self.alive, rank)
        self.context[words.BLOCK_NUMBER] = block + 1
        self.context[words.SHARED_BASE] = rank << words.RANK_SHIFT

    def _recover(self, status: int, block: int, state: BlockState) -> None:
        """Do what the status of a block asks for, so that the block can go on. Raises Stopped where it cannot."""
        counters, self.state = self.buffers.counters, state
        if status == words.LENT:
            self.memory.own(int(counters[words.FAULT_LANE]))
        elif status == words.GROW:
            self._leave_out_products() if counters[words.COLUMNS_LEFT] <= 0 else self.buffers.grow()
        elif status == words.EXTERNAL:
            serve_call(self, block, state)
        elif status == words.UNRELATED:
            instruction = self.program.instructions[int(counters[words.FAULT_INSTRUCTION])]
            raise Stopped(f"how other blocks differ is lost at '{instruction.text}'", status, block)
        elif status == words.STALE:
            raise Stopped("a program slice reads what it did not store", status, block)
        elif status in (words.STUCK, words.DEADLOCK) and (waits := waits_at_mbarriers(self.program, self.micro, state)):
            raise Stopped(f"{waits} (block {block} of kernel '{self.program.name}')", status, block)
        elif status == words.STUCK and self.residents:
            counters[[words.FAULT_INSTRUCTION, words.FAULT_WARP, words.FAULT_LANE]] = *self.residents.polled(), 0
            waits = self.residents.describe_wait(self.program, self.micro.code, block, self.launch.blocks)
            raise Stopped(waits, status, block)
        else:
            message = describe(status, counters, self.program, block, self.budget, self.memory, self.shared_bytes)
            raise Stopped(message, status, block)

    def _leave_out_products(self) -> None:
        code = self.code if self.trace_slice is None else self.trace_slice
        self.buffers.counters[words.COLUMNS_LEFT], self.context[words.CODE_AT] = words.UNLIMITED, code.ctypes.data
