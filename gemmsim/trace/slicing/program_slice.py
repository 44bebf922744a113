"""A program without the arithmetic that its trace does not depend on.

What a block's trace holds is decided by addresses, guards, branches and barriers. Where the sampler asks whether two
blocks leave the same trace, nothing else has to be computed: in a GEMM the products, and the loads that only feed them,
are most of the work. `reduced` finds by dataflow which rows matter at each micro-operation and makes the others idle;
they are still counted, and every access is still checked and recorded.

Rows matter backwards from guards, addresses, branch conditions and barriers. A load from shared memory whose result
matters makes all that is stored there matter. Global memory is watched instead while the reduced program runs: a load
that matters from an array that something was stored to, in name only, ends it (`words.STALE`), and the whole program
runs. Local memory at fixed places of the stack is followed like registers.

A lane's rows follow the paths that its thread can take; those that all paths of a warp share (uniform registers) matter
everywhere. A shuffle that matters ends the reduced program where it reads a lane that takes no part. What is not known
counts as mattering.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.lower.context import CONTROL_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import Step, rows_of, stack_rows, step_of


@cached_by_identity(8)
def reduced(program: MicroProgram, accesses: bool = True) -> NDArray[np.uint32] | None:
    """The micro-operations of `program`, those idle that no address, guard, branch or barrier depends on.

    Same numbers, instructions and accesses as `program.code`, uint32 [micro-operations, micro.COLUMNS]. Without
    `accesses` addresses matter no more than other numbers, and nothing is recorded: what is left counts how often each
    instruction is executed, and by how many threads. None where that depends on what is in global memory.
    """
    warp_rows = sum(rows_of(rows.start, len(rows)) for rows in program.warp_rows)
    rows = program.code.tolist()
    steps = [step_of(row, number, warp_rows) for number, row in enumerate(rows)]
    on_stack = stack_rows(rows, steps, program.rows)
    if not accesses:
        for step in steps:
            if step.access:
                step.reads, step.always = step.reads | step.always, 0
    needed = _needed(steps, program, program.rows + on_stack)
    code = program.code.copy()
    globally = np.isin(code[:, micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK, (micro.GLOBAL, micro.GENERIC))
    if not accesses and any(steps[number].access for number in np.flatnonzero(globally & needed).tolist()):
        return None
    code[needed & (code[:, micro.OP] == CONTROL_NUMBER["exchange"]), micro.ACCESS] |= micro.UNMOVED_BIT
    for number in np.flatnonzero(~needed).tolist():
        if steps[number].access and accesses:
            code[number, micro.ACCESS] |= micro.UNMOVED_BIT
        else:
            code[number, micro.OP], code[number, micro.DETAIL] = CONTROL_NUMBER["nop"], 0
    _join(code, program.start)
    return np.ascontiguousarray(code)


class _Rows:
    """Sets of rows that matter, as one number: `count` bits for those that matter to all threads, then as many for each
    guard, for those that matter only where it holds now."""

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


def _needed(steps: list[Step], program: MicroProgram, row_count: int) -> NDArray[np.bool_]:
    """bool [micro-operations]: whether what it writes matters, or it has an effect."""
    rows, needed = _Rows(row_count, steps), np.array([step.effect for step in steps])
    everywhere, spaces, anywhere = rows_of(program.path_rows.start, len(program.path_rows)), 0, 0
    for warp_rows in program.warp_rows:
        everywhere |= rows_of(warp_rows.start, len(warp_rows))
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


def _blocks(steps: list[Step], start: NDArray[np.int32]) -> list[range]:
    """Runs of micro-operations that are entered at their first and left at their last one only."""
    entries = {0, *(number for step in steps for number in step.next or () if step.effect)}
    if any(step.next is None for step in steps):
        entries.update(start.tolist())
    places = sorted(entry for entry in entries if entry < len(steps))
    return [range(a, b) for a, b in zip(places, [*places[1:], len(steps)], strict=True)]


def _join(code: NDArray[np.uint32], start: NDArray[np.int32]) -> None:
    """Instructions side by side that do nothing for all threads become one step: each says how many follow."""
    first = start[:-1]
    nothing = np.logical_and.reduceat(code[:, micro.OP] == CONTROL_NUMBER["nop"], first)
    nothing &= code[first, micro.FLAGS] & micro.UNGUARDED != 0
    number = np.arange(len(first))
    # The next instruction that does something, or the end
    after = np.minimum.accumulate(np.where(nothing, len(first), number)[::-1])[::-1][nothing]
    at = first[nothing]
    code[at, micro.OP], code[at, micro.IMMEDIATE] = CONTROL_NUMBER["idle"], after - number[nothing]
    code[at, micro.TARGET] = start[after]
