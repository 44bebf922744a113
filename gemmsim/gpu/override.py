"""Reads `--set KEY=VALUE`, which changes one value of a GPU."""

from __future__ import annotations

import re

from gemmsim.gpu.fields import resolve, to_field, types
from gemmsim.gpu.spec import Value
from gemmsim.support.errors import GemmsimError

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")


def parse_override(text: str) -> tuple[str, Value]:
    """Parse "l2.size=25MiB" into ("l2.size_bytes", Value). Numbers of a list have commas between them and one unit."""
    key, equals, right = text.partition("=")
    if not equals or not right.strip():
        raise GemmsimError(f"--set '{text}': wants KEY=VALUE, such as l2.size=25MiB")
    full = resolve(key.strip())
    matches = [_NUMBER.fullmatch(item) for item in right.split(",")]
    if not all(matches):
        raise GemmsimError(f"--set '{text}': '{right.strip()}' is not a number with an optional unit")
    units = {match[2] for match in matches if match and match[2]}
    if len(units) > 1:
        raise GemmsimError(f"--set '{text}': one unit for the whole list, please")
    unit = units.pop() if units else ""
    numbers = [float(match[1]) for match in matches if match]
    raw = numbers if types()[full].startswith("tuple") or len(numbers) > 1 else numbers[0]
    return full, Value(full, to_field(full, raw, unit), unit, f"--set {text}", "set")
