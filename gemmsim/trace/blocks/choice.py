"""Chooses which blocks of a launch to execute, and how many blocks of the grid each stands for.

Nothing is assumed about a kernel: along each grid axis a few blocks are executed and compared. Two blocks are alike
when every instruction ran equally often, for equally many threads, with the same access shapes (`Patterns`) equally
often. Interior blocks along an axis must repeat with a short period (the alignment of a tile to the 128-byte line can
alternate), and two blocks at fixed, scattered places must agree with their class.

Where this comparison fails (a kernel that takes its tiles in an order of its own), how often each instruction runs is
counted in every block, without addresses. Blocks with the same counts form a class, if those of them that are executed
have the same access shapes too. Otherwise the whole grid is executed.

Where an atomic instruction returns what it found, the path of a block can depend on the blocks that came before it (the
last block of a tile to arrive collects the sums of all). Then columns are executed, compared and weighted: a column is
the blocks of one place in x and y, all along z. Blocks of different columns are taken not to depend on each other. A
grid that is flat in z is executed in full.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import ZERO, Instruction, Operand, OperandKind, Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.blocks.probe import Probe
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Launch

_GLOBAL_ATOMICS = (MemoryAccess("global", "atom"), MemoryAccess("generic", "atom"))
# A launch of fewer warp instructions is executed in full, which takes half a second or so of one core.
FULL_BELOW = 12_000_000
_PERIODS = (1, 2, 4)
# Where no axis repeats, a sample does not show where other blocks read. Up to this many warp instructions, some five
# seconds, all blocks are executed instead.
_CLASSES_ABOVE = 100_000_000
_COUNTED_BELOW = 8_000_000_000  # warp instructions up to which blocks are counted one by one; it takes a minute or so
_MOST_CLASSES, _COUNTED_AT_ONCE = 16, 64


@dataclass(frozen=True)
class Plan:
    """Says which blocks of a launch to execute.

    blocks   linear ids, ascending
    weight   how many blocks of the grid each of `blocks` stands for
    streams  whether the instruction stream of each of `blocks` is recorded
    sampled  whether `blocks` is only a part of the grid
    """

    blocks: tuple[int, ...]
    weight: tuple[float, ...]
    streams: tuple[bool, ...]
    sampled: bool


@dataclass(frozen=True)
class _Axis:
    """The classes of blocks along one grid axis, each with a coordinate that represents it.

    `weight` says how many coordinates along the axis each of these stands for.
    """

    weight: dict[int, int]

    def representatives(self) -> list[int]:
        return sorted(self.weight)


def plan(executor: Executor, resident: int, sms: int, full: bool = False) -> Plan:
    """Choose which blocks to execute, and for which of these the instruction stream is recorded.

    resident  blocks that fit on an SM at once
    sms       SMs of the GPU
    full      whether to execute the whole grid

    Raises GemmsimError where the launch can neither be sampled nor executed in full within the executor's budget.
    """
    program, launch, max_instructions = executor.program, executor.launch, executor.budget
    gx, gy, gz = launch.grid
    dependent = _order_matters(program)
    probe = Probe(executor, gz if dependent else 1)
    grid = (gx, gy, 1) if dependent else launch.grid
    total = probe.count(*_middle(grid)) * launch.blocks // probe.depth
    if full or total <= FULL_BELOW or launch.blocks <= 8:
        if total > max_instructions:
            raise GemmsimError(
                f"kernel '{program.name}' would execute about {total:.3g} warp instructions, more than "
                f"--max-instructions {max_instructions}: raise it, or leave out --full"
            )
        return _all_blocks(launch, resident, sms, dependent)
    axes = [] if dependent and gz == 1 else _axes(probe, grid)
    if not axes or any(axis is None for axis in axes):
        tried = not dependent and _CLASSES_ABOVE < total <= _COUNTED_BELOW
        found = _classes(probe, resident) if tried else None
        if found:
            return found
        if total > max_instructions:
            raise GemmsimError(
                f"the blocks of kernel '{program.name}' differ in ways that a sample cannot stand for, and all of them "
                f"would execute about {total:.3g} warp instructions: more than --max-instructions {max_instructions}"
            )
        return _all_blocks(launch, resident, sms, dependent)
    return _product(launch, [axis for axis in axes if axis is not None], resident, probe.depth)


def _order_matters(program: Program) -> bool:
    """Whether an atomic operation of the program on global memory returns the old value."""
    return any(
        any(o.kind is OperandKind.REGISTER and o.index != ZERO for o in _results(i))
        for i in program.instructions
        if row_of(i).memory in _GLOBAL_ATOMICS
    )


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
    return Plan(tuple(range(launch.blocks)), (1.0,) * launch.blocks, tuple(streams), sampled=False)


def _middle(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the place of a block that is at no edge of the grid, along each axis where there is such a place."""
    x, y, z = (min(1, n - 1) for n in grid)
    return x, y, z


