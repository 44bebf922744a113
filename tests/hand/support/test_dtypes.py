"""The table of element types, against NumPy and the formats' definitions."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.support.dtypes import DTYPES, FLOATS

FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "tf32": 10, "f64": 52, "e4m3": 3, "e5m2": 2}


@pytest.mark.parametrize("name", DTYPES)
def test_sizes_are_those_of_the_name_and_of_numpy(name: str) -> None:
    dtype = DTYPES[name]
    bits = {"tf32": 32, "e4m3": 8, "e5m2": 8, "bool": 8}
    size = bits[name] if name in bits else int(name.lstrip("bfius")) * dtype.packed
    assert dtype.item_bytes == np.dtype(dtype.numpy_name).itemsize == size // 8


def test_roundoff_is_half_a_unit_of_the_last_fraction_bit() -> None:
    assert tuple(FRACTION_BITS) == FLOATS
    assert {name: DTYPES[name].unit_roundoff for name in FLOATS} == {
        name: 2.0 ** -(bits + 1) for name, bits in FRACTION_BITS.items()
    }
