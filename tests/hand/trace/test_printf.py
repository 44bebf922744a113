"""What printf writes: against the C library for the same format and arguments, and edge cases by hand."""

from __future__ import annotations

import ctypes
import struct

import pytest

from gemmsim.trace.runtime.printf import BufferReader, format_printf

TEXTS = {0x1000: "abc"}


def printed(form: str, *arguments: tuple[str, float]) -> tuple[str, int]:
    """Format arguments given as (code of the module `struct`, value), laid out at multiples of their size."""
    buffer = bytearray()
    for code, value in arguments:
        size = struct.calcsize(code)
        buffer += bytes(-len(buffer) % size) + struct.pack("<" + code, value)
    return format_printf(form, BufferReader(lambda at, size: bytes(buffer[at : at + size])), TEXTS.__getitem__)


@pytest.mark.parametrize(
    ("form", "code", "value"),
    [
        ("%d", "i", -7), ("%5d|", "i", 42), ("%-5d|", "i", 42), ("%05d", "i", -42), ("%+d", "i", 3), ("% d", "i", 3),
        ("%.4d", "i", 7), ("%06.3d|", "i", 7), ("%u", "I", 4294967295), ("%x", "I", 255), ("%#X", "I", 255),
        ("%#o", "I", 8), ("%hhd", "i", 300), ("%hu", "I", 70000), ("%hd", "i", 40000), ("%c|", "i", 65),
        ("%3c|", "i", 65),
        ("%lld", "q", -(1 << 40)), ("%lu", "Q", (1 << 64) - 1), ("%zu", "Q", 5), ("%f", "d", 1.5), ("%.0f", "d", 2.5),
        ("%10.3e|", "d", 12345.678), ("%-12g|", "d", 1e-10), ("%G", "d", 1e20), ("%+.2f", "d", 0.005),
        ("%f", "d", float("inf")), ("%5.1f|", "d", float("-inf")), ("100%% %d", "i", 1), ("%#.3g", "d", 1.0),
    ],
)  # fmt: skip
def test_one_conversion_is_that_of_the_c_library(form: str, code: str, value: float) -> None:
    types = {"i": ctypes.c_int, "I": ctypes.c_uint, "q": ctypes.c_longlong, "Q": ctypes.c_ulonglong}
    argument = ctypes.c_double(value) if code == "d" else types[code](int(value))
    expected = ctypes.create_string_buffer(200)
    ctypes.CDLL(None).snprintf(expected, ctypes.c_size_t(200), form.encode(), argument)
    assert printed(form, (code, value)) == (expected.value.decode(), 1)


def test_arguments_lie_at_multiples_of_their_size() -> None:
    assert printed("%d %f %d %s", ("i", 1), ("d", 2.0), ("i", 3), ("Q", 0x1000)) == ("1 2.000000 3 abc", 4)


def test_width_and_precision_from_arguments() -> None:
    assert printed("%*.*f|", ("i", 8), ("i", 2), ("d", 3.14159)) == ("    3.14|", 3)
    assert printed("%*d|", ("i", -4), ("i", 7)) == ("7   |", 2)


def test_texts_and_pointers() -> None:
    assert printed("%s %.2s|%5s", ("Q", 0x1000), ("Q", 0x1000), ("Q", 0x1000)) == ("abc ab|  abc", 3)
    assert printed("%s", ("Q", 0)) == ("(null)", 1)
    assert printed("%p|%8p", ("Q", 0x7F0000000010), ("Q", 0)) == ("0x7f0000000010|   (nil)", 2)


def test_what_is_no_conversion_stays_and_missing_arguments_are_zero() -> None:
    assert printed("50%, %y %") == ("50%, %y %", 0)
    assert printed("%d %f") == ("0 0.000000", 2)
    assert len(printed("%999999999d", ("i", 1))[0]) == 4096  # a kernel cannot ask for gigabytes
