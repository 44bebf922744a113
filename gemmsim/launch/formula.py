"""Reads what a kernel should compute, as in "D = relu(alpha * A @ B.T + bias)", and checks the shapes of its arrays.

A formula is text from the command line. It is parsed, never run: only what `_Parser` names is known.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmsim.support.dtypes import DTYPES
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.plurals import plural
from gemmsim.trace.types import Argument

# How many arguments each function takes.
FUNCTIONS = {
    "relu": 1,
    "gelu": 1,
    "gelu_tanh": 1,
    "silu": 1,
    "sigmoid": 1,
    "tanh": 1,
    "exp": 1,
    "sqrt": 1,
    "abs": 1,
    "max": 2,
    "min": 2,
    "column": 1,
}
_CASTS = tuple(name for name, dtype in DTYPES.items() if dtype.unit_roundoff)
_MAX_CHARACTERS = 500
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number, whose shape is ()."""

    value: float
    shape: Shape = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array as it is before the launch. `position` is its index in `Launch.args`; `shape` counts elements."""

    position: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Call:
    """A function of other nodes, element by element: one of FUNCTIONS, "+", "-", "*", "/", or a type it is rounded to.

    "column" turns a vector [m] into a column [m, 1].
    """

    name: str
    of: tuple[Node, ...]
    shape: Shape


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product, a batch of them where the shapes have more than two dimensions."""

    left: Node
    right: Node
    shape: Shape


@dataclass(frozen=True, slots=True)
class Transposed:
    """The last two dimensions exchanged."""

    of: Node
    shape: Shape


Node = Number | Leaf | Call | Product | Transposed


@dataclass(frozen=True, slots=True)
class Formula:
    """What an array should hold after the launch.

    text    as the user wrote it
    output  position in `Launch.args` of the array on the left
    value   what stands on the right; its shape is the array's, or is stretched to it
    """

    text: str
    output: int
    value: Node


def parse_formula(
    text: str, args: Sequence[Argument], names: Mapping[str, int], numbers: Mapping[str, float]
) -> Formula:
    """Read a formula.

    args     as in `Launch.args`
    names    {name: position in `args`} of the arrays
    numbers  {name: value} of what else may be named, such as alpha and beta

    Raises GemmsimError, one line, where the text is malformed, names what is not there, or its shapes do not agree.
    """
    what = f"--verify '{text}'"
    name, equals, right = (part.strip() for part in text.partition("="))
    if not equals or len(text) > _MAX_CHARACTERS:
        raise GemmsimError(f"{what} is not known: expected gemm, or a formula such as 'D = relu(A @ B.T + bias)'")
    parser = _Parser(what, args, names, numbers)
    output = parser.array(name)
    try:
        value = parser.node(ast.parse(right, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        raise GemmsimError(f"{what} is malformed: '{right}' is no expression") from None
    if parser.stretched(value.shape, output.shape, "=") != output.shape:
        shown = f"{list(value.shape)}, but {name} is {list(output.shape)}"
        raise GemmsimError(f"{what}: the right side is {shown}")
    return Formula(text, output.position, value)


class _Parser:
    """Turns Python's syntax tree of an expression into nodes."""

    def __init__(
        self, what: str, args: Sequence[Argument], names: Mapping[str, int], numbers: Mapping[str, float]
    ) -> None:
        self.what, self.args, self.names, self.numbers = what, args, names, numbers

    def array(self, name: str) -> Leaf:
        if name not in self.names or not self.args[self.names[name]].shape:
            known = (*self.names, *self.numbers)
            raise GemmsimError(
                f"{self.what}: nothing is called '{name}'{nearest(name, known)}: known are {', '.join(known)}"
            )
        argument = self.args[self.names[name]]
        *outer, last = argument.shape
        return Leaf(self.names[name], (*outer, last * DTYPES[argument.dtype].packed))

    def node(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Constant(value=int() | float() as value):
                return Number(float(value))
            case ast.Name(id=name):
                return (
                    Number(self.numbers[name]) if name in self.numbers and name not in self.names else self.array(name)
                )
            case ast.Attribute(value=of, attr="T"):
                return self.transposed(self.node(of))
            case ast.Attribute(value=ast.Name(id=first), attr=last):  # arrays of structs may be called "arg0.2"
                return self.array(f"{first}.{last}")
            case ast.UnaryOp(op=ast.USub(), operand=of):
                negated = self.node(of)
                return Call("*", (Number(-1.0), negated), negated.shape)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self.product(self.node(left), self.node(right))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
                sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(op)]
                return self.call(sign, (self.node(left), self.node(right)))
            case ast.Call(func=ast.Name(id=name), args=of, keywords=[]):
                return self.function(name, tuple(self.node(one) for one in of))
        raise GemmsimError(
            f"{self.what}: '{ast.unparse(tree)}' is not known: use + - * / @ .T and {', '.join(FUNCTIONS)}"
        )

    def function(self, name: str, of: tuple[Node, ...]) -> Node:
        count = 1 if name in _CASTS else FUNCTIONS.get(name)
        if count is None:
            known = (*FUNCTIONS, *_CASTS)
            raise GemmsimError(f"{self.what}: no function '{name}'{nearest(name, known)}: known are {', '.join(known)}")
        if len(of) != count:
            raise GemmsimError(f"{self.what}: {name} takes {plural(count, 'argument')}, not {len(of)}")
        if name == "column":
            if len(of[0].shape) != 1:
                raise GemmsimError(f"{self.what}: column() takes a vector, not {list(of[0].shape)}")
            return Call(name, of, (*of[0].shape, 1))
        return self.call(name, of)

    def call(self, name: str, of: tuple[Node, ...]) -> Call:
        shape = of[0].shape
        for one in of[1:]:
            shape = self.stretched(shape, one.shape, name)
        return Call(name, of, shape)

    def stretched(self, left: Shape, right: Shape, sign: str) -> Shape:
        """Return the shape of an operation element by element, by NumPy's rules."""
        longest = max(len(left), len(right))
        pairs = [
            (a, b)
            for a, b in zip((1,) * (longest - len(left)) + left, (1,) * (longest - len(right)) + right, strict=True)
        ]
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            raise GemmsimError(f"{self.what}: {list(left)} {sign} {list(right)}: the shapes do not agree")
        return tuple(max(pair) for pair in pairs)

    def transposed(self, of: Node) -> Transposed:
        if len(of.shape) < 2:
            raise GemmsimError(f"{self.what}: .T needs two dimensions, not {list(of.shape)}")
        *outer, rows, columns = of.shape
        return Transposed(of, (*outer, columns, rows))

    def product(self, left: Node, right: Node) -> Product:
        a, b = left.shape, right.shape
        if min(len(a), len(b)) < 2 or a[-1] != b[-2] or (a[:-2] and b[:-2] and a[:-2] != b[:-2]):
            raise GemmsimError(f"{self.what}: {list(a)} @ {list(b)}: the shapes do not agree")
        return Product(left, right, (*(a[:-2] or b[:-2]), a[-2], b[-1]))


def leaves(node: Node) -> list[Leaf]:
    """Return the arrays that a formula reads."""
    match node:
        case Leaf():
            return [node]
        case Call(_, of):
            return [leaf for one in of for leaf in leaves(one)]
        case Product(left, right):
            return leaves(left) + leaves(right)
        case Transposed(of):
            return leaves(of)
    return []
