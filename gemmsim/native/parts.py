"""How small functions reach the compiler: with fixed kinds of arguments, and written in Python or in LLVM.

A `subroutine` is compiled once into each piece of machine code that calls it. An `instruction` is written in LLVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir

from gemmsim.native import kinds

ADDRESS = kinds.U64  # addresses and other 64-bit words
INDEX = kinds.I64  # numbers
WORD = kinds.U32  # register contents and lane masks
BYTE, SHORT = kinds.U8, kinds.U16
TRUTH, NOTHING = kinds.BOOL, kinds.NOTHING
SINGLE, DOUBLE = kinds.F32, kinds.F64

Decorator = Callable[..., Callable[..., Any]]


class Signature(NamedTuple):
    """The kinds of a function's result and arguments, and what writes it in LLVM, if that is how it is made."""

    returns: Any
    arguments: tuple[Any, ...]
    write: Callable[..., Any] | None = None


SIGNATURES: dict[Any, Signature] = {}


def instruction(returns: Any, *arguments: Any) -> Decorator:
    """Decorate a function (builder, *values) -> value or None that writes LLVM: compiled code can then call it by its
    name, with arguments of these kinds.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def name(*args: Any) -> Any:
            raise NotImplementedError("this runs only inside compiled code")

        name.__name__, name.__doc__ = body.__name__, body.__doc__
        SIGNATURES[name] = Signature(returns, arguments, body)
        return name

    return decorate


def subroutine(returns: Any, *arguments: Any) -> Decorator:
    """Decorate a function, written in the Python that `gemmsim.native.translate` understands, so that compiled code can
    call it with arguments of these kinds. It may call other subroutines and instructions.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        SIGNATURES[function] = Signature(returns, arguments)
        return function

    return decorate


def alloca_once(builder: Any, type_: Any, size: Any = None) -> Any:
    """Reserve room for a value, or for `size` values, that lasts as long as the function runs; returns a pointer."""
    with builder.goto_entry_block():
        return builder.alloca(type_, size=size)


class Loop(NamedTuple):
    """A loop that is being written; `index` is the number of the turn, 64 bits."""

    index: Any


@contextmanager
def for_range(builder: Any, count: Any) -> Iterator[Loop]:
    """Write a loop of `count` turns; what is written inside is its body."""
    place, word = alloca_once(builder, count.type), count.type
    builder.store(ir.Constant(word, 0), place)
    test, body, end = (builder.append_basic_block(name) for name in ("turn", "turn.body", "turn.end"))
    builder.branch(test)
    builder.position_at_end(test)
    index = builder.load(place)
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    yield Loop(index)
    builder.store(builder.add(index, ir.Constant(word, 1)), place)
    builder.branch(test)
    builder.position_at_end(end)
