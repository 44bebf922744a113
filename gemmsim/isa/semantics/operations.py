"""Collects the micro-operations that the modules of this package register."""

from __future__ import annotations

from functools import cache

from gemmsim.isa.semantics import (  # noqa: F401
    conversion,
    double,
    half,
    integer,
    logic,
    packed,
    predicate,
    rounding,
    single,
    small,
    transcendental,
)
from gemmsim.isa.semantics.registry import OPS, Op


@cache
def load() -> dict[str, Op]:
    """Return {name: micro-operation}, sorted by name.

    The order decides the numbers of micro-operations in the compiled executor, which is kept between runs. So it must
    not depend on which module happens to be imported first.
    """
    return dict(sorted(OPS.items()))
