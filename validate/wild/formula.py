"""Evaluates the short formulas of the manifest: integers and sizes by name, joined by + - * and /."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gemmsim.support.errors import GemmsimError

Names = Mapping[str, int | str]

_TOKEN = re.compile(r"\s*(?:(\d+|[A-Za-z_]\w*)|([-+*/]))")
_PLACE = re.compile(r"\{([^{}:=]*)\}")  # a struct, or places in bytes, hold : or =


def evaluate(formula: str | int, names: Names) -> int:
    """Return the value of `formula`. Division comes first, then multiplication, then sums from left to right.

    `M/64*N/128` divides twice and rounds up each time, as the number of tiles does. Raises GemmsimError for a name that
    is not in `names` and for text that is no formula.
    """
    if isinstance(formula, int):
        return formula
    words = _words(formula)
    values, operators = [_term(word, formula, names) for word in words[::2]], words[1::2]
    for wanted in ("/", "*", "+-"):
        at = 0
        while at < len(operators):
            if operators[at] in wanted:
                values[at : at + 2] = [_joined(values[at], operators.pop(at), values[at + 1])]
            else:
                at += 1
    return values[0]


def _words(formula: str) -> list[str]:
    """Split a formula into terms and the operators between them. Raises GemmsimError where it is none."""
    words: list[str] = []
    position = 0
    text = formula.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or (match[1] is not None) != (len(words) % 2 == 0):
            raise GemmsimError(f"manifest: '{formula}' is no formula such as M/64*N/128")
        words.append(match[1] or match[2])
        position = match.end()
    if len(words) % 2 == 0:
        raise GemmsimError(f"manifest: '{formula}' is no formula such as M/64*N/128")
    return words


def filled(text: str, names: Names) -> str:
    """Return `text` with each `{formula}` replaced by its value; `{NAME}` of a word is replaced by the word."""

    def value(match: re.Match[str]) -> str:
        word = names.get(match[1].strip())
        return word if isinstance(word, str) else str(evaluate(match[1], names))

    return _PLACE.sub(value, text)


def _joined(left: int, operator: str, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right if operator == "*" else -(-left // right)


def _term(word: str, formula: str, names: Names) -> int:
    if word.isdigit():
        return int(word)
    value = names.get(word)
    if not isinstance(value, int):
        raise GemmsimError(f"manifest: '{formula}' names '{word}', which is no size of this kernel")
    return value
