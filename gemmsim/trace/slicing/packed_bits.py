"""Follows single bits of registers in which a program keeps predicates, for `gemmsim.trace.slicing.program_slice`.

Where predicates are too few, compilers keep some in bits of a register: R = R & ~4, and where it holds R = R | 4, then
later P = R & 4. The other bits of R stay what they were, an old product for instance, which therefore is read, but
matters only if somebody reads those bits. So each bit that is set alone becomes a row of its own, beside the row that
then stands for all other bits of the register.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.lower.context import ALL, OP_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import Step, rows_of

_AND, _OR = OP_NUMBER["lop3_c0"], OP_NUMBER["lop3_fc"]
_SINK_ROWS = 8  # rows that follow the row of all ones; what is written there is never read


@dataclass(frozen=True)
class _Masked:
    """An operation of a register and an immediate: is it an OR, else an AND; which row; with what; whether its result
    is the same register and nothing else."""

    is_or: bool
    row: int
    mask: int
    in_place: bool


def split_bits(program: MicroProgram, code: list[list[int]], steps: list[Step], first: int) -> int:
    """Let `steps` read and write bits of registers where these are set alone, as rows that are numbered from `first`
    on; return how many such rows there are."""
    literals = dict(program.literals)
    masked = {number: found for number, words in enumerate(code) if (found := _masked(program, words, literals))}
    bits: dict[int, dict[int, int]] = {}  # {row of a register: {mask of a bit: its row}}
    count = 0
    for one in masked.values():
        if one.is_or and one.in_place and one.mask.bit_count() == 1 and one.mask not in bits.get(one.row, {}):
            bits.setdefault(one.row, {})[one.mask] = first + count
            count += 1
    for row, of_mask in bits.items():
        every, known = sum(1 << bit for bit in of_mask.values()), sum(of_mask)
        for number, step in enumerate(steps):
            found = masked.get(number)
            if found is not None and found.row == row:
                _follow(step, found, of_mask, known)
            else:
                for name in ("writes", "reads", "control", "unguarded"):
                    rows = getattr(step, name)
                    if rows >> row & 1:
                        setattr(step, name, rows | every)
    return count


def _follow(step: Step, found: _Masked, of_mask: dict[int, int], known: int) -> None:
    """Let an operation on a register and an immediate read and write only the bits that it does.

    known  the bits of `of_mask`
    """
    itself, every = 1 << found.row, sum(1 << bit for bit in of_mask.values())
    changed = found.mask if found.is_or else ~found.mask & ALL
    if found.in_place and changed & ~known == 0:  # the other bits stay what they were
        step.reads &= ~itself
        step.writes = step.writes & ~itself | _rows(changed, of_mask)
        return
    if found.is_or:
        step.reads |= every
    else:
        rest = itself if found.mask & ~known else 0
        step.reads = step.reads & ~itself | rest | _rows(found.mask, of_mask)
    if step.writes & itself:
        step.writes |= every


def _rows(mask: int, of_mask: dict[int, int]) -> int:
    return sum(1 << row for bit, row in of_mask.items() if bit & mask)


def _masked(program: MicroProgram, words: list[int], literals: dict[int, int]) -> _Masked | None:
    """Return what is known of an AND or OR of a thread's register and an immediate; None of any other operation."""
    if words[micro.OP] not in (_AND, _OR) or words[micro.FLAGS] & micro.UNIFORM:
        return None
    places = (micro.SOURCE, micro.SOURCE + micro.SOURCE_COLUMNS)
    if any((words[at + 1], words[at + 2]) != (ALL, 0) for at in places):
        return None
    a, b = (words[at] // WARP_LANES for at in places)
    row, literal = (a, b) if b in literals else (b, a)
    if literal not in literals or row in literals or _shared(program) >> row & 1:
        return None
    result, flag = (words[micro.RESULT + n] // WARP_LANES for n in range(2))
    alone = flag in range(program.ones + 1, program.ones + 1 + _SINK_ROWS)
    return _Masked(words[micro.OP] == _OR, row, literals[literal] & ALL, alone and result == row)


def _shared(program: MicroProgram) -> int:
    """Return the rows that are not a thread's alone."""
    rows = rows_of(program.path_rows.start, len(program.path_rows))
    return rows | sum(rows_of(of_warp.start, len(of_warp)) for of_warp in program.warp_rows)
