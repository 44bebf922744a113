"""Defines a launch and the trace that its execution leaves. A trace is arrays, with an element for each access."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.copies import Copies
from gemmsim.trace.repeats import Repeats


def active_lanes(masks: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return bool [..., 32]: for each of `masks`, uint32 [...], whether the bit of each lane is set."""
    return (masks[..., None] >> np.arange(WARP_LANES, dtype=np.uint32)) & 1 == 1


@dataclass(frozen=True, slots=True)
class Address:
    """A place that holds a device address of 8 bytes, which is known only when the arrays have their places.

    at_byte     where the place begins, in the parameter or in the array that holds it
    array       position in `Launch.args` of the array whose address it is
    plus_bytes  what is added to the address of that array's first element
    """

    at_byte: int
    array: int
    plus_bytes: int = 0


@dataclass(frozen=True)
class Argument:
    """An array in device memory, or a scalar.

    dtype          one of `support.dtypes.DTYPES`
    shape          () for a scalar; else the array's shape in items: 4-bit integers have two elements an item
    value          the scalar's value, or the array's initial content: items of the type's `numpy_name`
    name           what messages, references and files call it, "" where it has no name
    strides_bytes  for each dimension the bytes from one item to the next; None: C-contiguous
    offset_bytes   bytes of its memory that lie before the first item
    addresses      places in the array that hold addresses of arrays
    at             device address of its memory, a multiple of 256; None: behind the array before it
    """

    dtype: str
    shape: tuple[int, ...]
    value: object
    name: str = ""
    strides_bytes: tuple[int, ...] | None = None
    offset_bytes: int = 0
    addresses: tuple[Address, ...] = ()
    at: int | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """For each dimension the bytes from one item to the next."""
        if self.strides_bytes is not None:
            return self.strides_bytes
        item = DTYPES[self.dtype].item_bytes
        return tuple(item * math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def extent_bytes(self) -> int:
        """The bytes from the first item's first byte to the last item's last byte, gaps between rows included."""
        item = DTYPES[self.dtype].item_bytes
        return item + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))

    @property
    def memory_bytes(self) -> int:
        """The bytes of device memory that the array takes, those before its first item included."""
        return self.offset_bytes + self.extent_bytes

    @property
    def plain(self) -> bool:
        """Whether the array is C-contiguous, begins where its memory begins, and holds no addresses."""
        return self.strides_bytes is None and not self.offset_bytes and not self.addresses


def shown_type(argument: Argument) -> str:
    """Return type and shape in elements, as in "f32[256,128]" or "s4[64,64]"."""
    *outer, last = argument.shape
    return f"{argument.dtype}[{','.join(map(str, (*outer, last * DTYPES[argument.dtype].packed)))}]"


