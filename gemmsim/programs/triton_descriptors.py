"""Makes the parameters of a kernel that stand for one of Triton's tensor descriptors of the host."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from gemmsim.launch.tensor_maps import FILLS, SWIZZLES, Tile, encoded
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

_WHAT = "a tensor descriptor of Triton"
# Types by their numbers in PTX (tensormap.replace, ".elemtype"), which are those of Triton's compiler.
_TYPES = {
    **{0: "u8", 1: "u16", 2: "u32", 3: "i32", 4: "u64", 5: "i64", 6: "f16", 7: "f32", 9: "f64", 10: "bf16"},
}


def descriptor_bytes(descriptor: Any, described: Any, address: int) -> Iterator[bytes]:
    """Yield the parameters: those of the tensor map or, where the GPU has none, of a pointer; then sizes and strides.

    described  what the compiler says of the tensor map, None where the kernel has none
    address    of the tensor
    """
    shape, strides = descriptor.shape, descriptor.strides
    if described is None:
        yield struct.pack("<Q", address)
        for number in (*shape, *strides):
            yield struct.pack("<q", number)
        yield struct.pack("<B", descriptor.padding == "nan")
        yield struct.pack("<B", getattr(descriptor, "round_f32_to_tf32", False))
    else:
        yield _tensor_map(descriptor, described, address)
    for number in shape:
        yield struct.pack("<i", number)
    for number in strides:
        yield struct.pack("<q", number)


def _tensor_map(descriptor: Any, described: Any, address: int) -> bytes:
    if described.get("is_im2col") or described.get("fp4_padded") or getattr(descriptor, "round_f32_to_tf32", False):
        raise GemmsimError(f"{_WHAT}: im2col, packed types of 4 bits and rounding to TF32 are not simulated")
    dtype = _TYPES.get(described["elem_type"])
    if dtype is None:
        raise GemmsimError(f"{_WHAT}: elements of type {described['elem_type']} are not simulated")
    swizzle = {number: name for name, number in SWIZZLES.items()}[described["swizzle"]]
    fill = {number: name for name, number in FILLS.items()}[int(descriptor.padding == "nan")]
    shape, strides = tuple(map(int, descriptor.shape)), tuple(map(int, descriptor.strides))
    tile = Tile(tuple(described["block_size"]), swizzle, fill, (), shape, strides)
    content = encoded(tile, Argument(dtype, shape, None), address, _WHAT)
    return struct.pack("<Q", address) + content[8:]
