"""Tensor maps as written after --arg: `tensormap(array, box=...)`; words worked out by hand."""

from __future__ import annotations

import struct

import pytest

from gemmsim.launch.argument_text import parse_arguments
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Packed


def test_a_tensor_map_by_hand() -> None:
    """The fields' places are held against the compiler's in tests/compile/test_bulk_copies.py."""
    text = "tensormap(A: f16[300,128], box=32x64, swizzle=128B, steps=4x1, l2=128B)"
    arguments = parse_arguments([text, "&{tensormap(&A[2], box=8x16)}"])
    assert arguments.parameters is not None
    made = arguments.parameters[0]
    assert isinstance(made, Packed)
    assert made.addresses == (Address(0, 0),)
    held = dict(enumerate(struct.unpack("<32I", made.content)))
    flags = (2 - 1) << 4 | 6 << 7 | 3 << 13  # dimensions, halves, swizzle
    boxes = {13: (64 - 1) << 24 | (4 - 1) << 3, 14: 32 - 1}
    expected = {2: flags, 3: 128 * 2 // 16, 8: 128 - 1, 9: 300 - 1, **boxes}
    assert {at: word for at, word in held.items() if word} == expected
    assert arguments.args[1].addresses == (Address(0, 0, 2 * 128 * 2),)


def test_dimensions_of_a_tensor_map_are_ordered_by_their_strides() -> None:
    arguments = parse_arguments(["A: f32[64,32; col]", "tensormap(0, box=16x8)"])
    assert arguments.parameters is not None
    made = arguments.parameters[1]
    assert isinstance(made, Packed)
    words = struct.unpack("<32I", made.content)
    assert words[3] == 64 * 4 // 16
    assert (words[8], words[9]) == (64 - 1, 32 - 1)
    assert (words[13] >> 24, words[14] & 0xFF) == (16 - 1, 8 - 1)


def test_dimensions_that_a_tensor_map_names_stay_in_their_order() -> None:
    """Kernels count them from the last: columns in chunks of 64, of which the third dimension has two. The stride of a
    dimension of one element may be anything."""
    text = "tensormap(A: f16[32,128], box=1x1x8x64, shape=1x2x32x64, strides=0/64/128/1)"
    arguments = parse_arguments([text])
    assert arguments.parameters is not None
    made = arguments.parameters[0]
    assert isinstance(made, Packed)
    words = struct.unpack("<32I", made.content)
    assert words[3:6] == (128 * 2 // 16, 64 * 2 // 16, 0)
    assert words[8:12] == (64 - 1, 32 - 1, 2 - 1, 1 - 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tensormap(f16[64,64])", "needs box="),
        ("tensormap(f16[64,64], box=8)", "box needs 2 numbers"),
        ("tensormap(f16[64,64], box=8x0)", "needs positive numbers"),
        ("tensormap(f16[64,64], box=8x512)", "1 to 256 elements"),
        ("tensormap(f16[64,64], box=8x4)", "8 bytes: it must be a multiple of 16"),
        ("tensormap(f16[64,64], box=8x64, swizzle=64B)", "128 bytes: it must be .* at most 64"),
        ("tensormap(f16[64,64], box=8x8, swizzle=96B)", "swizzle can be none, 32B"),
        ("tensormap(f16[64,63], box=8x8)", "multiples of 16 bytes"),
        ("tensormap(f16[64,64], box=8x8, steps=9x1)", "steps are 1 to 8"),
        ("tensormap(f16[64,64], box=8x8, boxes=1)", "no 'boxes' .did you mean 'box'"),
        ("tensormap(f16[64,64], box=8x8, box=8x8)", "box is given twice"),
        ("tensormap(f16[64,64], box=8x8, shape=64x64)", "shape and strides together"),
        ("tensormap(f16[64,64], box=8x8, interleave=16B)", "interleave can be none"),
        ("tensormap(u4[64,64], box=8x32)", "of u4 is not known"),
        ("tensormap(i32=3, box=8)", "begins with an array"),
        ("tensormap(3, box=8x8)", "no array is called 'arg3'"),
        ("tensormap(f16[2,2,2,2,2,8], box=1x1x1x1x1x8)", "1 to 5 dimensions"),
        ("tensormap f16[64,64]", "is missing behind tensormap"),
    ],
)
def test_tensor_maps_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(GemmsimError, match=said):
        parse_arguments([text])
