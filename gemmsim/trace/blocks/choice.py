"""Chooses which blocks of a launch to execute, and what they stand for.

A small launch is executed in full. Of a larger one, a block of each class is executed (`classes`): what the others of
its class do is known. Where classes are too many, or blocks depend on one another in a way that is not followed, all
blocks are executed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import ZERO, Instruction, Operand, OperandKind, Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.blocks.classes import classes_of, cluster_classes_of, column_classes_of, leaders_of, middle
from gemmsim.trace.blocks.dispatch import shares_of_last_sms
from gemmsim.trace.differences.leader import BlockClass
from gemmsim.trace.execute import Executor
from gemmsim.trace.one_by_one import counts_one_by_one, run_in_order
from gemmsim.trace.steady.skip import AGAIN_ABOVE, CUT_ABOVE
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.turns import polls, takes_turns, waiting_instructions
from gemmsim.trace.types import Launch, SmShare, WarpTrace
from gemmsim.trace.waiting import has_mbarriers

_GLOBAL_ATOMICS = (MemoryAccess("global", "atom"), MemoryAccess("generic", "atom"))
# A launch of fewer warp instructions is executed in full, which takes a second or so of one core.
FULL_BELOW = 12_000_000
# Operations of a matrix multiplication that take as long to execute as another instruction does, or a little longer.
_OPERATIONS_AN_INSTRUCTION = 256
_FEW = 8  # blocks of a launch that is executed in full, if it does not run for long
_LONGEST = 64  # times the instructions of a middle block: one that executes more is taken to wait for another
_MOST_TIMED = 4  # blocks whose instruction stream is recorded


@dataclass(frozen=True)
class Plan:
    """Says which blocks of a launch to execute.

    blocks   linear ids, ascending
    weight   how many blocks of the grid each of `blocks` stands for
    streams  whether the instruction stream of each of `blocks` is recorded
    classes  the classes that `blocks` lead; none where they are all blocks of the grid
    columns  whether an SM gets the blocks of a column in turn, which differ because they depend on one another
    shares   what the SMs execute that may be the last to end; none where all SMs do about the same
    """

    blocks: tuple[int, ...]
    weight: tuple[float, ...]
    streams: tuple[bool, ...]
    classes: tuple[BlockClass, ...] = ()
    columns: bool = False
    shares: tuple[SmShare, ...] = ()


def plan(executor: Executor, resident: int, sms: int, full: bool = False, full_below: int | None = None) -> Plan:
    """Choose which blocks to execute, and for which of these the instruction stream is recorded.

    resident    blocks that fit on an SM at once
    sms         SMs of the GPU
    full        whether to execute the whole grid
    full_below  warp instructions below which the whole grid is executed too, where one that multiplies matrices counts
                as several; FULL_BELOW where it is None

    Raises GemmsimError where the launch can neither be sampled nor executed in full within the executor's budget.
    """
    program, launch, max_instructions = executor.program, executor.launch, executor.budget
    gx, gy, gz = launch.grid
    dependent = _order_matters(program)
    meeting = executor.blocks_meet and not takes_turns(executor.micro)
    if (
        executor.residents
        and not meeting
        and (executor.blocks_meet or gz == 1 or not dependent or polls(executor.micro))
    ):
        # What a block does may depend on when the others do what they do.
        apart = None if full or executor.blocks_meet else _apart(executor, full_below)
        if apart is None:
            return _all_blocks(launch, resident, sms, dependent=False)
        run_in_order(executor)
        shares = _shares(apart, launch.blocks, sms, resident)
        return _sample(apart, _blocks_of(shares) or _timed(apart, resident), shares=shares)
    depth = gz if dependent else 1
    grid = (gx, gy, 1) if dependent else launch.grid
    probed = [middle(grid) + gx * gy * z for z in range(depth)]
    if meeting:
        probed = executor.clusters.members(executor.clusters.places(np.array(probed[:1]))[0])[0].tolist()
    limit = FULL_BELOW if full_below is None else full_below
    # Of a block that executes more, nothing is decided by how many more these are.
    most = max(limit // launch.blocks, CUT_ABOVE, 0 if has_mbarriers(executor.micro) else AGAIN_ABOVE)
    enough = len(probed) * (most + 1)
    executed = _executed(executor, probed, None if full else enough).sum(axis=0)
    total = int(executed.sum()) * launch.blocks // len(probed)
    weighed = int(executed @ _weights(program)) * launch.blocks // len(probed)
    executor.cutting.forget()
    long = total > max(limit, CUT_ABOVE * launch.blocks)
    executor.cutting.leaders = not full and long and _pays(executor, int(executed.sum()))
    executor.cutting.again = total > AGAIN_ABOVE * launch.blocks
    executor.cutting.must = launch.blocks <= _FEW  # else they are executed in full, with their results
    if full or weighed <= limit or (launch.blocks <= _FEW and not executor.cutting.leaders):
        if total > max_instructions:
            raise GemmsimError(
                f"kernel '{program.name}' would execute about {total:.3g} warp instructions, more than "
                f"--max-instructions {max_instructions}: raise it, or leave out --full"
            )
        return _all_blocks(launch, resident, sms, dependent)
    classes = None
    if meeting:
        classes = None if dependent else cluster_classes_of(executor)
        if classes is None:
            executor.cutting.forget()
        elif executor.cutting.cuts:
            run_in_order(executor)
    elif dependent and gz > 1:
        classes = column_classes_of(executor)
        if classes is not None:
            run_in_order(executor)
    elif not dependent:
        classes = classes_of(executor)
    if classes is not None and sum(_runs(executor, c) for c in classes) <= max_instructions:
        if depth > 1:
            heaviest = max(classes, key=_work).leader
            column = [c.leader for c in classes if c.leader % (gx * gy) == heaviest % (gx * gy)]
            return _sample(classes, column, columns=True)
        shares = _shares(classes, launch.blocks, sms, resident)
        return _sample(classes, _blocks_of(shares) or _timed(classes, resident), shares=shares)
    if executed.sum() >= enough:  # as it may not have been counted to the end
        total = int(_executed(executor, probed, None).sum()) * launch.blocks // len(probed)
    if total > max_instructions:
        raise GemmsimError(
            f"the blocks of kernel '{program.name}' differ in ways that a sample cannot stand for, and all of them "
            f"would execute about {total:.3g} warp instructions: more than --max-instructions {max_instructions}"
        )
    return _all_blocks(launch, resident, sms, dependent)


def _executed(executor: Executor, probed: Sequence[int], enough: int | None) -> NDArray[np.int64]:
    """Return how often blocks execute each instruction, int64 [blocks, instructions], found as cheaply as may be.

    enough  warp instructions of a block after which it need not be counted to the end; None: it is
    """
    executor.cutting.enough = enough
    try:
        counted = executor.counts(probed)  # where the content of memory decides nothing
        if counted is not None:
            return counted[0]
        found = counts_one_by_one(executor, probed)
        return executor.probe(probed).executed if found is None else found
    finally:
        executor.cutting.enough = None


def _pays(executor: Executor, counted: int) -> bool:
    """Whether leaders are to leave out iterations of steady loops (`gemmsim.trace.steady`): blocks do not take turns,
    and most of the instructions that were counted just now did not have to be executed.
    """
    if not executor.cutting.allowed or takes_turns(executor.micro):
        return False
    return executor.cutting.left_out > counted // 2


def _apart(executor: Executor, full_below: int | None) -> tuple[BlockClass, ...] | None:
    """Return the classes of a large launch whose blocks come to none of the instructions by which they could depend on
    one another: their kernel can split K among blocks, which then wait for each other, and this launch does not. None
    where they do, where that is not known, and where the launch is small.
    """
    launch, ties = executor.launch, _ties(executor)
    try:
        executed = executor.probe([middle(launch.grid)]).executed[0]
    except Stopped:  # it waits for another block
        return None
    weighed = int(executed @ _weights(executor.program)) * launch.blocks
    if executed[ties].any() or launch.blocks <= 8 or weighed <= (FULL_BELOW if full_below is None else full_below):
        return None
    usual, executor.budget = executor.budget, min(executor.budget, _LONGEST * int(executed.sum()))
    try:
        classes = classes_of(executor)
    finally:
        executor.budget = usual
    return None if classes is None or any(c.executed[ties].any() for c in classes) else classes


def _ties(executor: Executor) -> NDArray[np.int64]:
    """Return the instructions by which a block may depend on others: loads that may wait for them, and atomics of which
    the old value is used.
    """
    atomics = [n for n, instruction in enumerate(executor.program.instructions) if _returns_old(instruction)]
    return np.union1d(waiting_instructions(executor.micro), np.array(atomics, np.int64))


def _weights(program: Program) -> NDArray[np.int64]:
    """Return how many instructions each one of the program counts as: multiplications of matrices take longer."""
    shapes = (matrix_multiply(instruction) for instruction in program.instructions)
    return np.array([1 + shape.operations // _OPERATIONS_AN_INSTRUCTION if shape else 1 for shape in shapes], np.int64)


def with_shares(made: Plan, trace: WarpTrace, sms: int, resident: int) -> Plan:
    """Return `made`, a plan of all blocks, with the streams of the SMs that may end last, if blocks have unequal work.

    trace  what the blocks of `made` did
    """
    if made.classes or made.columns:
        return made
    shares = shares_of_last_sms(trace.executed.sum(axis=1), np.array(made.blocks), sms, resident)
    timed = _blocks_of(shares)
    return replace(made, shares=shares, streams=tuple(b in timed for b in made.blocks)) if shares else made


def _blocks_of(shares: Iterable[SmShare]) -> set[int]:
    return {block for share in shares for block in share.blocks.tolist()}


def _work(blocks: BlockClass) -> int:
    """Return how many warp instructions all blocks of a class execute together."""
    return len(blocks.members) * int(blocks.executed.sum())


def _order_matters(program: Program) -> bool:
    """Whether an atomic operation of the program on global memory returns the old value."""
    return any(map(_returns_old, program.instructions))


def _returns_old(instruction: Instruction) -> bool:
    found = (o.kind is OperandKind.REGISTER and o.index != ZERO for o in _results(instruction))
    return row_of(instruction).memory in _GLOBAL_ATOMICS and any(found)


def _results(instruction: Instruction) -> Iterable[Operand]:
    """Return the operands that an atomic operation writes: those before the address."""
    return takewhile(lambda operand: operand.kind is not OperandKind.ADDRESS, instruction.operands)


def _all_blocks(launch: Launch, resident: int, sms: int, dependent: bool) -> Plan:
    """Make a plan that executes every block.

    Instruction streams are recorded for the blocks that one SM gets in the first wave: the first SM or, where blocks
    depend on earlier ones, the SM that gets the last block of the first column.
    """
    gx, gy, gz = launch.grid
    sm = gx * gy * (gz - 1) % sms if dependent else 0
    streams = [b % sms == sm and b // sms < resident for b in range(launch.blocks)]
    return Plan(tuple(range(launch.blocks)), (1.0,) * launch.blocks, tuple(streams), columns=dependent)


def _shares(classes: tuple[BlockClass, ...], blocks: int, sms: int, resident: int) -> tuple[SmShare, ...]:
    """Return what the SMs execute that may be the last to end, by the classes of all blocks."""
    leader, work = np.zeros((2, blocks), np.int64)
    for c in classes:
        leader[c.members], work[c.members] = c.leader, c.executed.sum()
    return shares_of_last_sms(work, leader, sms, resident)


def _runs(executor: Executor, blocks: BlockClass) -> int:
    """Return how many warp instructions the leader of a class executes, without those that it leaves out."""
    return int(blocks.executed.sum()) - executor.cutting.left_out_of(blocks.leader)


def _timed(classes: tuple[BlockClass, ...], resident: int) -> list[int]:
    """Choose the leaders that are timed where all have equal work, as many as an SM holds at once and `_MOST_TIMED` at
    most.

    Blocks are taken in the order of what they execute, and those at even distances from one another are chosen.
    """
    ordered = sorted(classes, key=lambda c: int(c.executed.sum()))
    ends = np.cumsum([len(c.members) for c in ordered])
    slots = max(1, min(resident, _MOST_TIMED))
    places = (np.arange(slots) + 0.5) / slots * ends[-1]
    return [ordered[n].leader for n in {int(n) for n in np.searchsorted(ends, places, side="right")}]


def _sample(
    classes: tuple[BlockClass, ...], timed: Collection[int], columns: bool = False, shares: tuple[SmShare, ...] = ()
) -> Plan:
    """Make the plan that executes the leaders of `classes`, and records the instruction streams of those in `timed`."""
    chosen = leaders_of(classes)
    blocks = sorted(chosen)
    streams = tuple(b in timed for b in blocks)
    return Plan(tuple(blocks), tuple(chosen[b] for b in blocks), streams, classes, columns, shares)
