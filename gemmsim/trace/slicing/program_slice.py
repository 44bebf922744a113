"""Makes a program slice: the program without the arithmetic that its trace does not depend on.

Addresses, guards, branches and barriers decide what a block's trace holds. To find out whether two blocks leave the
same trace, nothing else has to be computed; in a GEMM the products, and the loads that only feed them, are most of the
work. `program_slice` finds by dataflow which rows matter at each micro-operation. Micro-operations whose results do not
matter become idle, but they are still counted, and every access is still checked and recorded.

The search goes backwards from guards, addresses, branch conditions and barriers. A load from shared memory whose result
matters makes everything stored to shared memory matter. Stores to global memory are left out instead; if a load that
matters then reads from an array with such a store, the executor stops (`words.STALE`) and the whole program runs. Local
memory at fixed places of the stack is followed like registers, and bits of registers that hold predicates by themselves
(`packed_bits`).

The rows of a lane are followed along the paths that its thread can take. Rows that all paths of a warp share (uniform
registers) matter everywhere. A shuffle reads no lane that takes no part in it. Whatever is not known counts as
mattering.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import Step, rows_of, stack_rows, step_of
from gemmsim.trace.slicing.packed_bits import split_bits

_NOP = CONTROL_NUMBER["nop"]
# Micro-operations for which warps wait, and which a slice without accesses would lose
_UNCOUNTED = [CONTROL_NUMBER[name] for name in ("mbarrier", "copy_in_bulk")]


@cached_by_identity(8)
def program_slice(program: MicroProgram, accesses: bool = True) -> NDArray[np.uint32] | None:
    """Return the code of `program` in which a micro-operation is idle if no address, guard, branch or barrier needs it.

    Returns uint32 [micro-operations, micro.COLUMNS], in which micro-operations, instructions and accesses have the same
    numbers as in `program.code`. Without `accesses`, addresses do not matter and nothing is recorded: what is left only
    counts how often each instruction is executed, and by how many threads. Returns None where these counts depend on
    the content of global memory.
    """
    warp_rows = sum(rows_of(rows.start, len(rows)) for rows in program.warp_rows)
    rows = program.code.tolist()
    steps = [step_of(row, number, warp_rows) for number, row in enumerate(rows)]
    for row, step in zip(rows, steps, strict=True):
        step.effect |= bool(row[micro.FLAGS] & micro.ANNOUNCES)  # another block may wait for it
    if not accesses and np.isin(program.code[:, micro.OP], _UNCOUNTED).any():
        return None
    on_stack = stack_rows(rows, steps, program.rows)
    if not accesses:
        for step in steps:
            if step.access:
                step.reads, step.control = step.reads | step.control, 0
    packed = split_bits(program, rows, steps, program.rows + on_stack)
    needed = _needed(steps, program, program.rows + on_stack + packed)
    code = program.code.copy()
    globally = np.isin(code[:, micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK, (micro.GLOBAL, micro.GENERIC))
    if not accesses and any(steps[number].access for number in np.flatnonzero(globally & needed).tolist()):
        return None
    for number in np.flatnonzero(~needed).tolist():
        if steps[number].access and accesses:
            code[number, micro.ACCESS] |= micro.UNMOVED_BIT
        else:
            code[number, micro.OP], code[number, micro.DETAIL] = _NOP, 0
    _join(code, program.start)
    return np.ascontiguousarray(code)


class _Rows:
    """Sets of rows that matter, each set as one number.

    The lowest `count` bits stand for the rows that matter to all threads. For each guard as many bits follow, which
    stand for the rows that matter only where that guard now holds.
    """

    def __init__(self, count: int, steps: list[Step]) -> None:
        guards = {step.guard: step for step in steps if step.guard}
        place = {guard: count * (i + 1) for i, guard in enumerate(guards)}
        repeat = sum(1 << count * i for i in range(len(guards) + 1))
        self._all, self._places = (1 << count) - 1, [0, *place.values()]
        self._of_row: dict[int, list[int]] = {}
        for guard, at in place.items():
            assert guard
            self._of_row.setdefault(guard[0], []).append(at)
        guard_rows = sum(1 << row for row in self._of_row)
        # For each step: its results under every guard, the guard that it runs under, those results that are overwritten
        # for all its threads, and the guards that it changes.
        self.results = [step.writes * repeat for step in steps]
        self.under = [place[step.guard] if step.guard else 0 for step in steps]
        self.new = [
            0 if not step.overwrites else step.writes << at if at else everywhere
            for step, everywhere, at in zip(steps, self.results, self.under, strict=True)
        ]
        self.changes = [step.writes & guard_rows for step in steps]

    def unconditional(self, changed: int, matter: int) -> int:
        """Return the rows that matter before a step that writes the guards `changed`, from those after it (`matter`).

        Rows that matter after the step only where a changed guard holds may matter to all threads before it.
        """
        for row, places in self._of_row.items():
            if changed >> row & 1:
                for place in places:
                    part = matter >> place & self._all
                    matter = matter & ~(part << place) | part
        return matter


def _needed(steps: list[Step], program: MicroProgram, row_count: int) -> NDArray[np.bool_]:
    """Return bool [micro-operations]: whether a micro-operation writes a row that matters, or has `Step.effect`."""
    rows, needed = _Rows(row_count, steps), np.array([step.effect for step in steps])
    everywhere, spaces, anywhere = rows_of(program.path_rows.start, len(program.path_rows)), 0, 0
    for warp_rows in program.warp_rows:
        everywhere |= rows_of(warp_rows.start, len(warp_rows))
    blocks = _blocks(steps, program.start)
    begin = {block.start: 0 for block in blocks}
    seen: dict[int, tuple[int, ...]] = {}  # by the start of a block: the sets with which it was last looked at
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
                read = step.control
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


def _blocks(steps: list[Step], start: NDArray[np.int32]) -> list[range]:
    """Divide the code into runs of micro-operations, each entered only at its first and left only at its last one."""
    entries = {0, *(number for step in steps for number in step.next or () if step.effect)}
    if any(step.next is None for step in steps):
        entries.update(start.tolist())
    places = sorted(entry for entry in entries if entry < len(steps))
    return [range(a, b) for a, b in zip(places, [*places[1:], len(steps)], strict=True)]


def _join(code: NDArray[np.uint32], start: NDArray[np.int32]) -> None:
    """Replace instructions in a row that do nothing for any thread by one "idle" step, which says how many they are."""
    first = start[:-1]
    nothing = np.logical_and.reduceat((code[:, micro.OP] == _NOP) & (code[:, micro.DETAIL] == 0), first)
    nothing &= code[first, micro.FLAGS] & micro.UNGUARDED != 0
    number = np.arange(len(first))
    # The next instruction that does something, or the end of the program
    after = np.minimum.accumulate(np.where(nothing, len(first), number)[::-1])[::-1][nothing]
    at = first[nothing]
    code[at, micro.OP], code[at, micro.IMMEDIATE] = CONTROL_NUMBER["idle"], after - number[nothing]
