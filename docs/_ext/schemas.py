"""A JSON schema as a table of its keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gemmsim.report

FOLDER = Path(next(iter(gemmsim.report.__path__)))


def markdown(name: str) -> str:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    lines = [schema.get("description", ""), "", "| key | type | |", "| --- | --- | --- |"]
    for path, node in keys(schema, schema):
        lines.append(f"| `{path}` | {_type(node)} | {_text(node)} |")
    return "\n".join(lines)


def keys(node: dict[str, Any], root: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, schema) of every key; `[]` stands for an element of an array, `*` for any key."""
    children = [(f"{before}.{key}" if before else key, child) for key, child in node.get("properties", {}).items()]
    if isinstance(node.get("additionalProperties"), dict):
        children.append((f"{before}.*", node["additionalProperties"]))
    if isinstance(node.get("items"), dict):
        children.append((f"{before}[]", node["items"]))
    for path, child in children:
        resolved = _resolved(child, root)
        yield path, resolved
        yield from keys(resolved, root, path)
    for key in ("anyOf", "oneOf"):
        for choice in node.get(key, ()):
            yield from keys(_resolved(choice, root), root, before)


def _resolved(node: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    found: Any = root
    for part in node["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return {**found, **{key: value for key, value in node.items() if key != "$ref"}}


def _type(node: dict[str, Any]) -> str:
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    if "enum" in node:
        return " or ".join(f"`{json.dumps(value)}`" for value in node["enum"])
    choices = [_type(choice) for key in ("anyOf", "oneOf") for choice in node.get(key, ())]
    kind = node.get("type", choices or "object")
    return " or ".join(kind) if isinstance(kind, list) else kind


def _text(node: dict[str, Any]) -> str:
    return str(node.get("description", "")).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")
