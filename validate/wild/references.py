"""Compares what a kernel stored with what NumPy computes in float64.

`check.kind` of the manifest names a reference of `REFERENCES`; the other keys of `check` are its parameters. `a`, `b`,
`c`, `out` and the like are positions in `args`; sizes are formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.errors import GemmsimError

from . import other_references as other
from .gemm_reference import gemm
from .reference import Before, Expected, decoded

REFERENCES: dict[str, Callable[[Before], list[Expected]]] = {
    "gemm": gemm,
    "elementwise": other.elementwise,
    "transpose": other.transpose,
    "sum": other.sum,
    "softmax": other.softmax,
    "layernorm": other.layernorm,
    "column_sums": other.column_sums,
    "row_dots": other.row_dots,
    "dropout": other.dropout,
    "philox_dropout": other.philox_dropout,
    "layernorm_backward": other.layernorm_backward,
    "attention": other.attention,
    "scan": other.scan,
    "byte_histogram": other.byte_histogram,
    "sorted": other.in_order,
    "count_positive": other.count_positive,
    "walsh": other.walsh,
    "black_scholes": other.black_scholes,
    "split_heads": other.split_heads,
    "same_tiles": other.same_tiles,
    "nothing": other.nothing,
    "heat": other.heat,
    "row_numbers": other.row_numbers,
    "given": other.given,
    "business": other.business,
}


def expected(before: Before) -> list[Expected]:
    """Return what the reference of `before.check` computes. Raises GemmsimError for an unknown kind."""
    kind = str(before.check.get("kind"))
    if kind not in REFERENCES:
        raise GemmsimError(f"manifest: unknown check '{kind}': known are {', '.join(REFERENCES)}")
    return REFERENCES[kind](before)


def compare(wanted: Expected, after: NDArray[Any]) -> str:
    """Return "" where `after` is as wanted, else one line that says what differs."""
    got = decoded(after, wanted.dtype).ravel()
    if got.size < wanted.values.size:
        return f"argument {wanted.position} has {got.size} elements, the reference {wanted.values.size}"
    values, got = wanted.values.ravel(), got[: wanted.values.size]
    error = np.abs(got - values)
    same = (got == values) | (np.isnan(got) & np.isnan(values))
    bad = np.flatnonzero(~same & ~(error <= wanted.allowed))
    if not bad.size:
        return ""
    first = int(bad[0])
    return (
        f"{bad.size} of {values.size} elements of argument {wanted.position} differ, first [{first}]: "
        f"{got[first]:.6g}, NumPy has {values[first]:.6g}"
    )
