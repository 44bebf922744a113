"""Finds the machine code of the micro-operations that are compiled by themselves, each when a program first has it.

These are the operations on lanes, of which a program has a few of many, and those that most programs lack. So the first
run of a program compiles what this program needs, and the executor's loop knows nothing of the rest.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from gemmsim.native.function import NativeFunction
from gemmsim.native.written import WrittenFunctions
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.trace import micro
from gemmsim.trace.engine.variants import sources_of
from gemmsim.trace.lower.context import CONTROL_NUMBER, OP_NUMBER, MicroProgram

# Micro-operation -> the module and the function that executes it, which all take the same arguments.
_PARTS = {
    "exchange": ("engine.exchange", "exchange"),
    "mbarrier": ("engine.mbarrier", "operate"),
    "copy_in_bulk": ("engine.bulk_copies", "copy_in_bulk"),
    "order_groups": ("engine.warpgroup_order", "order_groups"),
    "move_matrix": ("engine.matrix", "move_matrix"),
    "multiply_matrix": ("engine.multiply", "multiply_matrix"),
    "multiply_warpgroup": ("engine.warpgroup", "multiply_warpgroup"),
}
# When sanitizing, those that also check
_WATCHED = {
    "mbarrier": ("engine.watched.mbarriers", "operate_watched"),
    "copy_in_bulk": ("engine.watched.bulk", "copy_watched"),
    "multiply_warpgroup": ("engine.watched.matrices", "multiply_watched"),
}
_ATOMIC = ("engine.combine", "combine")
_ARGUMENTS = ("uint64", "uint64", "uint64", "uint32", "int64")


def linked(program: MicroProgram, sanitizing: bool = False) -> MicroProgram:
    """Return the program with the address of its machine code in each micro-operation that is compiled by itself."""
    return _linked_watched(program) if sanitizing else _linked(program)


@cached_by_identity(8)
def _linked(program: MicroProgram) -> MicroProgram:
    return _with_addresses(program, _PARTS)


@cached_by_identity(2)
def _linked_watched(program: MicroProgram) -> MicroProgram:
    return _with_addresses(program, _PARTS | _WATCHED)


def _with_addresses(program: MicroProgram, parts: dict[str, tuple[str, str]]) -> MicroProgram:
    code = program.code.copy()
    operations, accesses = code[:, micro.OP], code[:, micro.OP] == CONTROL_NUMBER["access"]
    names = [name for name, number in OP_NUMBER.items() if number in set(np.unique(operations).tolist())]
    for name, address in zip(names, lane_operations().addresses(names), strict=True):
        _link(code, operations == OP_NUMBER[name], address)
    for name, part in parts.items():
        if (chosen := operations == CONTROL_NUMBER[name]).any():
            _link(code, chosen, _part(*part).address(_ARGUMENTS))
    if (chosen := accesses & (code[:, micro.ACCESS] >> micro.KIND_SHIFT == micro.ATOMIC)).any():
        _link(code, chosen, _part(*_ATOMIC).address(_ARGUMENTS))
    return replace(program, code=code)


def _link(code: np.ndarray, chosen: np.ndarray, address: int) -> None:
    code[chosen, micro.FUNCTION], code[chosen, micro.FUNCTION + 1] = address & 0xFFFFFFFF, address >> 32


@cache
def _part(module: str, function: str) -> NativeFunction:
    name = f"gemmsim.trace.{module}"
    return NativeFunction(name, function, sources_of(name))


@cache
def lane_operations() -> WrittenFunctions:
    """Return the operations on lanes, which are functions (their row in the code, a warp's rows, mask)."""
    return WrittenFunctions(name := "gemmsim.trace.llvm.lane_operations", "written", sources_of(name))
