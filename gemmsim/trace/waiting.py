"""Says where the threads of a block wait forever: at mbarriers, and what these lack, and at barriers of the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import ZERO, Instruction, OperandKind, Program
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.support.plurals import plural, verb
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.lower.context import CONTROL_NUMBER

_COUNT, _BYTES_BITS = (1 << 20) - 1, 22  # fields of an mbarrier: see `gemmsim.trace.engine.mbarrier`
_SHOWN = 4  # barriers that a message names
_WARPGROUP = -1  # in place of the number of a barrier


@dataclass(frozen=True)
class Wait:
    """Threads of a warp that wait at an instruction: at an mbarrier's address, or (mbarrier False) at barrier `at`, or
    (`at` is _WARPGROUP) for the other warps of the warpgroup."""

    warp: int
    lanes: int
    instruction: Instruction
    mbarrier: bool
    at: int


_PREFETCHED = (
    "bulk prefetches (UTMAPF, UBLKPF) are not counted, and what they bring to L2 comes no earlier for having been asked"
)


@cached_by_identity(8)
def notes_of(program: Program) -> tuple[str, ...]:
    """Return what is left out of a prediction of a program."""
    return (_PREFETCHED,) * any(row_of(i).kind is Kind.BULK_PREFETCH for i in program.instructions)


def has_mbarriers(lowered: MicroProgram) -> bool:
    """Whether warps of a program may wait at mbarriers."""
    return bool((lowered.code[:, micro.OP] == CONTROL_NUMBER["mbarrier"]).any())


def waits_at_mbarriers(program: Program, lowered: MicroProgram, state: BlockState) -> str:
    """Return what the block waits for, "" where no thread waits at an mbarrier."""
    waits = waits_of(program, lowered, state)
    if not any(wait.mbarrier or wait.at == _WARPGROUP for wait in waits):
        return ""
    groups: dict[tuple[bool, int, int], list[Wait]] = {}
    for wait in sorted(waits, key=lambda one: not one.mbarrier):
        groups.setdefault((not wait.mbarrier, wait.at, wait.instruction.offset), []).append(wait)
    told = [_told(state, group) for group in groups.values()]
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return f"threads wait for each other forever: {'; '.join(told[:_SHOWN])}{more}"


def waits_of(program: Program, lowered: MicroProgram, state: BlockState) -> list[Wait]:
    """Return which threads of a block wait at mbarriers or barriers, warp by warp."""
    return [wait for warp in range(len(state.warps)) for wait in _waits(program, lowered, state, warp)]


def _waits(program: Program, lowered: MicroProgram, state: BlockState, number: int) -> Iterator[Wait]:
    warp = state.warps[number].tolist()
    paths = [warp[words.PATHS_AT + words.PATH_WORDS * n :][: words.PATH_WORDS] for n in range(warp[words.PATH_COUNT])]
    if warp[words.ACTIVE]:
        paths.append([warp[words.PC], warp[words.ACTIVE], words.RUNNABLE, 0])
    rows = state.registers[number].reshape(-1, WARP_LANES)
    for pc, lanes, reason, need in paths:
        if reason == words.WAIT_BLOCK:
            yield Wait(number, lanes, _instruction(program, lowered, pc - 1), False, need)
        elif lowered.code[pc, micro.OP] == CONTROL_NUMBER["order_groups"]:
            yield Wait(number, lanes, _instruction(program, lowered, pc), False, _WARPGROUP)
        elif reason == words.RUNNABLE and (found := _checked(lowered, pc)) is not None:
            instruction = _instruction(program, lowered, found)
            lane = (lanes & -lanes).bit_length() - 1
            yield Wait(number, lanes, instruction, True, _address(lowered, instruction, rows[:, lane]))


def _instruction(program: Program, lowered: MicroProgram, pc: int) -> Instruction:
    return program.instructions[int(lowered.code[pc, micro.INSTRUCTION])]


def _checked(lowered: MicroProgram, pc: int) -> int | None:
    """Return the check of a phase that a path repeats or has just given up; None where it does something else."""
    for at in (pc - 1, pc, pc + 1, pc + 2):
        if 0 <= at < len(lowered.code) and lowered.code[at, micro.OP] == CONTROL_NUMBER["mbarrier"]:
            return at if lowered.code[at, micro.DETAIL] in (micro.TEST, micro.TRY) else None
    return None


def _address(lowered: MicroProgram, instruction: Instruction, lane_words: np.ndarray) -> int:
    operand = next(o for o in instruction.operands if o.kind is OperandKind.ADDRESS)
    base = 0 if operand.index == ZERO else int(lane_words[operand.index])
    more = 0 if operand.uniform == ZERO else int(lane_words[lowered.warp_rows[0].start + operand.uniform])
    return (base + more + operand.value) & ((1 << words.RANK_SHIFT) - 1)  # in the block's own shared memory


def _told(state: BlockState, group: list[Wait]) -> str:
    first = group[0]
    source = first.instruction.sources[-1] if first.instruction.sources else None
    line = f"line {source.line} of {source.file}, " if source else ""
    who = _numbers(sorted({wait.warp for wait in group}))
    alone = len(group) == 1 and first.lanes.bit_count() < WARP_LANES
    count = first.lanes.bit_count()
    some = f"{plural(count, 'thread')} of " if alone else ""
    where = f"{some}warp{'s' * (',' in who or '-' in who)} {who} ({line}'{first.instruction.text}' at "
    inner = [str(one.line) for one in reversed(first.instruction.sources[:-1])]
    inlined = f", inlined from line{'s' * (len(inner) > 1)} {', '.join(inner)}" if inner else ""
    where += f"{first.instruction.offset:#06x}{inlined})"
    if first.at == _WARPGROUP:
        where_to = "WARPGROUP.ARRIVE" if "WAIT" in first.instruction.modifiers else "multiplications"
        return f"warps of a warpgroup that do not come to the same {where_to} hold {where}"
    if not first.mbarrier:
        arrived = int(state.barriers[words.BARRIER_WORDS * first.at + words.BARRIER_ARRIVED])
        threads = f"{arrived} {verb(arrived, 'thread has', 'threads have')}"
        return f"barrier {first.at}, at which {threads} arrived, holds {where}"
    return f"{_lacking(state, first.at)} holds {where}"


def _lacking(state: BlockState, address: int) -> str:
    """Say which phase of an mbarrier is under way, and what it still expects."""
    held = int(state.shared[address // 4]) | int(state.shared[address // 4 + 1]) << 32
    expected, missing = -(held >> 1) & _COUNT, -(held >> 43) & _COUNT
    more = (held >> 21) & ((1 << _BYTES_BITS) - 1)
    more -= (more >> (_BYTES_BITS - 1)) << _BYTES_BITS
    said = [f"lacks {missing} of {expected} arrivals"] * bool(missing)
    said += [f"lacks {plural(more, 'byte')}"] * (more > 0)
    said += [f"got {plural(-more, 'byte')} that it did not expect"] * (more < 0)
    if not expected and not missing:
        said = ["was not initialised"]
    phase = int(state.phases[address // 8])
    return f"the mbarrier at {address:#x} of shared memory, phase {phase}, which {' and '.join(said)},"


def _numbers(numbers: Iterable[int]) -> str:
    """Return "0-3, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
