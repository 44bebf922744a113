"""Says what each micro-operation reads and writes, for the dataflow of `gemmsim.trace.slicing.program_slice`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gemmsim.isa.lanes import WIDTH_BITS
from gemmsim.isa.semantics.operations import load
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER
from gemmsim.trace.lower.tensor import F64, HALF, SPARSE_BIT

_BY_NUMBER = {number: name for name, number in CONTROL_NUMBER.items()}
_SPACES = {micro.GLOBAL: 0, micro.SHARED: 2, micro.LOCAL: 4, micro.GENERIC: 6, micro.CONSTANT: 0}
_LARGEST_STACK = 1 << 16  # bytes


@dataclass
class Step:
    """What the dataflow must know about one micro-operation. A row is one of a warp's state. A set of rows is a number
    with one bit for each row.

    writes      rows that it writes
    reads       rows that its results depend on
    control     rows that matter even where its results do not, since they hold an address or a condition
    unguarded   row of its guard, which matters to all threads; empty where it has none
    guard       (row, inversion) of its guard; None where it has none, or where another path of the warp may write it
    overwrites  whether it overwrites the rows in `writes` for all threads for which the guard holds
    next        numbers of the micro-operations that may follow it; None where the first of any instruction may
    effect      whether it does something besides writing rows
    spaces      memory spaces that it reads (an atomic also writes them), as bits of `_SPACES`; none for global memory
    stores      memory spaces to which it stores the rows in `reads`, as such bits
    access      whether it is an access to memory other than a constant bank
    """

    writes: int = 0
    reads: int = 0
    control: int = 0
    unguarded: int = 0
    guard: tuple[int, int] | None = None
    overwrites: bool = False
    next: tuple[int, ...] | None = ()
    effect: bool = False
    spaces: int = 0
    stores: int = 0
    access: bool = False


def rows_of(first: int, count: int) -> int:
    return ((1 << count) - 1) << first


def _row(words: list[int], column: int, count: int = 1) -> int:
    return rows_of(words[column] // WARP_LANES, count)


def _source(words: list[int], number: int, count: int = 1) -> int:
    return _row(words, micro.SOURCE + micro.SOURCE_COLUMNS * number, count)


def step_of(words: list[int], number: int, warp_rows: int) -> Step:
    step = Step(overwrites=True, next=(number + 1,))
    if not words[micro.FLAGS] & micro.UNGUARDED:
        step.unguarded = _row(words, micro.GUARD)
        if step.unguarded & warp_rows:  # another path of the warp may write it in between
            step.overwrites = False
        else:
            step.guard = words[micro.GUARD] // WARP_LANES, words[micro.GUARD_XOR]
    layouts = _layouts()
    if words[micro.OP] < len(layouts):
        results, sources = layouts[words[micro.OP]]
        for column, bits in results:
            step.writes |= bits << words[column] // WARP_LANES
        for column, bits in sources:
            step.reads |= bits << words[column] // WARP_LANES
        return step
    name = _BY_NUMBER[words[micro.OP]]
    _BY_NAME.get(name, _control)(step, words, number)
    return step


@cache
def _layouts() -> tuple[tuple[list[tuple[int, int]], list[tuple[int, int]]], ...]:
    """Return for each lane operation (column, rows as bits) of each of its results, and of each of its sources."""
    return tuple(
        (
            [(micro.RESULT + i, _bits(type_)) for i, type_ in enumerate(op.results)],
            [(micro.SOURCE + micro.SOURCE_COLUMNS * i, _bits(type_)) for i, type_ in enumerate(op.sources)],
        )
        for op in load().values()
    )


def _bits(type_: str) -> int:
    return 1 if type_ == "pred" or WIDTH_BITS[type_] == 32 else 3


def _access(step: Step, words: list[int], number: int) -> None:
    how = words[micro.ACCESS]
    step.access = how >> micro.SPACE_SHIFT & micro.SPACE_MASK != micro.CONSTANT
    space, kind = _SPACES[how >> micro.SPACE_SHIFT & micro.SPACE_MASK], how >> micro.KIND_SHIFT
    registers = max(1, (how & micro.SIZE_MASK) // 4)
    step.control |= _source(words, 0, 2)
    if _BY_NUMBER[words[micro.OP]] == "move_matrix" and kind == micro.LOAD:
        step.writes, step.spaces = _row(words, micro.RESULT, words[micro.DETAIL] & 7), space
    elif kind == micro.LOAD:
        step.writes, step.spaces = _row(words, micro.RESULT, registers), space
    elif kind == micro.ATOMIC:
        step.writes = _row(words, micro.RESULT, registers) | _row(words, micro.RESULT + 1)
        step.reads = _source(words, 1, registers) | _source(words, 2, registers)
        step.spaces = step.stores = space
    else:
        step.reads, step.stores = _source(words, 1, registers), space


def _matrix(step: Step, words: list[int], number: int) -> None:
    """Set the rows that a matrix multiplication writes and reads in `step`.

    A fragment is taken to have 8 registers. Where it has fewer, at worst some rows behind it matter needlessly.
    """
    wide = 2 if words[micro.SECOND_IMMEDIATE] == F64 else 1
    groups, accumulators = words[micro.THIRD_IMMEDIATE] >> 3, 1 if words[micro.SECOND_IMMEDIATE] == HALF else 2
    step.writes = _row(words, micro.RESULT, accumulators * groups * wide)
    step.reads = _source(words, 0, 8 * wide) | _source(words, 1, 8 * wide) | _source(words, 2, 2 * groups * wide)
    if words[micro.DETAIL] & SPARSE_BIT:
        step.reads |= _source(words, 3)  # metadata


def _warpgroup(step: Step, words: list[int], number: int) -> None:
    """Set what a warpgroup's multiplication writes and reads in `step`: registers, descriptors and shared memory."""
    accumulators = (2 if words[micro.SECOND_IMMEDIATE] == HALF else 4) * (words[micro.THIRD_IMMEDIATE] >> 3)
    step.writes = _row(words, micro.RESULT, accumulators)
    step.reads = _source(words, 0, 4) | _source(words, 1, 2) | _source(words, 2, accumulators) | _source(words, 3)
    step.spaces = _SPACES[micro.SHARED]


