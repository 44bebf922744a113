"""Evaluates whole-number arithmetic that a user types: `{n // bn}` in a grid, `bm % wm == 0` as a condition.

The text is parsed and never executed. It may have numbers, names, + - * // %, comparisons, and, or, not.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from gemmsim.support.errors import GemmsimError, nearest

MOST_CHARACTERS = 500
MOST = 2**63

_BINARY: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type, Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """Return the value of `text`; a condition gives 0 or 1. Raises GemmsimError for text that is not an expression."""
    if len(text) > MOST_CHARACTERS:
        raise GemmsimError(f"an expression of {len(text)} characters: at most {MOST_CHARACTERS}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise GemmsimError(f"'{text}' is no expression: it has numbers, names, + - * // % and comparisons") from None
    return _value(tree, text, names)


def fill(template: str, names: Mapping[str, int]) -> str:
    """Replace each expression in braces by its value: `sgemm<{bm},{bn}>` becomes `sgemm<128,64>`.

    Two braces stand for one, as a struct needs them: `{{i32={m}, f32[{m}]}}` becomes `{i32=8, f32[8]}`.
    """

    def filled(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else str(evaluate(found[1], names))

    return re.sub(r"\{\{|\{([^{}]*)\}|\}\}", filled, template)


def _value(node: ast.expr, text: str, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in names:
            known = f"known are {', '.join(names)}" if names else "--size gives m, n and k, --set-kernel tunables"
            raise GemmsimError(f"'{text}': unknown name '{node.id}'{nearest(node.id, names)}: {known}")
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        inner = _value(node.operand, text, names)
        return -inner if isinstance(node.op, ast.USub) else int(not inner)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left, text, names), _value(node.right, text, names)
        if right == 0 and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            raise GemmsimError(f"'{text}' divides by 0")
        value = _BINARY[type(node.op)](left, right)
        if abs(value) >= MOST:
            raise GemmsimError(f"'{text}' is too large")
        return value
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARED for op in node.ops):
        values = [_value(one, text, names) for one in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return int(all(_COMPARED[type(op)](left, right) for op, left, right in pairs))
    if isinstance(node, ast.BoolOp):
        every = (bool(_value(one, text, names)) for one in node.values)
        return int(all(every) if isinstance(node.op, ast.And) else any(every))
    raise GemmsimError(f"'{text}' is no expression of whole numbers, names, + - * // % and comparisons")
