"""Reads `tensor_sums.toml`, which says how the tensor cores of each architecture sum products of floats."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.program import Program

_SINGLE_BITS = 23
TABLE_FILE = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class TensorSum:
    """How the products of one instruction are summed; the table's head explains the fields."""

    fraction_bits: int
    step_bytes: int


@cache
def _table() -> dict[int, dict[str, int]]:
    """Return {compute capability as 10 * major + minor: its row}."""
    document = tomllib.loads(TABLE_FILE.read_text(encoding="utf-8"))
    return {int(arch.removeprefix("sm_")): row for arch, row in document.items()}


def tensor_sum(arch: str, precision: str) -> TensorSum:
    """Return how `arch` ("sm_90a") sums products of a precision ("tensor_fp16").

    An architecture that the table lacks is taken to sum as the last one before it.
    """
    number = int(arch.removeprefix("sm_").rstrip("af"))
    row = next(row for known, row in sorted(_table().items(), reverse=True) if known <= number)
    bits = row["fraction_bits"]
    if precision == "tensor_fp8":
        bits = row.get("fp8_fraction_bits", bits)
    return TensorSum(bits, row["step_bytes"])


def sum_roundoff(program: Program) -> float:
    """Return the largest relative error by which the tensor cores cut the terms and sums of `program`, where they keep
    fewer bits than fp32 has; 0 where they do not."""
    found = [multiply.precision for one in program.instructions if (multiply := matrix_multiply(one)) is not None]
    kept = [tensor_sum(program.arch, precision).fraction_bits for precision in set(found) if precision == "tensor_fp8"]
    return max((2.0**-bits for bits in kept if bits < _SINGLE_BITS), default=0.0)
