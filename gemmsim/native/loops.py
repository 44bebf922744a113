"""Translates the loops of the Python that compiled functions are written in to LLVM."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from llvmlite import ir

from gemmsim.native.arithmetic import Value, compared, constant, converted
from gemmsim.native.expressions import Expressions, Known
from gemmsim.native.kinds import BOOL, I64, U64, Array
from gemmsim.native.parts import alloca_once

_WORD = ir.IntType(64)


class Loop:
    """The blocks to which `continue` and `break` go."""

    def __init__(self, again: Any, end: Any) -> None:
        self.again, self.end, self.left = again, end, False


class Loops(Expressions):
    """Writes the loops of one function."""

    loops: list[Loop]  # those around what is being written

    def block(self, statements: list[ast.stmt]) -> None:
        """Write statements."""
        raise NotImplementedError

    def store(self, target: ast.expr, found: Any) -> None:
        """Assign what an expression has given."""
        raise NotImplementedError

    def _do_while(self, node: ast.While) -> None:
        again, body, end = (self.builder.append_basic_block(name) for name in ("while", "while.body", "while.end"))
        self.builder.branch(again)
        self.builder.position_at_end(again)
        test = self.expression(node.test)
        endless = isinstance(test, Known) and bool(test.value)
        if endless:
            self.builder.branch(body)
        else:
            self.builder.cbranch(converted(self.builder, self._as_value(test), BOOL).llvm, body, end)
        loop = self._in_loop(body, node.body, again, end)
        self.builder.position_at_end(end)
        if endless and not loop.left:
            self.builder.unreachable()

    def _in_loop(self, block: Any, statements: list[ast.stmt], again: Any, end: Any) -> Loop:
        self.builder.position_at_end(block)
        self.loops.append(Loop(again, end))
        self.block(statements)
        if not self.builder.block.is_terminated:
            self.builder.branch(again)
        return self.loops.pop()

    def _do_break(self, node: ast.Break) -> None:
        self.loops[-1].left = True
        self.builder.branch(self.loops[-1].end)

    def _do_continue(self, node: ast.Continue) -> None:
        self.builder.branch(self.loops[-1].again)

    def _do_for(self, node: ast.For) -> None:
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
            bounds = [self.value(argument) for argument in call.args]
            start, stop = (constant(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
            step = bounds[2] if len(bounds) == 3 else constant(1)
            for index in self.counted(start, stop, step, node.body):
                self.store(node.target, index)
            return
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "enumerate":
            self._unrolled(node, [(Known(n), item) for n, item in enumerate(self._known_items(call.args[0]))])
            return
        over = self.expression(call)
        if isinstance(over, Value) and isinstance(over.kind, Array):
            length = Value(I64, self.builder.extract_value(over.llvm, 1))
            for index in self.counted(constant(0), length, constant(1), node.body):
                self.store(node.target, self._element(over, [index.llvm]))
            return
        self._unrolled(node, self._known_items(call))

    def _known_items(self, node: ast.expr) -> list[Any]:
        return self.items(self.expression(node))

    def items(self, found: Any) -> list[Any]:
        if isinstance(found, Known) and isinstance(found.value, tuple):
            return [Known(item) for item in found.value]
        if isinstance(found, tuple):
            return list(found)
        raise TypeError("a range, an array or a tuple is wanted")

    def _unrolled(self, node: ast.For, items: list[Any]) -> None:
        end = self.builder.append_basic_block("for.end")
        names = [one.id for one in (node.target.elts if isinstance(node.target, ast.Tuple) else [node.target])]  # type: ignore[attr-defined]
        for item in items:
            turn, following = (self.builder.append_basic_block(name) for name in ("for.turn", "for.next"))
            self.builder.branch(turn)
            values = self.items(item) if isinstance(node.target, ast.Tuple) else [item]
            self.known.update(zip(names, values, strict=True))
            self._in_loop(turn, node.body, following, end)
            self.builder.position_at_end(following)
        for name in names:
            self.known.pop(name, None)
        self.builder.branch(end)
        self.builder.position_at_end(end)

    def counted(self, start: Value, stop: Value, step: Value, body: list[ast.stmt]) -> Iterator[Value]:
        """Write a loop over a range: yields the number of the turn, for what comes before the body."""
        kind = U64 if U64 in (start.kind, stop.kind) else I64
        first, last, by = (converted(self.builder, v, kind).llvm for v in (start, stop, step))
        place = alloca_once(self.builder, _WORD)
        self.builder.store(first, place)
        test, turn, again, end = (
            self.builder.append_basic_block(n) for n in ("for", "for.turn", "for.next", "for.end")
        )
        self.builder.branch(test)
        self.builder.position_at_end(test)
        index, zero = Value(kind, self.builder.load(place)), constant(0)
        up = compared(self.builder, ast.Lt(), index, Value(kind, last))
        down = compared(self.builder, ast.Gt(), index, Value(kind, last))
        if isinstance(step.llvm, ir.Constant):
            goes_on = up if step.llvm.constant > 0 else down
        else:
            upwards = compared(self.builder, ast.Gt(), step, zero)
            goes_on = Value(BOOL, self.builder.select(upwards.llvm, up.llvm, down.llvm))
        self.builder.cbranch(goes_on.llvm, turn, end)
        self.builder.position_at_end(turn)
        yield index
        self._in_loop(self.builder.block, body, again, end)
        self.builder.position_at_end(again)
        self.builder.store(self.builder.add(self.builder.load(place), by), place)
        self.builder.branch(test)
        self.builder.position_at_end(end)
