"""Lists the element types of kernel arguments in one table, with everything that depends on such a type."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    numpy_name     NumPy's name for the type; "uint16" for bf16, whose arrays hold bit patterns
    item_bytes     size of one element in bytes
    unit_roundoff  largest relative error of rounding to this type; 0 for integers
    """

    numpy_name: str
    item_bytes: int
    unit_roundoff: float = 0.0


DTYPES = {
    "f16": DType("float16", 2, 2.0**-11),
    "bf16": DType("uint16", 2, 2.0**-8),
    "f32": DType("float32", 4, 2.0**-24),
    "f64": DType("float64", 8, 2.0**-53),
    "i8": DType("int8", 1),
    "i32": DType("int32", 4),
    "i64": DType("int64", 8),
    "u8": DType("uint8", 1),
    "u32": DType("uint32", 4),
    "u64": DType("uint64", 8),
}
FLOATS = tuple(name for name, dtype in DTYPES.items() if dtype.unit_roundoff)
