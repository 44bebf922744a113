"""Translates expressions of the Python that compiled functions are written in to LLVM."""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import ir

from gemmsim.native.arithmetic import Value, binary, compared, constant, converted, unary, widened
from gemmsim.native.kinds import BOOL, F64, I64, NUMBERS, Array, Number, OneRecord, Several, Struct, joined
from gemmsim.native.parts import SIGNATURES

_WORD = ir.IntType(64)
_COMPUTED: dict[type[ast.operator], Callable[[int, int], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
}


class Known:
    """What is known when a function is compiled: a constant, a module, a function."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Expressions:
    """Writes expressions of one function. `expression` returns a Value, something Known, or a tuple of these."""

    builder: Any
    scope: dict[str, Any]  # globals and what a closure has bound
    variables: tuple[str, ...]  # names of the function's own variables
    known: dict[str, Any]  # variables of loops that are unrolled

    def call(self, function: Any, arguments: list[Value]) -> Value:
        """Call another function that is compiled."""
        raise NotImplementedError

    def variable(self, name: str) -> Value | None:
        """Return the content of a variable of the function, None where it has none of this name."""
        raise NotImplementedError

    def expression(self, node: ast.expr) -> Any:
        write: Callable[[Any], Any] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if write is None:
            raise TypeError(f"no {type(node).__name__} in compiled code")
        return write(node)

    def value(self, node: ast.expr) -> Value:
        """Write an expression whose value is a number, array, record or struct."""
        return self._as_value(self.expression(node))

    def number(self, node: ast.expr, kind: Number) -> Any:
        return converted(self.builder, self.value(node), kind).llvm

    def _as_value(self, found: Any) -> Value:
        if isinstance(found, Known):
            return constant(found.value)
        if not isinstance(found, Value):
            raise TypeError("a tuple is no value")
        return found

    def _constant(self, node: ast.Constant) -> Known:
        return Known(node.value)

    def _name(self, node: ast.Name) -> Any:
        if node.id in self.known:
            return self.known[node.id]
        found = self.variable(node.id)
        if found is not None:
            return found
        if node.id in self.variables:
            raise NameError(f"'{node.id}' is read before anything is assigned to it")
        if node.id in self.scope:
            return Known(self.scope[node.id])
        if hasattr(builtins, node.id):
            return Known(getattr(builtins, node.id))
        raise NameError(f"'{node.id}' is not defined")

    def _tuple(self, node: ast.Tuple) -> Any:
        items = tuple(self.expression(item) for item in node.elts)
        if all(isinstance(item, Known) for item in items):
            return Known(tuple(item.value for item in items))
        return items

    def _attribute(self, node: ast.Attribute) -> Any:
        base = self.expression(node.value)
        if isinstance(base, Known):
            return Known(getattr(base.value, node.attr))
        kind = base.kind
        if isinstance(kind, Struct):
            names = [name for name, _ in kind.fields]
            at = names.index(node.attr)
            return Value(kind.fields[at][1], self.builder.extract_value(base.llvm, at))
        if isinstance(kind, Array) and node.attr == "shape":
            return tuple(Value(I64, self.builder.extract_value(base.llvm, 1 + d)) for d in range(kind.dimensions))
        if isinstance(kind, OneRecord):
            offset, field = kind.field(node.attr)
            return Value(field, self.builder.load(self.field_pointer(base, offset, field)))
        raise TypeError(f"no attribute '{node.attr}'")

    def field_pointer(self, record: Value, offset: int, kind: Any) -> Any:
        at = self.builder.add(record.llvm, ir.Constant(_WORD, offset))
        return self.builder.inttoptr(at, kind.llvm.as_pointer())

    def _binop(self, node: ast.BinOp) -> Any:
        return self.operate(node.op, self.expression(node.left), self.expression(node.right))

    def operate(self, operation: ast.operator, left: Any, right: Any) -> Any:
        """Write an operator. What is known of two plain numbers is computed here."""
        if isinstance(left, Known) and isinstance(right, Known) and type(left.value) is type(right.value) is int:
            return Known(_COMPUTED[type(operation)](left.value, right.value))
        return binary(self.builder, operation, self._as_value(left), self._as_value(right))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        operand = self.expression(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(operand, Known):
                return Known(not operand.value)
            truth = converted(self.builder, self._as_value(operand), BOOL)
            return Value(BOOL, self.builder.not_(truth.llvm))
        if isinstance(operand, Known) and type(operand.value) in (int, float) and isinstance(node.op, ast.USub):
            return Known(-operand.value)
        return unary(self.builder, node.op, self._as_value(operand))

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1:
            raise TypeError("one comparison at a time in compiled code")
        left, compares, right = self.expression(node.left), node.ops[0], self.expression(node.comparators[0])
        if isinstance(left, Known) and isinstance(right, Known):
            return Known(bool(_COMPARED[type(compares)](left.value, right.value)))
        if isinstance(compares, ast.In):
            found = constant(False)
            for item in right.value if isinstance(right, Known) else right:
                other = constant(item) if isinstance(right, Known) else self._as_value(item)
                same = compared(self.builder, ast.Eq(), self._as_value(left), other)
                found = binary(self.builder, ast.BitOr(), found, same)
            return found
        return compared(self.builder, compares, self._as_value(left), self._as_value(right))

    def _boolop(self, node: ast.BoolOp) -> Any:
        """Write `and` or `or`, whose second operand is looked at only where the first one does not decide."""
        first, rest = self.expression(node.values[0]), node.values[1:]
        stops = isinstance(node.op, ast.Or)  # the truth with which it is decided
        if isinstance(first, Known):
            if bool(first.value) is stops:
                return Known(stops)
            return self.expression(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        start = converted(self.builder, first, BOOL).llvm
        other, end = (self.builder.append_basic_block(name) for name in ("other", "decided"))
        before = self.builder.block
        self.builder.cbranch(start, *((end, other) if stops else (other, end)))
        self.builder.position_at_end(other)
        second = self.number(rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest), BOOL)
        after = self.builder.block
        self.builder.branch(end)
        self.builder.position_at_end(end)
        result = self.builder.phi(BOOL.llvm)
        result.add_incoming(ir.Constant(BOOL.llvm, int(stops)), before)
        result.add_incoming(second, after)
        return Value(BOOL, result)

    def _ifexp(self, node: ast.IfExp) -> Any:
        test = self.expression(node.test)
        if isinstance(test, Known):
            return self.expression(node.body if test.value else node.orelse)
        blocks = [self.builder.append_basic_block(name) for name in ("yes", "no", "chosen")]
        self.builder.cbranch(converted(self.builder, test, BOOL).llvm, *blocks[:2])
        ends = []
        for block, branch in zip(blocks[:2], (node.body, node.orelse), strict=True):
            self.builder.position_at_end(block)
            items = branch.elts if isinstance(branch, ast.Tuple) else [branch]
            ends.append(([self.value(item) for item in items], self.builder.block))
        kinds = [joined(a.kind, b.kind) for a, b in zip(ends[0][0], ends[1][0], strict=True)]
        chosen = []
        for values, block in ends:
            self.builder.position_at_end(block)
            pairs = zip(values, kinds, strict=True)
            chosen.append([v if v.kind == kind else converted(self.builder, v, kind) for v, kind in pairs])
            self.builder.branch(blocks[2])
        self.builder.position_at_end(blocks[2])
        results = tuple(Value(kind, self.builder.phi(kind.llvm)) for kind in kinds)
        for values, (_, block) in zip(chosen, ends, strict=True):
            for result, value in zip(results, values, strict=True):
                result.llvm.add_incoming(value.llvm, block)
        return results if isinstance(node.body, ast.Tuple) else results[0]

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.expression(node.value)
        if isinstance(base, (tuple, Known)):
            index = self.expression(node.slice)
            items = base.value if isinstance(base, Known) else base
            if not isinstance(index, Known):
                raise TypeError("the index into a tuple must be a constant")
            return Known(items[index.value]) if isinstance(base, Known) else items[index.value]
        if isinstance(base.kind, Several):
            at = self._several_at(base, node.slice)
            if base.kind.record:
                return Value(OneRecord(base.kind.record), at)
            element = base.kind.number
            number = Value(element, self.builder.load(self.builder.inttoptr(at, element.llvm.as_pointer())))
            return widened(self.builder, number) if element.integer else number
        return self._element(base, self._indexes(base, node.slice))

    def _several_at(self, base: Value, index: ast.expr) -> Any:
        step = ir.Constant(_WORD, base.kind.size_bytes)
        return self.builder.add(base.llvm, self.builder.mul(self.number(index, I64), step))

    def _indexes(self, array: Value, node: ast.expr) -> list[Any]:
        """Write the indexes of an array; those that are known may count from the end."""
        nodes, found = node.elts if isinstance(node, ast.Tuple) else [node], []
        for dimension, one in enumerate(nodes):
            index = self.expression(one)
            if isinstance(index, Known) and index.value < 0:
                length = self.builder.extract_value(array.llvm, 1 + dimension)
                found.append(self.builder.add(length, ir.Constant(_WORD, index.value)))
            else:
                found.append(converted(self.builder, self._as_value(index), I64).llvm)
        return found

    def _address(self, array: Value, indexes: list[Any]) -> Any:
        kind, address = array.kind, self.builder.extract_value(array.llvm, 0)
        for dimension, index in enumerate(indexes):
            if kind.dense and dimension == kind.dimensions - 1:
                step: Any = ir.Constant(_WORD, kind.element.size_bytes)
            else:
                step = self.builder.extract_value(array.llvm, 1 + kind.dimensions + dimension)
            address = self.builder.add(address, self.builder.mul(index, step))
        return address

    def element_pointer(self, array: Value, indexes: list[Any]) -> Any:
        element = array.kind.element
        stored = ir.IntType(8) if element == BOOL else element.llvm
        return self.builder.inttoptr(self._address(array, indexes), stored.as_pointer())

    def _element(self, array: Value, indexes: list[Any]) -> Value:
        kind, left = array.kind, array.kind.dimensions - len(indexes)
        if left:  # a row of it
            row, result = (
                Array(kind.element, left, kind.dense),
                ir.Constant(ir.LiteralStructType([_WORD] * (1 + 2 * left)), ir.Undefined),
            )
            result = self.builder.insert_value(result, self._address(array, indexes), 0)
            for place in range(2 * left):
                half, dimension = divmod(place, left)
                at = 1 + half * kind.dimensions + len(indexes) + dimension
                result = self.builder.insert_value(result, self.builder.extract_value(array.llvm, at), 1 + place)
            return Value(row, result)
        loaded = self.builder.load(self.element_pointer(array, indexes))
        return Value(kind.element, self.builder.trunc(loaded, BOOL.llvm) if kind.element == BOOL else loaded)

    def _call(self, node: ast.Call) -> Any:
        function = self.expression(node.func)
        if not isinstance(function, Known) or node.keywords:
            raise TypeError("only functions that are known can be called, and without keywords")
        called = function.value
        if called in SIGNATURES or isinstance(called, FunctionType):
            return self.call(called, [self.value(argument) for argument in node.args])
        arguments = [self.expression(argument) for argument in node.args]
        return self._builtin(called, arguments)

    def _builtin(self, called: Any, arguments: list[Any]) -> Any:
        builder = self.builder
        if called is len:
            (of,) = arguments
            if isinstance(of, Known):
                return Known(len(of.value))
            return Known(len(of)) if isinstance(of, tuple) else Value(I64, builder.extract_value(of.llvm, 1))
        values = [self._as_value(argument) for argument in arguments]
        if called in (min, max):
            result = values[0]
            for other in values[1:]:
                kind = joined(result.kind, other.kind)
                a, b = converted(builder, result, kind), converted(builder, other, kind)
                takes = compared(builder, ast.Lt() if called is min else ast.Gt(), b, a)
                result = Value(kind, builder.select(takes.llvm, b.llvm, a.llvm))
            return result
        if called in (math.ceil, math.floor):
            (value,) = values
            rounded = builder.module.declare_intrinsic(f"llvm.{called.__name__}", [F64.llvm])
            return converted(builder, Value(F64, builder.call(rounded, [converted(builder, value, F64).llvm])), I64)
        kind = {int: I64, float: F64, bool: BOOL}.get(called)
        if kind is None and isinstance(called, type) and issubclass(called, np.generic):
            kind = NUMBERS.get(np.dtype(called).name)
        if kind is None:
            raise TypeError(f"{getattr(called, '__qualname__', called)} cannot be called in compiled code")
        return converted(builder, values[0], kind)