def stack_rows(code: list[list[int]], steps: list[Step], first: int) -> int:
    """Treat the words of the stack (local memory) as rows, which are numbered from `first` on.

    That is possible where each access is at a fixed distance from one register, which is set once, before all accesses.
    Returns how many rows there are then. Where an access may be anywhere, returns 0 and changes nothing.
    """
    found: list[tuple[int, int, int]] = []  # micro-operation, offset, bytes
    bases = set()
    for number, words in enumerate(code):
        space = words[micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK
        if not steps[number].access or space not in (micro.LOCAL, micro.GENERIC):
            continue
        address, size = code[number - 1], words[micro.ACCESS] & micro.SIZE_MASK
        offset = address[micro.SECOND_IMMEDIATE]
        known = (
            address[micro.OP] == OP_NUMBER["address32"]
            and address[micro.RESULT] == words[micro.SOURCE]
            and address[micro.IMMEDIATE] == 1
        )
        known = known and space == micro.LOCAL and words[micro.ACCESS] >> micro.KIND_SHIFT != micro.ATOMIC
        if not known or size < 4 or offset % 4 or offset > _LARGEST_STACK:
            return 0
        bases.add((address[micro.SOURCE] // WARP_LANES, address[micro.SOURCE + micro.SOURCE_COLUMNS] // WARP_LANES))
        found.append((number, offset, size))
    if len(bases) != 1:
        return 0
    base = sum(1 << row for row in set(bases.pop()))
    entries = [number for at, step in enumerate(steps) for number in step.next or () if number != at + 1]
    set_at = [number for number, step in enumerate(steps) if step.writes & base]
    if max(set_at, default=-1) >= min([found[0][0], *entries]) or any(step.next is None for step in steps):
        return 0
    for number, offset, size in found:
        rows = rows_of(first + offset // 4, size // 4)
        if steps[number].stores:
            steps[number].writes, steps[number].stores = rows, 0
        else:
            steps[number].reads, steps[number].spaces = rows, 0
    return max(offset + size for _, offset, size in found) // 4


def _exchange(step: Step, words: list[int], number: int) -> None:
    step.writes = _row(words, micro.RESULT) | _row(words, micro.RESULT + 1) | _row(words, micro.RESULT + 2)
    sources = 3 if words[micro.DETAIL] in micro.SHUFFLES.values() else 1
    for source in range(sources):
        step.reads |= _source(words, source)


def _control(step: Step, words: list[int], number: int) -> None:
    name = _BY_NUMBER[words[micro.OP]]
    step.effect, overwrites, step.overwrites = True, step.overwrites, False
    if name in ("branch", "branch_divergent", "jump", "leave", "converge", "begin", "warpsync"):
        step.control |= _source(words, 0)
    if name in ("branch", "branch_divergent"):
        # The column of the guard holds the row of all ones where there is no guard.
        taken = (
            not step.unguarded
            and words[micro.SOURCE] == words[micro.GUARD]
            and words[micro.SOURCE_FLIP] == 0
            and name == "branch"
        )
        step.next = (words[micro.TARGET],) if taken else (number + 1, words[micro.TARGET])
    elif name == "jump":
        step.next = None
    elif name == "external":
        step.writes = _row(words, micro.RESULT, 2)
    elif name in ("exit", "trap") and not step.unguarded:
        step.next = ()
    elif name == "copy_in_bulk":
        # A load fills shared memory, of which a store reads. What each is told matters: mbarriers count its bytes.
        step.effect, step.access = False, True
        step.control |= _source(words, 0) | _source(words, 1, 2) | _source(words, 2) | _source(words, 3)
        step.control |= _source(words, 4, words[micro.DETAIL] >> micro.RANK_SHIFT & 7)
        if words[micro.DETAIL] & micro.DIRECTION_MASK == micro.COPY_LOAD:
            step.stores = _SPACES[micro.SHARED]
        else:
            step.spaces = _SPACES[micro.SHARED]
    elif name == "mbarrier":
        step.control |= _source(words, 0, 2) | _source(words, 1) | _source(words, 2)
        step.writes = (
            _row(words, micro.RESULT, 2) if words[micro.DETAIL] == micro.ARRIVE_AT else _row(words, micro.RESULT)
        )
    elif name == "barrier":
        step.control |= _source(words, 0) | _source(words, 1) | _source(words, 2)
    elif name == "barrier_outcome":
        step.effect, step.overwrites = False, overwrites
        step.writes = _row(words, micro.RESULT) | _row(words, micro.RESULT + 1)


# Micro-operations that are neither arithmetic of lanes nor control
_BY_NAME = {
    **{"access": _access, "move_matrix": _access, "exchange": _exchange},
    **{"multiply_matrix": _matrix, "multiply_warpgroup": _warpgroup},
}
