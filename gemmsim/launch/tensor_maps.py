"""Makes tensor maps (CUtensorMap): 128 bytes that tell TMA where an array lies and which tiles of it to copy.

NVIDIA documents what `cuTensorMapEncodeTiled` takes (CUDA driver API, "Tensor Map Object Management"), and not the
bits. Where each field stands was read off the code that compilers make for PTX's tensormap.replace on sm_90 and sm_120,
which is loads and stores of these bytes:

    byte 0x00  address of the first element
    byte 0x08  bits 4 to 6: dimensions less 1, 7 to 10: type, 11 to 12: interleave, 13 to 14: swizzle, 15: what fills
    byte 0x0C  four strides in units of 16 bytes; their bits 32 to 35 are at 0x1C, 4 bits each
    byte 0x20  five sizes in elements, less 1
    byte 0x34  five steps of elements, less 1, 3 bits each; bits 24 to 31: the box's first size less 1
    byte 0x38  the box's other four sizes less 1, a byte each

The bits of L2 promotion are in none of these, and left 0; they change nothing that a copy does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural
from gemmsim.trace.types import Address, Argument, Packed

MAP_BYTES = 128
SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
FILLS = {"zeros": 0, "nan": 1}
# PTX ISA, tensormap.replace, ".elemtype": the numbers of the types. TMA copies the bits of other types of 8 bits as U8.
TYPES = {
    **{"u8": 0, "i8": 0, "bool": 0, "e4m3": 0, "e5m2": 0, "u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5},
    **{"f16": 6, "f32": 7, "tf32": 7, "f64": 9, "bf16": 10},
}
# The same types in the order of CUtensorMapDataType, which ends F64, BF16, F32_FTZ, TF32, TF32_FTZ
DRIVER_TYPES = (0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12)
_FLAGS_AT, _STRIDES_AT, _HIGH_AT, _SIZES_AT, _STEPS_AT = 2, 3, 7, 8, 13  # words of a map
# Limits of cuTensorMapEncodeTiled
_MOST_DIMENSIONS, _MOST_BOX, _MOST_STEP, _UNIT = 5, 256, 8, 16


@dataclass(frozen=True, slots=True)
class Tile:
    """How TMA copies an array in tiles. Sizes are in the order of the array's shape, so that the last is innermost.

    box      elements of a tile along each dimension
    swizzle  a key of SWIZZLES: how 16-byte pieces are exchanged in shared memory
    fill     a key of FILLS: what a tile holds where it reaches beyond the array
    steps    elements from one of a tile to the next along each dimension, () where it is 1
    shape    sizes that the map has in place of the array's, () where it has the array's; the kernel counts these
             dimensions from the last one
    strides  with `shape`, elements from one index to the next along each dimension
    """

    box: tuple[int, ...]
    swizzle: str = "none"
    fill: str = "zeros"
    steps: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MapFields:
    """What `cuTensorMapEncodeTiled` takes, the innermost dimension first, without the address.

    type           the number of the elements' type: PTX's, as `DRIVER_TYPES` translates the driver's
    sizes          elements of the array along each dimension
    strides_bytes  from one index to the next of each dimension but the innermost
    box, steps     elements of a tile along each dimension, and elements from one of these to the next
    swizzle, fill  values of SWIZZLES and FILLS
    """

    type: int
    sizes: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int
    fill: int


def encoded(tile: Tile, array: Argument, plus_bytes: int, what: str) -> bytes:
    """Return the map's bytes, with zeros where the address goes.

    plus_bytes  from the array's first element to the map's

    Raises GemmsimError, which begins with `what`, where `cuTensorMapEncodeTiled` would refuse it.
    """

    def refused(why: str) -> GemmsimError:
        return GemmsimError(f"{what}: {why}")

    item = DTYPES[array.dtype].item_bytes
    if array.dtype not in TYPES:
        raise refused(f"a tensor map of {array.dtype} is not known: known are {', '.join(TYPES)}")
    shape = tile.shape or array.shape
    strides = tuple(item * one for one in tile.strides) if tile.strides else array.strides
    steps = tile.steps or (1,) * len(shape)
    if not 1 <= len(shape) <= _MOST_DIMENSIONS:
        raise refused(f"a tensor map has 1 to {_MOST_DIMENSIONS} dimensions, not {len(shape)}")
    for name, sizes in (("box", tile.box), ("steps", steps), ("strides", strides)):
        if len(sizes) != len(shape):
            raise refused(f"{name} needs {plural(len(shape), 'number')}, one for each dimension, not {len(sizes)}")
    inner_first = list(range(len(shape)))[::-1]
    if not tile.strides:  # of a column-major array the first dimension is innermost
        inner_first.sort(key=lambda axis: strides[axis])
    if strides[inner_first[0]] != item:
        raise refused("the elements of one dimension must follow each other without gaps")
    outer = [strides[axis] for axis in inner_first[1:] if shape[axis] > 1]  # where the size is 1, the stride is free
    _check_numbers(tile, steps, outer, plus_bytes, refused)
    inner = tile.box[inner_first[0]] * item
    span = {0: 1 << 20, 1: 32, 2: 64, 3: 128}[SWIZZLES[tile.swizzle]]
    if inner % _UNIT or inner > span:
        limit = f" and at most {span}, the swizzle's" if tile.swizzle != "none" else ""
        raise refused(f"the box's innermost size is {plural(inner, 'byte')}: it must be a multiple of {_UNIT}{limit}")
    fields = MapFields(
        type=TYPES[array.dtype],
        sizes=tuple(shape[axis] for axis in inner_first),
        strides_bytes=tuple(strides[axis] for axis in inner_first[1:]),
        box=tuple(tile.box[axis] for axis in inner_first),
        steps=tuple(steps[axis] for axis in inner_first),
        swizzle=SWIZZLES[tile.swizzle],
        fill=FILLS[tile.fill],
    )
    return written(fields)


def written(fields: MapFields) -> bytes:
    """Return a map's bytes, with zeros where the address goes."""
    content = [0] * (MAP_BYTES // 4)  # words
    content[_FLAGS_AT] = (len(fields.sizes) - 1) << 4 | fields.type << 7 | fields.swizzle << 13 | fields.fill << 15
    for number, stride in enumerate(fields.strides_bytes):
        units = stride // _UNIT
        content[_STRIDES_AT + number] = units & 0xFFFFFFFF
        content[_HIGH_AT] |= units >> 32 << 4 * number
    for number, (size, box, step) in enumerate(zip(fields.sizes, fields.box, fields.steps, strict=True)):
        content[_SIZES_AT + number] = size - 1
        content[_STEPS_AT] |= (step - 1) << 3 * number
        place = number + 3  # the first of the box's sizes is the last byte of a word, the others are those of the next
        content[_STEPS_AT + place // 4] |= (box - 1) << 8 * (place % 4)
    return struct.pack("<32I", *content)


def read(content: bytes) -> MapFields:
    """Return what a map's 128 bytes say, the inverse of `written`."""
    words = struct.unpack("<32I", content)
    flags, dimensions = words[_FLAGS_AT], (words[_FLAGS_AT] >> 4 & 7) + 1
    strides = ((words[_HIGH_AT] >> 4 * at & 15) << 32 | words[_STRIDES_AT + at] for at in range(dimensions - 1))
    places = range(3, dimensions + 3)
    return MapFields(
        type=flags >> 7 & 15,
        sizes=tuple(words[_SIZES_AT + at] + 1 for at in range(dimensions)),
        strides_bytes=tuple(_UNIT * one for one in strides),
        box=tuple((words[_STEPS_AT + at // 4] >> 8 * (at % 4) & 255) + 1 for at in places),
        steps=tuple((words[_STEPS_AT] >> 3 * at & 7) + 1 for at in range(dimensions)),
        swizzle=flags >> 13 & 3,
        fill=flags >> 15 & 1,
    )


def box_map(array: Argument, position: int, box: tuple[int, int]) -> Packed:
    """Return the parameter by which TMA copies boxes of an array in the order of the 128-byte swizzle.

    position  the array's in `Launch.args`

    It is zeros where TMA cannot access the array, whose rows do not begin at multiples of 16 bytes.
    """
    if array.strides[0] % _UNIT:
        return Packed(bytes(MAP_BYTES))
    return Packed(encoded(Tile(box, "128B"), array, 0, array.name), (Address(0, position),))


def _check_numbers(
    tile: Tile,
    steps: Sequence[int],
    strides: Sequence[int],
    plus_bytes: int,
    refused: Callable[[str], GemmsimError],
) -> None:
    if not all(1 <= one <= _MOST_BOX for one in tile.box):
        raise refused(f"a box has 1 to {_MOST_BOX} elements along each dimension")
    if not all(1 <= one <= _MOST_STEP for one in steps):
        raise refused(f"steps are 1 to {_MOST_STEP}")
    if any(one % _UNIT or not 0 < one < 1 << 40 for one in strides) or plus_bytes % _UNIT:
        raise refused(f"strides and the first element's address must be multiples of {_UNIT} bytes")