@dataclass(frozen=True)
class Packed:
    """A kernel parameter that is passed by value: a struct, a pointer into an array, or raw bytes.

    content    its bytes, with zeros where addresses go
    addresses  the places that hold addresses of arrays
    """

    content: bytes
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True)
class Launch:
    """A kernel launch.

    grid, block           (x, y, z): blocks of the grid, threads of a block
    args                  the arrays in device memory, and the scalars
    dynamic_shared_bytes  dynamic shared memory of each block
    parameters            the kernel's parameters in order: a position in `args`, which passes that scalar or that
                          array's address, or bytes; None where each of `args` is one parameter
    cooperative           whether all blocks must be resident at once, as in a cooperative launch
    symbols               (name, value) of `__device__` and `__constant__` variables that the host sets beforehand
    cluster               (x, y, z): blocks of a cluster, as the launch asks for; None where it does not ask, and the
                          kernel decides (`Program.cluster`)
    globals_at            device address of the image of the module's device globals; None: behind the arrays
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Argument, ...]
    dynamic_shared_bytes: int = 0
    parameters: tuple[int | Packed, ...] | None = None
    cooperative: bool = False

    @property
    def passed(self) -> tuple[int | Packed, ...]:
        """The kernel's parameters in order, as `parameters` describes them."""
        return tuple(range(len(self.args))) if self.parameters is None else self.parameters

    symbols: tuple[tuple[str, Argument], ...] = ()
    cluster: tuple[int, int, int] | None = None
    globals_at: int | None = None

    @property
    def threads_per_block(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps_per_block(self) -> int:
        return -(-self.threads_per_block // WARP_LANES)

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Patterns:
    """The distinct access shapes of a trace. The address of lane l of a record is its base + offsets[pattern, l].

    offsets_bytes  int64 [patterns, 32], relative to the record's base; 0 in inactive lanes
    active_mask    uint32 [patterns], bit l set where lane l accesses memory (not all-zero)

    The base is the lowest active address rounded down to 128 bytes, so that banks, sectors and lines of a pattern
    are the same at every base.
    """

    offsets_bytes: NDArray[np.int64]
    active_mask: NDArray[np.uint32]


@dataclass(frozen=True)
class Relation:
    """Says what every block of a grid did, where only some were executed (`gemmsim.trace.engine.differences`).

    like          int64 [grid blocks] index into the trace's blocks of the one that each block is like: it executes the
                  same instructions, and its accesses have the same shapes
    record_mover  int32 [records] row of `offset_bytes` that moves each record of the trace
    offset_bytes  int64 [movers, grid blocks] bytes from an address of the block that it is like to its own address
    threads       int64 [instructions] thread-level executions of all blocks of the grid together
    data_decides  whether the content of arrays decides which threads execute an instruction, so that `threads` holds
                  only if it does so in all blocks alike
    """

    like: NDArray[np.int64]
    record_mover: NDArray[np.int32]
    offset_bytes: NDArray[np.int64]
    threads: NDArray[np.int64]
    data_decides: bool


@dataclass(frozen=True)
class SmShare:
    """What an SM executes that may be the last to end.

    blocks      int64 [n] for each of its blocks, in the order in which they begin: an executed block that does as much
    work        int64 [n] warp instructions of each of its blocks; those of `blocks` may be a little more or fewer
    active_sms  how many SMs have work until this one ends, on average
    """

    blocks: NDArray[np.int64]
    work: NDArray[np.int64]
    active_sms: int


@dataclass(frozen=True)
class Syncs:
    """What warps did at mbarriers, at barriers whose number or count is computed, and at fences; and bulk copies.

    Rows start[w]:start[w + 1] are those of warp w, in program order. An instruction that reaches several barriers has a
    row for each; one that no thread executes, or a check of a phase that found it incomplete, has none.

    start    int64 [warps + 1]
    at       int64 [rows] position in the warp's stream of the instruction
    order    int64 [rows] ascending in the order in which all warps did these things
    barrier  int64 [rows] number of the mbarrier, address / 8 in the cluster's window; number of a barrier of the block;
             -1 of a bulk store or a fence
    phase    int64 [rows] of an mbarrier, the phase to which an arrival or a copy belongs, or for which a wait waited:
             how many had ended before it, -1 where the wait was for none; of a barrier, for how many threads it waits
    bytes, records, requests, tensor_map  int64 [rows] of a bulk copy: bytes that it moves, memory records that it left,
             requests to L2 (`gemmsim.trace.engine.bulk_copies.requests_of`), address of its tensor map, 0 without one
    """

    start: NDArray[np.int64]
    at: NDArray[np.int64]
    order: NDArray[np.int64]
    barrier: NDArray[np.int64]
    phase: NDArray[np.int64]
    bytes: NDArray[np.int64]
    records: NDArray[np.int64]
    tensor_map: NDArray[np.int64]
    requests: NDArray[np.int64]


@dataclass(frozen=True)
class WarpTrace:
    """The trace of some blocks of a launch.

    Warp w of the trace is warp w % warps_per_block of block blocks[w // warps_per_block].

    blocks            int64 [nb] linear block ids (x fastest), in execution order
    weight            float64 [nb] blocks of the grid that each stands for (1 where nothing was sampled)
    executed          int64 [nb, instructions] warp-level executions of each static instruction
    threads_executed  int64 [nb, instructions] thread-level executions, guard predicate and active mask applied
    record_start      int64 [warps + 1] memory records of warp w: record_start[w]:record_start[w + 1], in program order
    record_pc         int32 [records] static instruction index
    record_pattern    int32 [records] index into `patterns`
    record_base       uint64 [records] byte address, a multiple of 128
    pc_start          int64 [warps + 1] as record_start, but for items of pc; all zero where streams were not recorded
    pc                integers [issued] static instruction index of every warp instruction executed, in program order.
                      There may be tens of millions: they are uint16 where the program is short enough
    relation          what the blocks of the grid did that were not executed; None where all were
    copies            what asynchronous copies do beside reading global memory (`memory.requests.copies`); None before
                      that is known, and without such copies
    shares            what the SMs execute that may be the last to end, the one with most work first; none where all SMs
                      do about the same
    syncs             what warps with a stream did at mbarriers and the like; None where they did nothing of it
    repeats           which records and instructions stand for several, where iterations of steady loops were left out;
                      `executed` and `threads_executed` count these too. None where nothing was left out

    An instruction leaves one record where any lane accesses memory. There are three exceptions. LDGSTS leaves a record
    of the global addresses that it reads (of the lanes that copy more than zeros), and then a record of the shared
    addresses that it writes; both have its index. A generic LD, ST or ATOM leaves one record for each space that its
    lanes are in, in the order global, shared, local. A bulk copy leaves as many records as it needs, with a lane for
    each sector of global memory, and none where no byte of the tile is in the array.

    Bases below 2**32 are of shared memory, those of global memory start at 0x7F00_0000_0000, and those of local memory
    lie between. Of shared memory, bases from 2**28 on are of another block's of the cluster: that of rank r begins at
    2**28 + r * 2**24. An access that reaches several blocks leaves a record for each, its own block's first, then in
    the order of ranks.
    """

    warps_per_block: int
    blocks: NDArray[np.int64]
    weight: NDArray[np.float64]
    executed: NDArray[np.int64]
    threads_executed: NDArray[np.int64]
    record_start: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    pc_start: NDArray[np.int64]
    pc: NDArray[np.integer]
    patterns: Patterns
    relation: Relation | None = None
    copies: Copies | None = None
    shares: tuple[SmShare, ...] = ()
    syncs: Syncs | None = None
    repeats: Repeats | None = None

    @cached_property
    def record_weight(self) -> NDArray[np.float64]:
        """How many accesses of the launch each record stands for: float64 [records]."""
        weight = np.repeat(self.weight, np.diff(self.record_start[:: self.warps_per_block]))
        # In place: there may be tens of millions.
        return weight if self.repeats is None else np.multiply(weight, self.repeats.of_record, out=weight)


@dataclass(frozen=True)
class Sketch:
    """What some blocks did: arrays named as in `WarpTrace`, but with the records not sorted by warp.

    The next sketch that the same executor makes overwrites the record arrays.
    """

    executed: NDArray[np.int64]
    threads_executed: NDArray[np.int64]
    record_pc: NDArray[np.int32]
    record_pattern: NDArray[np.int32]
    record_base: NDArray[np.uint64]
    patterns: Patterns


@dataclass(frozen=True, slots=True)
class PlacedVariable:
    """A `__device__` or `__constant__` variable of a kernel's module, in device memory."""

    name: str
    address: int
    size_bytes: int


@dataclass(frozen=True)
class Variable:
    """What a `__device__` variable of a kernel's module holds.

    content  uint8 [bytes]
    stored   whether the kernel stored to any of them
    """

    content: NDArray[np.uint8]
    stored: bool


@dataclass(frozen=True)
class Execution:
    """What an execution of blocks returns: trace and results.

    trace     see `WarpTrace`
    outputs   for each argument its array after the run (None for scalars)
    written   for each argument a bool array of its shape, True where the kernel stored (None for scalars)
    sampled   whether only a part of the grid was executed
    notes     what was assumed
    one_order whether blocks ran in one of several orders that hardware might take, so that counts may differ there
    variables {name: content after the run} of the source's `__device__` variables
    left_out  whether iterations of loops were counted and not executed, so that what their blocks store is missing
    printed   what the kernel printed, in the order in which the simulated threads did
    """

    trace: WarpTrace
    outputs: tuple[NDArray | None, ...]
    written: tuple[NDArray[np.bool_] | None, ...]
    sampled: bool
    notes: tuple[str, ...] = field(default=())
    one_order: bool = False
    variables: Mapping[str, Variable] = field(default_factory=dict)
    printed: str = ""
    left_out: bool = False
