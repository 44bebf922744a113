"""Collects the semantic functions into one table of micro-operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gemmsim.isa.lanes import Lanes

# The names for annotations. To Python they are all `Lanes`.
u32 = s32 = u64 = s64 = f32 = f64 = pred = imm = Lanes

MAX_SOURCES = 5
MAX_IMMEDIATES = 3
MAX_RESULTS = 3


@dataclass(frozen=True)
class Op:
    """One micro-operation on lanes: its name, its semantic function, and the types of its operands and results."""

    name: str
    function: Callable[..., Any]
    sources: tuple[str, ...]
    immediates: int
    results: tuple[str, ...]


OPS: dict[str, Op] = {}


def op(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Register a semantic function. The package's docstring says what its annotations mean."""
    signature = inspect.signature(function)
    types = [str(p.annotation) for p in signature.parameters.values()]
    sources = tuple(t for t in types if t != "imm")
    if tuple(types) != sources + ("imm",) * (len(types) - len(sources)):
        raise TypeError(f"{function.__name__}: immediates come last")
    returned = str(signature.return_annotation).removeprefix("tuple[").removesuffix("]")
    results = tuple(returned.replace(" ", "").split(","))
    assert len(sources) <= MAX_SOURCES and len(results) <= MAX_RESULTS and len(types) - len(sources) <= MAX_IMMEDIATES
    key = name or function.__name__
    assert key not in OPS, key
    OPS[key] = Op(key, function, sources, len(types) - len(sources), results)
    return function
