"""What the closer look at a trace works on: the records of one block, and where the arguments lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.accesses.phases import GlobalRecords
from gemmsim.analysis.accesses.types import ArrayArgument
from gemmsim.isa.program import Program
from gemmsim.launch.request import GemmCheck
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import Launch, WarpTrace


@dataclass(frozen=True)
class BlockRecords:
    """The memory records of one block of a trace, in its order.

    number   of the block in the trace; first: its first record in the trace
    warp, pc, pattern, base, shape, occurrence   int64 [records]; occurrence: how many records of the same warp and
             instruction came before
    """

    number: int
    first: int
    warp: NDArray[np.int64]
    pc: NDArray[np.int64]
    pattern: NDArray[np.int64]
    base: NDArray[np.int64]
    shape: NDArray[np.int64]
    occurrence: NDArray[np.int64]


@dataclass(frozen=True)
class Arrays:
    """Where the arguments lie: start and stop are byte addresses, int64 [arrays]."""

    arguments: tuple[ArrayArgument, ...]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    def holding(self, address: int) -> int | None:
        """Index of the array that an address falls in."""
        found = np.flatnonzero((self.start <= address) & (address < self.stop))
        return int(found[0]) if len(found) else None


def arrays_of(
    launch: Launch, pointers: Sequence[int | None], check: GemmCheck | None, sizes: tuple[int, int, int] | None
) -> Arrays:
    """The array arguments; pointers: device address of each, None for scalars; the others as of `sample_accesses`."""
    names: dict[int, str] = {}
    shapes: dict[int, tuple[int, int]] = {}
    if check:
        names = {check.a: "A", check.b: "B", check.c: "C"}
        if check.bias is not None:
            names[check.bias] = "bias"
        if sizes:
            m, n, k = sizes
            shapes = {check.a: (m, k), check.b: (n, k) if check.b_transposed else (k, n), check.c: (m, n)}
    found, start, stop = [], [], []
    for position, (argument, pointer) in enumerate(zip(launch.args, pointers, strict=True)):
        if pointer is None:
            continue
        item_bytes = np.asarray(argument.value).itemsize
        wanted = shapes.get(position, argument.shape)
        shape = wanted if math.prod(wanted) == math.prod(argument.shape) else argument.shape
        name = names.get(position, f"arg {position}")
        found.append(ArrayArgument(position, name, argument.dtype, tuple(shape), item_bytes))
        start.append(pointer)
        stop.append(pointer + math.prod(argument.shape) * item_bytes)
    return Arrays(tuple(found), np.array(start, np.int64), np.array(stop, np.int64))


def heaviest(trace: WarpTrace, grid: tuple[int, int, int]) -> int:
    """Number of the block that stands for most others; of several the one nearest to the middle of the grid."""
    gx, gy, gz = grid
    best = np.flatnonzero(trace.weight == trace.weight.max())
    block = trace.blocks[best]
    place = np.stack([block % gx, block // gx % gy, block // (gx * gy)])
    away = np.abs(2 * place - np.array([[gx], [gy], [gz]])).sum(axis=0)
    return int(best[np.argmin(away)])


def block_records(trace: WarpTrace, shapes: Shapes, number: int) -> BlockRecords:
    """Those of the trace's block `number`."""
    warps = trace.warps_per_block
    edges = trace.record_start[number * warps : (number + 1) * warps + 1]
    part = slice(int(edges[0]), int(edges[-1]))
    warp = np.repeat(np.arange(warps), np.diff(edges))
    pc = trace.record_pc[part].astype(np.int64)
    key = warp * trace.executed.shape[1] + pc
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(key) else np.zeros(0, np.int64)
    occurrence = np.empty(len(key), np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(first, np.diff(np.append(first, len(key))))
    return BlockRecords(
        number=number,
        first=part.start,
        warp=warp,
        pc=pc,
        pattern=trace.record_pattern[part].astype(np.int64),
        base=trace.record_base[part].astype(np.int64),
        shape=shapes.of_record[part].astype(np.int64),
        occurrence=occurrence,
    )


def global_records(program: Program, block: BlockRecords, accesses: dict[int, Access], arrays: Arrays) -> GlobalRecords:
    """Those of the block's records that fall in an argument, by their first line."""
    width = np.zeros(len(program.instructions), np.int64)
    load = np.zeros(len(program.instructions), bool)
    for index, access in accesses.items():
        width[index], load[index] = access.width_bytes, access.op in ("ld", "ldgsts")
    # A record's base is rounded down to 128 bytes, and arrays start at multiples of more.
    held = np.full(len(block.pc), -1, np.int64)
    for number, (start, stop) in enumerate(zip(arrays.start, arrays.stop, strict=True)):
        held[(block.base >= start) & (block.base < stop)] = number
    inside = held >= 0
    pc, array = block.pc[inside], held[inside]
    return GlobalRecords(
        pc=pc,
        pattern=block.pattern[inside],
        base=block.base[inside],
        occurrence=block.occurrence[inside],
        array=array,
        start=arrays.start[array],
        width=width[pc],
        load=load[pc],
    )
