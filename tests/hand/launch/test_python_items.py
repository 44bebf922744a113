"""Arguments from Python objects: structs with addresses, shared arrays, views, lists of arrays; bytes by hand."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from gemmsim.launch.items import Arguments
from gemmsim.launch.python_items import by_value, python_arguments, typed
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Packed


def made(*args: object, arrays: dict[str, object] | None = None) -> Arguments:
    return python_arguments(args, arrays or {})


class Epilogue(ctypes.Structure):
    _fields_ = (("alpha", ctypes.c_float), ("C", ctypes.c_void_p))


class Params(ctypes.Structure):
    _fields_ = (("m", ctypes.c_int), ("A", ctypes.c_void_p), ("epilogue", Epilogue))


def test_plain_objects() -> None:
    a = np.zeros((2, 3), np.float32)
    arguments = made(a, np.int32(7), np.float64(0.5), "f32[4]", ctypes.c_uint8(3))
    assert arguments.args[0].value is a
    assert [(one.dtype, one.shape) for one in arguments.args] == [
        ("f32", (2, 3)),
        ("i32", ()),
        ("f64", ()),
        ("f32", (4,)),
    ]
    assert arguments.parameters == (0, 1, 2, 3, Packed(b"\x03"))
    assert made(a, np.int32(7)).parameters is None


def test_a_ctypes_struct_with_addresses() -> None:
    """m at 0, A at 8, epilogue.alpha at 16, epilogue.C at 24."""
    a, c = np.zeros(4, np.float16), np.zeros(2, np.float32)
    value = by_value(Params(5, None, Epilogue(0.5, None)), {"A": a, "epilogue.C": c})
    arguments = made(value)
    assert arguments.parameters == (Packed(struct.pack("<i4xQf4xQ", 5, 0, 0.5, 0), (Address(8, 0), Address(24, 1))),)
    assert [one.dtype for one in arguments.args] == ["f16", "f32"]


def test_a_structured_scalar_and_raw_bytes() -> None:
    kind = np.dtype([("n", "i4"), ("p", "u8"), ("inner", [("q", "u8")])], align=True)
    value = np.array((3, 0, (0,)), kind)
    a = np.zeros(2, np.float32)
    (packed,) = made(by_value(value[()], {"p": a, "inner.q": "&arg0.0x8+4"})).parameters or ()
    assert packed == Packed(struct.pack("<i4xQQ", 3, 0, 0), (Address(8, 0), Address(16, 0, 4)))
    assert made(by_value(bytes(8), {0: "&A"}), arrays={"A": a}).parameters == (Packed(bytes(8), (Address(0, 0),)),)


def test_the_same_array_twice_is_one_array() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    arguments = made(a, a, np.int32(1))
    assert [one.shape for one in arguments.args] == [(2, 3), ()] and arguments.parameters == (0, 0, 1)
    named = python_arguments({"A": a, "B": a}, {})
    assert [one.name for one in named.args] == ["A"] and named.parameters == (0, 0)


def test_views_that_overlap_lie_in_one_array() -> None:
    """Rows 1 and 2 of a begin 12 bytes behind a's start."""
    a = np.arange(12, dtype=np.float32).reshape(4, 3).copy()
    arguments = made(a[1:3], a, a[2:])
    assert [one.shape for one in arguments.args] == [(4, 3)]
    assert arguments.parameters == (
        Packed(bytes(8), (Address(0, 0, 12),)),
        0,
        Packed(bytes(8), (Address(0, 0, 24),)),
    )
    assert made(a[:2], a[2:]).parameters is None, "parts that do not overlap are arrays of their own"


def test_transposed_and_pitched_views_keep_their_strides() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    first, second = made(a.T, a.copy()[:, :2]).args
    assert (first.shape, first.strides_bytes) == ((4, 3), (4, 16))
    assert (second.shape, second.strides_bytes) == ((3, 2), (16, 4))
    with pytest.raises(GemmsimError, match="runs backwards"):
        made(a[::-1])


def test_a_list_is_an_array_of_addresses() -> None:
    a, b = np.zeros(2, np.float32), np.zeros(2, np.float32)
    arguments = python_arguments({"P": [a, b, a]}, {})
    assert arguments.parameters == (0,)
    assert arguments.args[0].name == "P"
    assert arguments.args[0].addresses == (Address(0, 1), Address(8, 2), Address(16, 1))


def test_types_that_numpy_lacks() -> None:
    bits = typed("bf16", np.array([1.0, 1.5]))
    assert made(bits).args[0].dtype == "bf16" and np.asarray(made(bits).args[0].value).tolist() == [0x3F80, 0x3FC0]
    tf32 = np.ones(2, np.float32)
    assert made(typed("tf32", tf32)).args[0].dtype == "tf32"
    with pytest.raises(GemmsimError, match="items of s4 are uint8, not int64"):
        typed("s4", np.zeros(2, np.int64))
    with pytest.raises(GemmsimError, match="unknown type 'fp8'"):
        typed("fp8", np.zeros(2))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1.5, "argument 0, 1.5: its type is not known; give text such as"),
        (np.zeros(2, np.complex64), "an array of complex64: known are f16"),
        ([], "its type is not known"),
    ],
)
def test_unknown_objects(value: object, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        made(value)


def test_fields_that_are_not_there() -> None:
    with pytest.raises(GemmsimError, match=r"the struct has no field 'epilogue\.D'"):
        by_value(Params(), {"epilogue.D": "&A"})
    with pytest.raises(GemmsimError, match=r"is no ctypes\.Structure"):
        by_value(3)


def test_variables_of_the_module_from_python() -> None:
    a = np.arange(4, dtype=np.float32)
    arguments = python_arguments([a], {}, {"bias": np.ones(3, np.float32), "scale": np.int32(7), "where": "&arg0"})
    assert len(arguments.args) == 1
    held = dict(arguments.symbols)
    assert (held["bias"].dtype, held["bias"].shape) == ("f32", (3,))
    assert np.asarray(held["scale"].value).tolist() == [7]
    assert held["where"].addresses == (Address(0, 0),)


def test_arrays_of_another_byte_order() -> None:
    (argument,) = python_arguments([np.array([1, 2, 300], ">f4")], {}).args
    assert np.asarray(argument.value).view(np.uint32).tolist() == np.array([1, 2, 300], "<f4").view(np.uint32).tolist()
