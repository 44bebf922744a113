"""Tells apart the spaces that generic accesses (LD, ST, ATOM) reach, so that each request is counted where it goes; and
asynchronous copies (LDGSTS) that read global memory from those that only write zeros to shared memory.

A generic address is resolved to its window when it is accessed, and a trace has one record for each space that the
lanes of an access are in. The memory models take the requests of one instruction number to be of one space. So where
an instruction reaches several, its records of the second and third space get numbers of their own, behind those of the
program's instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import row_of
from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import Access, access_of
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS
from gemmsim.trace.types import WarpTrace
from gemmsim.trace.words import RANK_SHIFT, REMOTE_BASE

SPACES = ("global", "shared", "local", "dshared")  # the last one is shared memory of other blocks of the cluster
_OWN_BELOW, _SHARED_BELOW = REMOTE_BASE, 1 << 32  # see `WarpTrace`


@dataclass(frozen=True)
class Split:
    """A trace in which all records of one instruction number are in one space.

    trace        the trace; its numbers of instructions include those that are not of the program
    accesses     {number: how the records of that number access memory} of all that were executed
    instruction  int64 [numbers]: the instruction of the program that each number stands for
    """

    trace: WarpTrace
    accesses: dict[int, Access]
    instruction: NDArray[np.int64]


def split_by_space(program: Program, trace: WarpTrace) -> Split:
    """Give the records of generic accesses that reach several spaces different instruction numbers for each space.

    A trace without such an access stays as it is.
    """
    count = trace.executed.shape[1]
    executed = np.flatnonzero(trace.executed.any(axis=0)).tolist()
    found = {index: access_of(program.instructions[index]) for index in executed}
    accesses = {index: access for index, access in found.items() if access is not None}
    is_generic = np.zeros(count, np.bool_)
    is_generic[[index for index in accesses if _is_generic(program, index)]] = True
    if trace.copies is not None:
        is_generic[trace.record_pc[trace.copies.zeros]] = True
    numbers = np.arange(count)
    records = np.flatnonzero(is_generic[trace.record_pc])
    if not len(records):
        return Split(trace, accesses, numbers)
    key = trace.record_pc[records].astype(np.int64) * len(SPACES) + space_of(trace.record_base[records])
    reached = np.unique(key)
    number_of = np.arange(count * len(SPACES)) // len(SPACES)  # of each key
    behind: list[int] = []
    first: set[int] = set()
    for one in reached.tolist():
        index, space = divmod(one, len(SPACES))
        if index in first:
            number_of[one] = count + len(behind)
            behind.append(index)
        first.add(index)
        accesses[int(number_of[one])] = _in_space(found[index], SPACES[space])
    if not behind:
        return Split(trace, accesses, numbers)
    moved = trace.record_pc.copy()
    moved[records] = number_of[key]
    # How often the further numbers were executed is how many records they have.
    block = np.searchsorted(trace.record_start[:: trace.warps_per_block], records, side="right") - 1
    further = moved[records] - count
    chosen = further >= 0
    made = np.zeros((len(trace.blocks), len(behind)), np.int64)
    times = 1 if trace.repeats is None else trace.repeats.of_record[records[chosen]]
    np.add.at(made, (block[chosen], further[chosen]), times)
    whole = replace(
        trace,
        record_pc=moved,
        executed=np.concatenate([trace.executed, made], axis=1),
        threads_executed=np.concatenate([trace.threads_executed, made], axis=1),
    )
    return Split(whole, accesses, np.concatenate([numbers, behind]))


def _in_space(access: Access | None, space: str) -> Access:
    assert access is not None
    if access.copies and space == "shared":
        return Access(space, "zeros", access.width_bytes)
    return replace(access, space=space)


def space_of(base: NDArray[np.uint64]) -> NDArray[np.int8]:
    """Return the space of records as an index into `SPACES`, from their base addresses: int8 [records]."""
    in_global, own, local, remote = np.arange(4, dtype=np.int8)  # numbers of a byte: there may be millions of records
    on_chip = np.where(base < _OWN_BELOW, own, remote)
    return np.where(base >= FIRST_ADDRESS, in_global, np.where(base < _SHARED_BELOW, on_chip, local))


def is_remote(base: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return 1 for records of the shared memory of other blocks, from their base addresses, else 0: uint8 [records]."""
    return (space_of(base) == SPACES.index("dshared")).astype(np.uint8)


def order_of(base: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return where records stand among those of one execution, ascending: int64 [records]."""
    last = 1 << 32
    block = (base - np.uint64(_OWN_BELOW)) >> np.uint64(RANK_SHIFT)
    of_space = np.array([0, 1, last, 2])[space_of(base)]
    return of_space + np.where(of_space == 2, block, np.uint64(0)).astype(np.int64)


def _is_generic(program: Program, index: int) -> bool:
    memory = row_of(program.instructions[index]).memory
    return memory is not None and memory.space == "generic"
