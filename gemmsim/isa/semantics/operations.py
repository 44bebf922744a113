"""Gives access to the micro-operations of all modules of this package."""

from __future__ import annotations

from functools import cache

from gemmsim.isa.semantics import conversion, double, half, integer, logic, predicate, single  # noqa: F401
from gemmsim.isa.semantics.registry import OPS, Op


@cache
def load() -> dict[str, Op]:
    """Return {name: micro-operation}, sorted by name.

    The order decides the numbers in the compiled executor, which is kept between runs: it must not depend on which of
    these modules happens to be imported first.
    """
    return dict(sorted(OPS.items()))
