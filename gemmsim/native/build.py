"""Compiles functions that are written in Python. This module is imported only where no machine code is stored yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir

from gemmsim.native.arguments import RESULTS, ArgumentType
from gemmsim.native.arithmetic import FAILED
from gemmsim.native.code_store import MachineCode
from gemmsim.native.kinds import NOTHING, Array, Struct, of_argument
from gemmsim.native.loader import compiled
from gemmsim.native.translate import Unit, signature_of

_STATUS, _WORD = ir.IntType(32), ir.IntType(64)
_SYMBOL = "gemmsim_entry"


def build(function: Callable[..., Any], signature: Sequence[ArgumentType]) -> MachineCode:
    """Compile a function, in the Python of `gemmsim.native.translate`, for arguments of the types in `signature`.

    These types are in the words of `arguments.describe`. The machine code takes the address for the result, then the
    arguments as `arguments.c_types` says. It returns 0, or 1 where something was divided by zero.
    """
    unit, kinds = Unit(), tuple(map(of_argument, signature))
    declared = signature_of(function)
    made, returns = unit.function(function, kinds, declared.returns if declared else None)
    name = "none" if returns is NOTHING else returns.name
    if name not in RESULTS:
        raise NotImplementedError(f"{function.__qualname__} returns {name}: known are {', '.join(RESULTS)}")
    words = [word for kind in kinds for word in _words_of(kind)]
    entry = ir.Function(unit.module, ir.FunctionType(_STATUS, [ir.IntType(8).as_pointer(), *words]), _SYMBOL)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    place, *given = entry.args
    arguments = iter(given)
    result = builder.call(made, [_gathered(builder, kind, arguments) for kind in kinds])
    if returns is not NOTHING:
        builder.store(result, builder.bitcast(place, returns.llvm.as_pointer()))
    flag = unit.module.globals[FAILED]
    failed = builder.load(flag)
    builder.store(ir.Constant(_STATUS, 0), flag)
    builder.ret(failed)
    return MachineCode(_SYMBOL, name, compiled(str(unit.module)))


def _words_of(kind: Any) -> list[Any]:
    """Return the LLVM types in which an argument of this kind arrives."""
    if isinstance(kind, Struct):
        return [word for _, field in kind.fields for word in _words_of(field)]
    return [_WORD] * (1 + 2 * kind.dimensions) if isinstance(kind, Array) else [kind.llvm]


def _gathered(builder: Any, kind: Any, arguments: Iterator[Any]) -> Any:
    """Return an argument of this kind, made of the next words that have arrived."""
    if not isinstance(kind, (Struct, Array)):
        return next(arguments)
    if isinstance(kind, Struct):
        parts = [_gathered(builder, field, arguments) for _, field in kind.fields]
    else:
        parts = [next(arguments) for _ in range(1 + 2 * kind.dimensions)]
    whole = ir.Constant(kind.llvm, ir.Undefined)
    for number, part in enumerate(parts):
        whole = builder.insert_value(whole, part, number)
    return whole
