"""A program without the arithmetic that its trace does not depend on.

What a block's trace holds is decided by addresses, guards, branches and barriers. Where the sampler asks whether two
blocks leave the same trace, nothing else has to be computed: in a GEMM the products, and the loads that only feed them,
are most of the work. `reduced` finds by dataflow which rows matter at each micro-operation and makes the others idle;
they are still counted, and every access is still checked and recorded.

Rows matter backwards from guards, addresses, branch conditions and barriers. A load from shared memory whose result
matters makes all that is stored there matter. Global memory is watched instead while the reduced program runs: a load
that matters from an array that something was stored to, in name only, ends it (`state.STALE`), and the whole program
runs. Local memory at fixed places of the stack is followed like registers.

A lane's rows follow the paths that its thread can take; those that all paths of a warp share (uniform registers) matter
everywhere. A shuffle that matters ends the reduced program where it reads a lane that takes no part. What is not known
counts as mattering.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.lanes import WIDTH_BITS
from gemmsim.isa.semantics.registry import load
from gemmsim.kept import by_identity
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER, MicroProgram
from gemmsim.trace.lower.tensor import F64
from gemmsim.trace.micro import (
    ACCESS,
    ATOMIC,
    CONSTANT,
    DETAIL,
    FLAGS,
    GENERIC,
    GLOBAL,
    GUARD,
    GUARD_XOR,
    IMMEDIATE,
    KIND_SHIFT,
    LANES,
    LOAD,
    LOCAL,
    OP,
    RESULT,
    SECOND_IMMEDIATE,
    SHARED,
    SHUFFLES,
    SIZE_MASK,
    SOURCE,
    SOURCE_COLUMNS,
    SOURCE_FLIP,
    SPACE_MASK,
    SPACE_SHIFT,
    TARGET,
    THIRD_IMMEDIATE,
    UNGUARDED,
    UNMOVED_BIT,
)

_BY_NUMBER = {number: name for name, number in CONTROL_NUMBER.items()}
_SPACES = {GLOBAL: 0, SHARED: 2, LOCAL: 4, GENERIC: 6, CONSTANT: 0}
_LARGEST_STACK = 1 << 16  # bytes


@dataclass
class _Step:
    """One micro-operation; rows are bits of a number.

    writes      what it writes
    reads       what that depends on
    always      what matters whether or not a result does: address, condition
    unguarded   what matters to all threads: the guard itself
    guard       row and inversion of its guard, None where it has none
    kills       rows in `writes` are new for all threads for which the guard holds
    next        micro-operations that may follow; None: any that begins an instruction
    effect      does something besides writing rows
    spaces      memory spaces that it reads (an atomic: and writes)
    stores      memory spaces that it writes `reads` to
    access      is a memory access
    """

    writes: int = 0
    reads: int = 0
    always: int = 0
    unguarded: int = 0
    guard: tuple[int, int] | None = None
    kills: bool = False
    next: tuple[int, ...] | None = ()
    effect: bool = False
    spaces: int = 0
    stores: int = 0
    access: bool = False


@by_identity(8)
def reduced(program: MicroProgram, accesses: bool = True) -> NDArray[np.uint32] | None:
    """The micro-operations of `program`, those idle that no address, guard, branch or barrier depends on.

    Same numbers, instructions and accesses as `program.code`, uint32 [micro-operations, micro.COLUMNS]. Without
    `accesses` addresses matter no more than other numbers, and nothing is recorded: what is left counts how often each
    instruction is executed, and by how many threads. None where that depends on what is in global memory.
    """
    warp_rows = sum(_rows(rows.start, len(rows)) for rows in program.warp_rows)
    words = program.code.tolist()
    steps = [_step(row, number, warp_rows) for number, row in enumerate(words)]
    stack_rows = _stack(words, steps, program.rows)
    if not accesses:
        for step in steps:
            if step.access:
                step.reads, step.always = step.reads | step.always, 0
    needed = _needed(steps, program, program.rows + stack_rows)
    code = program.code.copy()
    globally = np.isin(code[:, ACCESS] >> SPACE_SHIFT & SPACE_MASK, (GLOBAL, GENERIC))
    if not accesses and any(steps[number].access for number in np.flatnonzero(globally & needed).tolist()):
        return None
    code[needed & (code[:, OP] == CONTROL_NUMBER["exchange"]), ACCESS] |= UNMOVED_BIT
    for number in np.flatnonzero(~needed).tolist():
        if steps[number].access and accesses:
            code[number, ACCESS] |= UNMOVED_BIT
        else:
            code[number, OP], code[number, DETAIL] = CONTROL_NUMBER["nop"], 0
    _join(code, program.start)
    return np.ascontiguousarray(code)


class _Rows:
    """Sets of rows that matter, as one number: `count` bits for those that matter to all threads, then as many for each
    guard, for those that matter only where it holds now."""

    def __init__(self, count: int, steps: list[_Step]) -> None:
        guards = {step.guard: step for step in steps if step.guard}
        place = {guard: count * (i + 1) for i, guard in enumerate(guards)}
        repeat = sum(1 << count * i for i in range(len(guards) + 1))
        self._all, self._places = (1 << count) - 1, [0, *place.values()]
        self._of_row: dict[int, list[int]] = {}
        for guard, at in place.items():
            assert guard
            self._of_row.setdefault(guard[0], []).append(at)
        guard_rows = sum(1 << row for row in self._of_row)
        # By step: where its results matter to anyone, those that are new, what it reads, and whether guards change
        self.results = [step.writes * repeat for step in steps]
        self.under = [place[step.guard] if step.guard else 0 for step in steps]
        self.new = [
            0 if not step.kills else step.writes << at if at else everywhere
            for step, everywhere, at in zip(steps, self.results, self.under, strict=True)
        ]
        self.changes = [step.writes & guard_rows for step in steps]

    def unconditional(self, changed: int, matter: int) -> int:
        """Before guards are written: what matters under them afterwards may matter to all threads."""
        for row, places in self._of_row.items():
            if changed >> row & 1:
                for place in places:
                    part = matter >> place & self._all
                    matter = matter & ~(part << place) | part
        return matter


def _needed(steps: list[_Step], program: MicroProgram, row_count: int) -> NDArray[np.bool_]:
    """bool [micro-operations]: whether what it writes matters, or it has an effect."""
    rows, needed = _Rows(row_count, steps), np.array([step.effect for step in steps])
    everywhere, spaces, anywhere = _rows(program.path_rows.start, len(program.path_rows)), 0, 0
    for warp_rows in program.warp_rows:
        everywhere |= _rows(warp_rows.start, len(warp_rows))
    blocks = _blocks(steps, program.start)
    begin = {block.start: 0 for block in blocks}
    seen: dict[int, tuple[int, ...]] = {}  # what a block was last looked at with
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            following = steps[block[-1]].next
            matter = everywhere | (anywhere if following is None else 0)
            for number in following or ():
                matter |= begin.get(number, 0)
            now = (matter, everywhere, spaces)
            if seen.get(block.start) == now:
                continue
            for number in reversed(block):
                step = steps[number]
                wanted = rows.results[number] & (matter | everywhere) or step.stores & spaces or step.effect
                matter &= ~rows.new[number]
                if rows.changes[number]:
                    matter = rows.unconditional(rows.changes[number], matter)
                read = step.always
                if wanted:
                    needed[number] = True
                    read |= step.reads
                    spaces |= step.spaces
                matter |= read << rows.under[number] | step.unguarded
            seen[block.start] = now
            changed = True
            begin[block.start] |= matter
            anywhere |= matter
    return needed


def _blocks(steps: list[_Step], start: NDArray[np.int32]) -> list[range]:
    """Runs of micro-operations that are entered at their first and left at their last one only."""
    entries = {0, *(number for step in steps for number in step.next or () if step.effect)}
    if any(step.next is None for step in steps):
        entries.update(start.tolist())
    places = sorted(entry for entry in entries if entry < len(steps))
    return [range(a, b) for a, b in zip(places, [*places[1:], len(steps)], strict=True)]


def _join(code: NDArray[np.uint32], start: NDArray[np.int32]) -> None:
    """Instructions side by side that do nothing for all threads become one step: each says how many follow."""
    first = start[:-1]
    nothing = np.logical_and.reduceat(code[:, OP] == CONTROL_NUMBER["nop"], first)
    nothing &= code[first, FLAGS] & UNGUARDED != 0
    number = np.arange(len(first))
    # The next instruction that does something, or the end
    after = np.minimum.accumulate(np.where(nothing, len(first), number)[::-1])[::-1][nothing]
    at = first[nothing]
    code[at, OP], code[at, IMMEDIATE] = CONTROL_NUMBER["idle"], after - number[nothing]
    code[at, TARGET] = start[after]


def _rows(first: int, count: int) -> int:
    return ((1 << count) - 1) << first


def _row(words: list[int], column: int, count: int = 1) -> int:
    return _rows(words[column] // LANES, count)


def _source(words: list[int], number: int, count: int = 1) -> int:
    return _row(words, SOURCE + SOURCE_COLUMNS * number, count)


def _step(words: list[int], number: int, warp_rows: int) -> _Step:
    step = _Step(kills=True, next=(number + 1,))
    if not words[FLAGS] & UNGUARDED:
        step.unguarded = _row(words, GUARD)
        if step.unguarded & warp_rows:  # another path of the warp may write it in between
            step.kills = False
        else:
            step.guard = words[GUARD] // LANES, words[GUARD_XOR]
    layouts = _layouts()
    if words[OP] < len(layouts):
        results, sources = layouts[words[OP]]
        for column, bits in results:
            step.writes |= bits << words[column] // LANES
        for column, bits in sources:
            step.reads |= bits << words[column] // LANES
        return step
    name = _BY_NUMBER[words[OP]]
    {"access": _access, "load_matrix": _access, "multiply_matrix": _matrix, "exchange": _exchange}.get(name, _control)(
        step, words, number
    )
    return step


@cache
def _layouts() -> tuple[tuple[list[tuple[int, int]], list[tuple[int, int]]], ...]:
    """Of each lane operation: columns of its results and of its sources, and their rows as bits."""
    return tuple(
        (
            [(RESULT + i, _bits(type_)) for i, type_ in enumerate(op.results)],
            [(SOURCE + SOURCE_COLUMNS * i, _bits(type_)) for i, type_ in enumerate(op.sources)],
        )
        for op in load().values()
    )


def _bits(type_: str) -> int:
    return 1 if type_ == "pred" or WIDTH_BITS[type_] == 32 else 3


def _access(step: _Step, words: list[int], number: int) -> None:
    how = words[ACCESS]
    step.access = how >> SPACE_SHIFT & SPACE_MASK != CONSTANT
    space, kind = _SPACES[how >> SPACE_SHIFT & SPACE_MASK], how >> KIND_SHIFT
    registers = max(1, (how & SIZE_MASK) // 4)
    step.always |= _source(words, 0, 2)
    if _BY_NUMBER[words[OP]] == "load_matrix":
        step.writes, step.spaces = _row(words, RESULT, words[DETAIL] & 7), space
    elif kind == LOAD:
        step.writes, step.spaces = _row(words, RESULT, registers), space
    elif kind == ATOMIC:
        step.writes = _row(words, RESULT, registers) | _row(words, RESULT + 1)
        step.reads = _source(words, 1, registers) | _source(words, 2, registers)
        step.spaces = step.stores = space
    else:
        step.reads, step.stores = _source(words, 1, registers), space


def _matrix(step: _Step, words: list[int], number: int) -> None:
    """Fragments may take up to 8 registers; rows beyond a fragment matter needlessly at worst."""
    wide = 2 if words[SECOND_IMMEDIATE] == F64 else 1
    groups = words[THIRD_IMMEDIATE] >> 3
    step.writes = _row(words, RESULT, 2 * groups * wide)
    step.reads = _source(words, 0, 8 * wide) | _source(words, 1, 8 * wide) | _source(words, 2, 2 * groups * wide)


def _stack(code: list[list[int]], steps: list[_Step], first: int) -> int:
    """Words of the stack as rows from `first` on; how many. 0 where an access may be anywhere in local memory.

    They are rows where each access is at a fixed distance from one register, set before all of them and never again.
    """
    found: list[tuple[int, int, int]] = []  # micro-operation, offset, bytes
    bases = set()
    for number, words in enumerate(code):
        space = words[ACCESS] >> SPACE_SHIFT & SPACE_MASK
        if not steps[number].access or space not in (LOCAL, GENERIC):
            continue
        address, size = code[number - 1], words[ACCESS] & SIZE_MASK
        offset = address[SECOND_IMMEDIATE]
        known = address[OP] == OP_NUMBER["address32"] and address[RESULT] == words[SOURCE] and address[IMMEDIATE] == 1
        known = known and space == LOCAL and words[ACCESS] >> KIND_SHIFT != ATOMIC
        if not known or size < 4 or offset % 4 or offset > _LARGEST_STACK:
            return 0
        bases.add((address[SOURCE] // LANES, address[SOURCE + SOURCE_COLUMNS] // LANES))
        found.append((number, offset, size))
    if len(bases) != 1:
        return 0
    base = sum(1 << row for row in set(bases.pop()))
    entries = [number for at, step in enumerate(steps) for number in step.next or () if number != at + 1]
    set_at = [number for number, step in enumerate(steps) if step.writes & base]
    if max(set_at, default=-1) >= min([found[0][0], *entries]) or any(step.next is None for step in steps):
        return 0
    for number, offset, size in found:
        rows = _rows(first + offset // 4, size // 4)
        if steps[number].stores:
            steps[number].writes, steps[number].stores = rows, 0
        else:
            steps[number].reads, steps[number].spaces = rows, 0
    return max(offset + size for _, offset, size in found) // 4


def _exchange(step: _Step, words: list[int], number: int) -> None:
    step.writes = _row(words, RESULT) | _row(words, RESULT + 1) | _row(words, RESULT + 2)
    sources = 3 if words[DETAIL] in SHUFFLES.values() else 1
    for source in range(sources):
        step.reads |= _source(words, source)


def _control(step: _Step, words: list[int], number: int) -> None:
    name = _BY_NUMBER[words[OP]]
    step.effect, kills, step.kills = True, step.kills, False
    if name in ("branch", "branch_divergent", "jump", "leave", "converge", "begin", "warpsync"):
        step.always |= _source(words, 0)
    if name in ("branch", "branch_divergent"):
        # Without a guard its place holds the row of all ones
        taken = not step.unguarded and words[SOURCE] == words[GUARD] and words[SOURCE_FLIP] == 0 and name == "branch"
        step.next = (words[TARGET],) if taken else (number + 1, words[TARGET])
    elif name == "jump":
        step.next = None
    elif name in ("exit", "trap") and not step.unguarded:
        step.next = ()
    elif name == "barrier":
        step.always |= _source(words, 0) | _source(words, 1) | _source(words, 2)
    elif name == "barrier_outcome":
        step.effect, step.kills = False, kills
        step.writes = _row(words, RESULT) | _row(words, RESULT + 1)
