"""Reads one TOML file of a GPU. Each value is converted to the unit of its field, and its source is kept with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from gemmsim.gpu.fields import resolve, to_field, types
from gemmsim.gpu.spec import STATUSES, Value
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.toml_file import read_toml

HEADER = ("title", "arch", "extends", "like", "aliases", "records")
ENTRY = ("value", "unit", "source", "status", "found_on", "records", "calibratable")


@dataclass(frozen=True)
class Layer:
    """What one TOML file says about a GPU. A GPU is made of several such layers, of which each extends the one below.

    name     the file's name without its ending
    extends  name of the layer whose values hold where this one has none, "" where there is no such layer
    like     name of the GPU from whose values those that are missing here follow by the rules of `rules.py`, or ""
    values   {full key: value} of this file alone
    """

    name: str
    title: str
    arch: str
    extends: str
    like: str
    aliases: tuple[str, ...]
    values: dict[str, Value] = field(default_factory=dict)


def read_layer(path: Path, sources: dict[str, str]) -> Layer:
    """Read the file at `path`; `sources` maps short names of sources to citations.

    Raises GemmsimError, which names the file and the key, for a value that cannot be read.
    """
    try:
        table = read_toml(path)
    except (OSError, ValueError) as error:
        raise GemmsimError(f"GPU file '{path.name}': {error}".replace("\n", " ")) from error
    try:
        header = {key: table.pop(key) for key in HEADER if key in table}
        for key in ("title", "arch", "extends", "like"):
            if not isinstance(header.get(key, ""), str):
                raise GemmsimError(f"{key}: wants a text, not {header[key]!r}")
        return Layer(
            name=path.stem.lower(),
            title=header.get("title", ""),
            arch=header.get("arch", ""),
            extends=header.get("extends", ""),
            like=header.get("like", ""),
            aliases=tuple(header.get("aliases", ())),
            values={value.key: value for value in _entries("", table, sources, _texts("the file", header, "records"))},
        )
    except GemmsimError as error:
        raise GemmsimError(f"GPU file '{path.name}': {error}") from error


def _entries(prefix: str, table: dict[str, object], sources: dict[str, str], records: tuple[str, ...]) -> list[Value]:
    """Return the values of a TOML table and of the tables in it.

    prefix   what the keys of the table begin with: "", "l2." or "pipes.alu."
    records  the measurements to which a calibrated value was fitted that does not name any itself
    """
    found: list[Value] = []
    for name, item in table.items():
        key = prefix + name
        if isinstance(item, dict) and "value" in item:
            found.append(_value(resolve(key), item, sources, records))
        elif isinstance(item, dict):
            if not any(known.startswith(key + ".") for known in types()):
                raise GemmsimError(f"unknown section [{key}]{nearest(key, {k.rpartition('.')[0] for k in types()})}")
            found += _entries(key + ".", item, sources, records)
        elif prefix:
            raise GemmsimError(f"{resolve(key)}: wants {{ value, unit, source, status }}, not {item!r}")
        else:
            raise GemmsimError(f"unknown key '{key}'{nearest(key, HEADER)}")
    return found


def _value(key: str, item: dict[str, object], sources: dict[str, str], records: tuple[str, ...]) -> Value:
    for name in item:
        if name not in ENTRY:
            raise GemmsimError(f"{key}: unknown entry '{name}'{nearest(name, ENTRY)}")
    unit, source, status = (item.get(name, "") for name in ("unit", "source", "status"))
    if not isinstance(unit, str) or not isinstance(source, str) or not source:
        raise GemmsimError(f"{key}: wants a source (a text that says where the value comes from)")
    if status not in STATUSES:
        raise GemmsimError(f"{key}: status must be one of {', '.join(STATUSES)}, not {status!r}")
    fitted_to = _texts(key, item, "records") or (records if status == "calibrated" else ())
    if (status == "calibrated") != bool(fitted_to):
        raise GemmsimError(f"{key}: a calibrated value, and no other, wants records: the list of what it was fitted to")
    return Value(
        key=key,
        value=to_field(key, item["value"], unit),
        unit=unit,
        source=_cite(source, sources),
        status=str(status),
        found_on=_texts(key, item, "found_on"),
        records=fitted_to,
        calibratable=item.get("calibratable") is True,
    )


def _texts(key: str, item: dict[str, object], name: str) -> tuple[str, ...]:
    texts = item.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise GemmsimError(f"{key}: {name} wants a list of texts, not {texts!r}")
    return tuple(texts)


def _cite(source: str, sources: dict[str, str]) -> str:
    """Append the citation of every short name: "mt4g: A100" becomes "mt4g: A100 [mt4g: caps-tum/mt4g@...]"."""
    names = dict.fromkeys(name for name in re.findall(r"\w+(?:-\w+)*", source) if name in sources)
    return source + "".join(f" [{name}: {sources[name]}]" for name in names)
