"""Makes functions over records known to numba: the types of `gemmsim.native.records`, and calls of one another.

This is imported only where something is compiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any, get_type_hints

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.imputils import lower_builtin, lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature

from gemmsim.native.numba_parts import subroutine
from gemmsim.native.records import Ints, Reals, Record, Rows, Shorts, fields_of, size_of

_WORD = ir.IntType(64)
_CALLABLE: set[FunctionType] = set()  # functions that numba can call already


class RecordType(types.Type):
    """numba's type of a record: its values are addresses of records of class `record`."""

    def __init__(self, record: type[Record]) -> None:
        self.record = record
        super().__init__(name=f"{record.__module__}.{record.__qualname__}")

    def type_of(self, field: str) -> Any:
        """Return numba's type of a field; None where the record has no such field."""
        found = fields_of(self.record).get(field)
        if found is None:
            return None
        return values_type(found.target) if found.kind is Rows else type_of(found.target or found.kind)


class ValuesType(types.Type):
    """numba's type of `Ints`, `Reals`, `Shorts` and `Rows`: the address of values that lie one after another.

    element     numba's type of one value
    stored      its LLVM type in memory, None for records
    size_bytes  its size
    """

    def __init__(self, name: str, element: Any, stored: Any, size_bytes: int) -> None:
        self.element, self.stored, self.size_bytes = element, stored, size_bytes
        super().__init__(name=name)


@register_default(RecordType)
@register_default(ValuesType)
class _Address(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)


_PLAIN = {int: types.int64, float: types.float64, bool: types.boolean, type(None): types.void}
_VALUES = {
    Ints: ValuesType("Ints", types.int64, _WORD, 8),
    Reals: ValuesType("Reals", types.float64, ir.DoubleType(), 8),
    Shorts: ValuesType("Shorts", types.int64, ir.IntType(32), 4),
}


def type_of(hint: Any) -> Any:
    """Return numba's type of a field or argument with the annotation `hint`."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    return _VALUES[hint] if hint in _VALUES else RecordType(hint)


def values_type(record: type[Record]) -> ValuesType:
    """Return numba's type of a field or argument with the annotation `Rows[record]`."""
    return ValuesType(f"Rows[{record.__module__}.{record.__qualname__}]", RecordType(record), None, size_of(record))


@infer_getattr
class _Fields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, value: RecordType, attr: str) -> Any:
        return value.type_of(attr)


def _place(builder: Any, kind: RecordType, address: Any, name: str) -> tuple[Any, bool]:
    """Return a pointer to field `name` of the record at `address`, and whether the field is a float64."""
    field = fields_of(kind.record)[name]
    stored = ir.DoubleType() if field.kind is float else _WORD
    at = builder.add(address, ir.Constant(_WORD, field.offset))
    return builder.inttoptr(at, stored.as_pointer()), field.kind is float


@lower_getattr_generic(RecordType)
def _get_field(context: Any, builder: Any, kind: Any, value: Any, attr: str) -> Any:
    return builder.load(_place(builder, kind, value, attr)[0])


@lower_setattr_generic(RecordType)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, attr: str) -> None:
    place, real = _place(builder, sig.args[0], args[0], attr)
    builder.store(context.cast(builder, args[1], sig.args[1], types.float64 if real else types.int64), place)


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ValuesType) and isinstance(args[1], types.Integer):
            return signature(args[0].element, args[0], types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        if isinstance(args[0], ValuesType) and args[0].stored is not None:
            return signature(types.none, args[0], types.int64, args[0].element)
        return None


def _item(builder: Any, kind: ValuesType, values: Any) -> Any:
    """Return the address of an element; `values` are the address of the first element and the index of this one."""
    return builder.add(values[0], builder.mul(values[1], ir.Constant(_WORD, kind.size_bytes)))


@lower_builtin(operator.getitem, ValuesType, types.int64)
def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    at = _item(builder, kind, args)
    if kind.stored is None:
        return at
    found = builder.load(builder.inttoptr(at, kind.stored.as_pointer()))
    return builder.sext(found, _WORD) if kind.size_bytes < 8 else found


@lower_builtin(operator.setitem, ValuesType, types.int64, types.Any)
def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.args[0]
    builder.store(args[2], builder.inttoptr(_item(builder, kind, args), kind.stored.as_pointer()))
    return context.get_dummy_value()


def let_call(function: Callable[..., Any]) -> None:
    """Let numba compile calls of all functions that `function` calls, directly or through others. The types of their
    arguments are those of their annotations.
    """
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called not in _CALLABLE:
            _CALLABLE.add(called)
            let_call(called)
            hints = get_type_hints(called)
            returns = hints.pop("return")
            subroutine(type_of(returns), *map(type_of, hints.values()))(called)
