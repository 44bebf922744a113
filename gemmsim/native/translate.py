"""Translates functions, written in a small part of Python, to LLVM.

That part has numbers, arrays, records and structs of them, `if`, `while`, `for` over ranges, arrays and tuples, and
calls of other functions that can be translated. Names that are no variables are looked up when the function is
translated, so that constants, and flags which a closure has bound, cost nothing when it runs. A variable has one kind
in all of its function: the one that holds whatever is assigned to it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, get_type_hints

from llvmlite import ir

from gemmsim.native.arithmetic import FAILED, Value, constant, converted
from gemmsim.native.expressions import Known
from gemmsim.native.kinds import BOOL, I64, NOTHING, Array, Several, joined, kind_of
from gemmsim.native.loops import Loop, Loops
from gemmsim.native.parts import SIGNATURES, Signature, alloca_once

_WORD = ir.IntType(64)


class Unit:
    """One module of LLVM, and the functions that have been translated into it."""

    def __init__(self) -> None:
        self.module = ir.Module()
        self._made: dict[tuple[Any, tuple[Any, ...]], tuple[Any, Any]] = {}
        flag = ir.GlobalVariable(self.module, ir.IntType(32), FAILED)
        flag.linkage, flag.initializer = "internal", ir.Constant(ir.IntType(32), 0)

    def function(self, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any) -> tuple[Any, Any]:
        """Return the LLVM function for arguments of these kinds, and the kind of what it returns.

        returns  that kind, None where it is that of what the function returns
        """
        key = function, arguments
        if key not in self._made:
            self._made[key] = _Body(self, function, arguments, returns).translated()
        return self._made[key]


def signature_of(function: Callable[..., Any]) -> Signature | None:
    """Return the kinds that a function declares, None where it declares none."""
    if function not in SIGNATURES:
        hints = get_type_hints(function)
        if "return" not in hints:
            return None
        returns = kind_of(hints.pop("return"))
        SIGNATURES[function] = Signature(returns, tuple(map(kind_of, hints.values())))
    return SIGNATURES[function]


class _Body(Loops):
    """Writes one function. It is written again where a variable turns out to need a wider kind."""

    def __init__(self, unit: Unit, function: Callable[..., Any], arguments: tuple[Any, ...], returns: Any) -> None:
        self.unit, self.python, self.arguments = unit, function, arguments
        source = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(source, ast.FunctionDef)
        self.source = source
        self.variables = function.__code__.co_varnames
        bound = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self.scope = {**function.__globals__, **{name: cell.cell_contents for name, cell in bound}}
        self.kinds: dict[str, Any] = {}
        self.returns = returns
        self.declared = returns is not None

    def translated(self) -> tuple[Any, Any]:
        while True:
            self.wider = False
            self.places: dict[str, Any] = {}
            self.known: dict[str, Any] = {}
            self.loops: list[Loop] = []
            returns = NOTHING if self.returns is None else self.returns
            type_ = ir.FunctionType(returns.llvm, [kind.llvm for kind in self.arguments])
            made = ir.Function(self.unit.module, type_, self.unit.module.get_unique_name(self.python.__name__))
            made.linkage = "internal"
            if not self.declared:
                made.attributes.add("alwaysinline")
            self.builder = ir.IRBuilder(made.append_basic_block("entry"))
            for argument, name, kind in zip(made.args, self.source.args.args, self.arguments, strict=True):
                self._assign(name.arg, Value(kind, argument))
            self.block(self.source.body)
            self._end()
            if not self.wider:
                return made, NOTHING if self.returns is None else self.returns
            del self.unit.module.globals[made.name]

    def _end(self) -> None:
        if self.builder.block.is_terminated:
            return
        if self.returns in (None, NOTHING):
            self.builder.ret_void()
        else:
            raise TypeError("it may end without returning a value")

    def block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            write: Callable[[Any], None] | None = getattr(self, f"_do_{type(statement).__name__.lower()}", None)
            try:
                if write is None:
                    raise TypeError(f"no {type(statement).__name__} in compiled code")
                write(statement)
            except (TypeError, NameError, ValueError, KeyError, AttributeError) as error:
                if hasattr(error, "placed"):
                    raise
                line = self.python.__code__.co_firstlineno + statement.lineno - 1
                place = f"{self.python.__module__}.{self.python.__qualname__}, line {line}"
                placed = TypeError(f"{place}: {error}")
                placed.placed = True  # type: ignore[attr-defined]
                raise placed from error

    # Variables and calls

    def variable(self, name: str) -> Value | None:
        if name not in self.places:
            return None
        return Value(self.kinds[name], self.builder.load(self.places[name]))

    def _assign(self, name: str, value: Value) -> None:
        self.known.pop(name, None)
        kind = joined(self.kinds.get(name, value.kind), value.kind)
        if name in self.places and kind != self.kinds[name]:
            self.wider = True
        if name not in self.places:
            self.places[name] = alloca_once(self.builder, kind.llvm)
            self.kinds[name] = kind
        elif kind != self.kinds[name]:
            self.kinds[name] = kind
            self.places[name] = alloca_once(self.builder, kind.llvm)
        value = value if value.kind == self.kinds[name] else converted(self.builder, value, self.kinds[name])
        self.builder.store(value.llvm, self.places[name])

    def call(self, function: Any, arguments: list[Value]) -> Value:
        signature = signature_of(function)
        kinds = signature.arguments if signature else tuple(argument.kind for argument in arguments)
        if len(kinds) != len(arguments):
            raise TypeError(f"{function.__name__} takes {len(kinds)} arguments")
        values = [
            v.llvm if v.kind == kind else converted(self.builder, v, kind).llvm
            for v, kind in zip(arguments, kinds, strict=True)
        ]
        if signature and signature.write:
            return Value(signature.returns, signature.write(self.builder, *values))
        made, returns = self.unit.function(function, kinds, signature.returns if signature else None)
        return Value(returns, self.builder.call(made, values))

    # Statements

    def _do_expr(self, node: ast.Expr) -> None:
        self.expression(node.value)

    def _do_pass(self, node: ast.Pass) -> None:
        pass

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.store(node.target, self.expression(node.value))

    def _do_assign(self, node: ast.Assign) -> None:
        found = self.expression(node.value)
        for target in node.targets:
            self.store(target, found)

    def store(self, target: ast.expr, found: Any) -> None:
        if isinstance(target, ast.Tuple):
            for one, item in zip(target.elts, self.items(found), strict=True):
                self.store(one, item)
            return
        value = self._as_value(found)
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
            return
        assert isinstance(target, (ast.Subscript, ast.Attribute))
        base = self.value(target.value)
        if isinstance(target, ast.Attribute):
            offset, kind = base.kind.field(target.attr)
            self.builder.store(converted(self.builder, value, kind).llvm, self.field_pointer(base, offset, kind))
        elif isinstance(base.kind, Several):
            element = base.kind.number
            at = self.builder.inttoptr(self._several_at(base, target.slice), element.llvm.as_pointer())
            self.builder.store(converted(self.builder, value, element).llvm, at)
        elif isinstance(target.slice, ast.Slice):
            self._fill(base, value)
        else:
            self._put(base, self._indexes(base, target.slice), value)

    def _put(self, array: Value, indexes: list[Any], value: Value) -> None:
        element = array.kind.element
        number = converted(self.builder, value, element).llvm
        if element == BOOL:
            number = self.builder.zext(number, ir.IntType(8))
        self.builder.store(number, self.element_pointer(array, indexes))

    def _fill(self, array: Value, value: Value) -> None:
        """Write a value to all elements of an array."""
        kind, count = array.kind, ir.Constant(_WORD, 1)
        if not kind.dense:
            raise TypeError("only arrays without gaps can be filled")
        for dimension in range(kind.dimensions):
            count = self.builder.mul(count, self.builder.extract_value(array.llvm, 1 + dimension))
        flat = ir.Constant(Array(kind.element, 1, True).llvm, ir.Undefined)
        flat = self.builder.insert_value(flat, self.builder.extract_value(array.llvm, 0), 0)
        for index in self.counted(constant(0), Value(I64, count), constant(1), []):
            self._put(Value(Array(kind.element, 1, True), flat), [index.llvm], value)

    def _do_augassign(self, node: ast.AugAssign) -> None:
        load = ast.copy_location(
            {
                ast.Name: lambda t: ast.Name(t.id, ast.Load()),
                ast.Attribute: lambda t: ast.Attribute(t.value, t.attr, ast.Load()),
                ast.Subscript: lambda t: ast.Subscript(t.value, t.slice, ast.Load()),
            }[type(node.target)](node.target),
            node.target,
        )
        self.store(node.target, self.operate(node.op, self.expression(load), self.expression(node.value)))

    def _do_return(self, node: ast.Return) -> None:
        if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.builder.ret_void()
            return
        value = self.value(node.value)
        kind = (
            value.kind if self.returns is None else self.returns if self.declared else joined(self.returns, value.kind)
        )
        if kind != self.returns:
            self.returns, self.wider = kind, True
        value = value if value.kind == kind else converted(self.builder, value, kind)
        self.builder.ret(value.llvm)

    def _do_if(self, node: ast.If) -> None:
        test = self.expression(node.test)
        if isinstance(test, Known):
            self.block(node.body if test.value else node.orelse)
            return
        yes, no, end = (self.builder.append_basic_block(name) for name in ("if", "else", "endif"))
        self.builder.cbranch(converted(self.builder, test, BOOL).llvm, yes, no)
        reached = False
        for block, statements in ((yes, node.body), (no, node.orelse)):
            self.builder.position_at_end(block)
            self.block(statements)
            if not self.builder.block.is_terminated:
                self.builder.branch(end)
                reached = True
        self.builder.position_at_end(end)
        if not reached:
            self.builder.unreachable()