def _axes(probe: Probe, grid: tuple[int, int, int]) -> list[_Axis | None]:
    """Find the classes of blocks along each axis; None for an axis along which blocks do not repeat.

    Blocks that lie apart along all axes at once are compared first, and then two opposite corners of the grid: in most
    launches all blocks are alike, and this shows it with few of them.
    """
    middle = _middle(grid)
    inside = [range(1, n - 1) if n > 3 else range(at, at + 1) for n, at in zip(grid, middle, strict=True)]
    apart = list(zip(*((axis[-1] if len(axis) < 2 else axis[1], *_scattered(axis)) for axis in inside), strict=True))
    corners = [(0, 0, 0), tuple(n - 1 if n > 3 else 0 for n in grid)]
    probe.ahead([*apart, *(corners if min(grid[:2]) > 3 else ())])
    alike = all(probe.signature(*place) == probe.signature(*middle) for place in apart)
    if alike and min(grid[:2]) > 3 and all(probe.signature(*place) == probe.signature(*middle) for place in corners):
        return [_Axis({1: n}) if n > 3 else _Axis(dict.fromkeys(range(n), 1)) for n in grid]
    return [_axis(probe, grid, axis, alike) for axis in range(3)]


def _axis(probe: Probe, grid: tuple[int, int, int], axis: int, alike: bool) -> _Axis | None:
    """Find the classes along `axis`, with the other coordinates held in the interior; None where blocks do not repeat.

    alike  whether blocks in the interior are known to be alike
    """
    length = grid[axis]
    if length <= 3:
        return _Axis(dict.fromkeys(range(length), 1))

    def at(coordinate: int) -> str:
        place = list(_middle(grid))
        place[axis] = coordinate
        return probe.signature(*place)

    inside = range(1, length - 1)
    for period in (1,) if alike else _PERIODS:
        checks = [c for c in (*range(1 + period, 1 + 2 * period), *_scattered(inside)) if c in inside]
        if alike or all(at(c) == at(1 + (c - 1) % period) for c in checks):
            weight = {1 + r: len(range(1 + r, length - 1, period)) for r in range(min(period, len(inside)))}
            for edge in (0, length - 1):
                same = 1 + (edge - 1) % period
                if same in weight and at(edge) == at(same):
                    weight[same] += 1
                else:
                    weight[edge] = 1
            return _Axis(weight)
    return None


def _classes(probe: Probe, resident: int) -> Plan | None:
    """Make a plan in which blocks with the same counts of executions form a class, and one block stands for each class.

    Returns None where the counts depend on global memory, where there are more than `_MOST_CLASSES` classes, or where
    the blocks of a class that are executed differ in their access shapes.
    """
    members: dict[bytes, list[int]] = {}
    blocks = range(probe.executor.launch.blocks)
    for first in blocks[::_COUNTED_AT_ONCE]:
        some = blocks[first : first + _COUNTED_AT_ONCE]
        counts = probe.executor.counts(some)
        if counts is None:
            return None
        for block, executed, threads in zip(some, *counts, strict=True):
            members.setdefault(hashlib.sha256(executed.tobytes() + threads.tobytes()).digest(), []).append(block)
        if len(members) > _MOST_CLASSES:
            return None
    chosen: dict[int, float] = {}
    for alike in members.values():
        tried = {alike[0], alike[-1], alike[len(alike) // 2], *_scattered(alike)}
        if len({probe.of_block(block) for block in tried}) > 1:
            return None
        chosen[alike[len(alike) // 2]] = float(len(alike))
    return _sample(chosen, resident)


def _scattered(inside: Sequence[int]) -> tuple[int, int]:
    """Pick two of the coordinates `inside`: the same two in every run, at places that follow no short period."""
    return (inside[int(len(inside) * 0.381966)], inside[int(len(inside) * 0.763932)])


def _product(launch: Launch, axes: list[_Axis], resident: int, depth: int) -> Plan:
    gx, gy, _ = launch.grid
    if depth > 1:
        axes = [*axes[:2], _Axis(dict.fromkeys(range(depth), 1))]
    chosen = {
        x + gx * (y + gy * z): float(axes[0].weight[x] * axes[1].weight[y] * axes[2].weight[z])
        for x in axes[0].representatives()
        for y in axes[1].representatives()
        for z in axes[2].representatives()
    }
    heaviest = max(chosen, key=lambda b: chosen[b])
    for step, length, place in ((1, gx, heaviest % gx), (gx, gy, heaviest // gx % gy)):
        if (
            place + 1 < length
        ):  # it stands for none, but tells the cache models where the next block along this axis reads
            chosen.setdefault(heaviest + step, 0.0)
    # The blocks of a column differ, and an SM gets all of them in turn.
    column = {b for b in chosen if b % (gx * gy) == heaviest % (gx * gy)} if depth > 1 else set()
    return _sample(chosen, resident, column)


def _sample(chosen: dict[int, float], resident: int, timed: Collection[int] = ()) -> Plan:
    """Make the plan for `chosen`, which maps each block to how many blocks it stands for.

    Instruction streams are recorded for the blocks in `timed`. Where `timed` is empty, they are recorded for the blocks
    that stand for most.
    """
    blocks = sorted(chosen)
    timed = timed or sorted((b for b in blocks if chosen[b]), key=lambda b: -chosen[b])[: max(1, min(resident, 4))]
    return Plan(tuple(blocks), tuple(chosen[b] for b in blocks), tuple(b in timed for b in blocks), sampled=True)
