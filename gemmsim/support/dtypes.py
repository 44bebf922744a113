"""Lists the element types of kernel arguments in one table, with everything that depends on such a type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    numpy_name     NumPy's name for the type of an item. NumPy lacks bf16, fp8 and 4-bit integers; arrays of these hold
                   their bit patterns
    item_bytes     size of one item in bytes
    unit_roundoff  largest relative error of rounding to this type; 0 for integers
    packed         elements in one item: 2 of the 4-bit integers, the first of them in the low bits
    """

    numpy_name: str
    item_bytes: int
    unit_roundoff: float = 0.0
    packed: int = 1


DTYPES = {
    "f16": DType("float16", 2, 2.0**-11),
    "bf16": DType("uint16", 2, 2.0**-8),
    "f32": DType("float32", 4, 2.0**-24),
    "tf32": DType("float32", 4, 2.0**-11),  # stored as f32; arrays are filled with values that tf32 holds
    "f64": DType("float64", 8, 2.0**-53),
    "e4m3": DType("uint8", 1, 2.0**-4),
    "e5m2": DType("uint8", 1, 2.0**-3),
    "i8": DType("int8", 1),
    "i16": DType("int16", 2),
    "i32": DType("int32", 4),
    "i64": DType("int64", 8),
    "u8": DType("uint8", 1),
    "u16": DType("uint16", 2),
    "u32": DType("uint32", 4),
    "u64": DType("uint64", 8),
    "s4": DType("uint8", 1, packed=2),
    "u4": DType("uint8", 1, packed=2),
    "bool": DType("bool", 1),
}
FLOATS = tuple(name for name, dtype in DTYPES.items() if dtype.unit_roundoff)
BIT_FLOATS = ("bf16", "e4m3", "e5m2")  # floats that NumPy lacks


def plain_dtype(numpy_name: str) -> str | None:
    """Return the type whose arrays are NumPy's arrays of this type, such as "f32" for "float32"; None for none."""
    shared = (*BIT_FLOATS, "tf32", "s4", "u4")
    return next((name for name, one in DTYPES.items() if one.numpy_name == numpy_name and name not in shared), None)
