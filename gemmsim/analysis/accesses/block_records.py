"""Takes the memory records of one block from a trace, and says in which array of the launch each record falls.

A record is one execution of one memory instruction by one warp, as the trace keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.analysis.accesses.types import ArrayArgument
from gemmsim.launch.spec import GemmCheck
from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.trace.types import Launch, PlacedVariable, WarpTrace


@dataclass(frozen=True)
class BlockRecords:
    """The memory records of one block, in the order of the trace. Every field but `first` is an int64 array [records].

    first       index of the block's first record in the trace
    warp        index of the warp in the block
    pc          index of the instruction
    pattern     index into the trace's patterns
    base        byte address to which the pattern's offsets are added
    shape       index into the trace's distinct access shapes
    occurrence  how many records of the same warp and instruction come before this one
    """

    first: int
    warp: NDArray[np.int64]
    pc: NDArray[np.int64]
    pattern: NDArray[np.int64]
    base: NDArray[np.int64]
    shape: NDArray[np.int64]
    occurrence: NDArray[np.int64]

    def where(self, chosen: NDArray[np.bool_]) -> BlockRecords:
        """Return only the records at which `chosen`, bool [records], is true."""
        arrays = (self.warp, self.pc, self.pattern, self.base, self.shape, self.occurrence)
        return BlockRecords(self.first, *(array[chosen] for array in arrays))


@dataclass(frozen=True)
class ArrayRecords:
    """The records of one block that access array arguments. Fields are int64 [records] unless said otherwise.

    array   index of the accessed array in `Arrays.arguments`
    start   byte address at which that array starts
    width   bytes that each lane accesses
    load    bool; False for stores and atomics
    """

    records: BlockRecords
    array: NDArray[np.int64]
    start: NDArray[np.int64]
    width: NDArray[np.int64]
    load: NDArray[np.bool_]


@dataclass(frozen=True)
class Arrays:
    """The array arguments of a launch, and behind them variables of the kernel's module.

    Each lies at byte addresses [start, stop), which are int64 [arrays].

    given  how many of them are arguments
    """

    arguments: tuple[ArrayArgument, ...]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    given: int

    def holding(self, address: int) -> int | None:
        """Return the index of the array that holds the byte `address`, None where no array holds it."""
        found = np.flatnonzero((self.start <= address) & (address < self.stop))
        return int(found[0]) if len(found) else None


def arrays_of(
    launch: Launch,
    pointers: Sequence[int | None],
    check: GemmCheck | None,
    sizes: tuple[int, int, int] | None,
    variables: Sequence[PlacedVariable] = (),
) -> Arrays:
    """Find the array arguments of a launch. `sample.sample_accesses` describes the other parameters."""
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
        # The drawings count elements from the array's start, which gives their index only where none lie apart.
        laid_out = argument.shape if argument.strides_bytes is None else (argument.extent_bytes // item_bytes,)
        wanted = shapes.get(position, laid_out)
        shape = wanted if math.prod(wanted) == math.prod(laid_out) else laid_out
        name = names.get(position, argument.name or f"arg {position}")
        found.append(ArrayArgument(position, name, argument.dtype, tuple(shape), item_bytes))
        start.append(pointer)
        stop.append(pointer + argument.extent_bytes)
    given = len(found)
    for number, variable in enumerate(variables):  # of unknown type: their elements are bytes
        found.append(ArrayArgument(len(launch.args) + number, variable.name, "u8", (variable.size_bytes,), 1))
        start.append(variable.address)
        stop.append(variable.address + variable.size_bytes)
    return Arrays(tuple(found), np.array(start, np.int64), np.array(stop, np.int64), given)


def heaviest(trace: WarpTrace, grid: tuple[int, int, int]) -> int:
    """Return the index in the trace of the block that stands for most blocks of the grid.

    Of several such blocks it is the one nearest to the grid's middle.
    """
    gx, gy, gz = grid
    best = np.flatnonzero(trace.weight == trace.weight.max())
    block = trace.blocks[best]
    place = np.stack([block % gx, block // gx % gy, block // (gx * gy)])
    away = np.abs(2 * place - np.array([[gx], [gy], [gz]])).sum(axis=0)
    return int(best[np.argmin(away)])


def block_records(trace: WarpTrace, shapes: Shapes, number: int) -> BlockRecords:
    """Return the memory records of the block with index `number` in the trace."""
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
    times = np.ones(len(key), np.int64)
    if trace.repeats is not None:
        times = trace.repeats.of_record[part][order].astype(np.int64)
    before = np.cumsum(times) - times  # those that a record stands for come after it
    occurrence[order] = before - np.repeat(before[first], np.diff(np.append(first, len(key))))
    return BlockRecords(
        first=part.start,
        warp=warp,
        pc=pc,
        pattern=trace.record_pattern[part].astype(np.int64),
        base=trace.record_base[part].astype(np.int64),
        shape=shapes.of_record[part].astype(np.int64),
        occurrence=occurrence,
    )


def array_records(block: BlockRecords, accesses: dict[int, Access], arrays: Arrays) -> ArrayRecords:
    """Select the block's records that access an array argument. A record's base address decides which array it is."""
    numbers = max(accesses, default=0) + 1
    width, load = np.zeros(numbers, np.int64), np.zeros(numbers, bool)
    for index, access in accesses.items():
        width[index], load[index] = access.width_bytes, access.op in ("ld", "ldgsts", "tma_ld")
    # A record's base is rounded down to 128 bytes, and arrays start at multiples of more.
    falls_in = np.full(len(block.pc), -1, np.int64)
    for number, (start, stop) in enumerate(zip(arrays.start[: arrays.given], arrays.stop, strict=False)):
        falls_in[(block.base >= start) & (block.base < stop)] = number
    records, array = block.where(falls_in >= 0), falls_in[falls_in >= 0]
    return ArrayRecords(records, array, arrays.start[array], width[records.pc], load[records.pc])
