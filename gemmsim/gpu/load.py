"""Loads a GPU by name or file: layers of TOML (base, architecture, GPU), then --set, then the rules of `check.py`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gemmsim.gpu.check import check
from gemmsim.gpu.fields import OPTIONAL_PIPES, PIPES, SECTIONS, types
from gemmsim.gpu.layer import Layer, read_layer
from gemmsim.gpu.override import parse_override
from gemmsim.gpu.rules import Constants, derive
from gemmsim.gpu.spec import GpuSpec, Pipe, Value
from gemmsim.gpu.units import convert, short
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.files import is_file

DEFAULT_GPU = "a100-80gb"
PRESETS = Path(__file__).parent / "presets"
MAX_LAYERS = 8  # a longer chain of `extends` is taken for a file that extends itself, one of `like` likewise
NOT_GPUS = ("rules", "sources")  # files beside the presets


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped GPUs in alphabetical order, without aliases."""
    return tuple(sorted(path.stem for path in PRESETS.glob("*.toml") if path.stem not in NOT_GPUS))


@cache
def aliases() -> dict[str, str]:
    """Return the shipped GPUs' other names, in lower case, with the usual ones: {"a100": "a100-80gb", ...}."""
    return {alias.lower(): name for name in preset_names() for alias in _layer(PRESETS / f"{name}.toml").aliases}


def load_gpu(name_or_path: str, overrides: Sequence[str] = ()) -> GpuSpec:
    """Load a GPU by the name or alias of its preset (upper or lower case), or from a .toml file, and apply `overrides`.

    overrides  such as "l2.size=25MiB" or "shared.carveouts=0,8,16KiB": keys with or without the unit at the end of the
               field's name; a number without a unit is in the unit of its field

    Where a layer changes `sm.count` or `clock.sm_boost` and gives no arithmetic peak, the peak changes in proportion.
    Raises GemmsimError, one line, for an unknown name, key or unit, a missing value, and a GPU that cannot exist.
    """
    found = _merged(_find(name_or_path, Path.cwd()))
    values = _over(found.shared | found.own, dict(parse_override(text) for text in overrides))
    return check(_build(found.top.name, found.top.title or found.top.name, found.arch, values))


def like_of(preset: str) -> str:
    """Return the name of the preset from which most numbers of another follow, "" where it has its own."""
    return _layer(PRESETS / f"{preset}.toml").like


def load_own(name_or_path: str) -> dict[str, Value]:
    """Return the values of a GPU that its architecture's files do not give. Raises GemmsimError as `load_gpu` does."""
    own = _merged(_find(name_or_path, Path.cwd())).own
    provenance = load_gpu(name_or_path).provenance
    return {key: value for key, value in provenance.items() if key in own}


@dataclasses.dataclass(frozen=True)
class _Merged:
    """What the layers of one GPU say together.

    shared  {key: value} of its architecture's files
    own     {key: value} of its own and of what it extends or is like
    """

    top: Layer
    arch: str
    shared: dict[str, Value]
    own: dict[str, Value]


def _merged(path: Path, depth: int = 0) -> _Merged:
    if depth == MAX_LAYERS:
        raise GemmsimError(f"GPU file '{path.name}': {MAX_LAYERS} GPUs, each like the next; is it like itself?")
    if path.parent == PRESETS / "arch":
        raise GemmsimError(f"'{path.stem}' is an architecture, not a GPU; presets are {', '.join(preset_names())}")
    layers = _chain(path)
    arch = next((layer.arch for _, layer in layers if layer.arch), "")
    shared: dict[str, Value] = {}
    own: dict[str, Value] = {}
    for where, layer in reversed(layers):
        if where.parent == PRESETS / "arch":
            shared |= layer.values
            continue
        given = layer.values
        if layer.like:
            other = _merged(_find(layer.like, where.parent), depth + 1)
            constants = _constants().get(arch, Constants())
            try:
                given = derive(other.top.name, given, other.own, shared, constants)
            except GemmsimError as error:
                raise GemmsimError(f"GPU '{layer.name}': {error}") from None
        own = _over(own, given)
    return _Merged(layers[0][1], arch, shared, own)


def _find(name: str, folder: Path) -> Path:
    """Return the file of `name`, which is a preset, an architecture or a path; a relative path starts at `folder`."""
    if name.lower().endswith(".toml"):
        path = folder / Path(name).expanduser()
        if not is_file(path):
            raise GemmsimError(f"no GPU file '{name}'")
        return path
    known = name.strip().lower()
    architecture = PRESETS / "arch" / f"{known}.toml"
    if known in (path.stem for path in architecture.parent.glob("*.toml")):
        return architecture
    known = known if known in preset_names() else aliases().get(known, known)
    if known not in preset_names():
        file = next((f"{name}{end}" for end in (".toml", ".TOML") if is_file(folder / f"{name}{end}")), "")
        hint = f" (did you mean the file {file}?)" if file else nearest(known, [*preset_names(), *aliases()])
        raise GemmsimError(f"unknown GPU '{name}'{hint}; 'gemmsim list gpus' shows them, a path ends in .toml")
    return PRESETS / f"{known}.toml"


def _chain(start: Path) -> list[tuple[Path, Layer]]:
    """Return a file, the one that it extends, and so on. One that is like a GPU extends that GPU's architecture."""
    path, layers = start, [(start, _layer(start))]
    while below := layers[-1][1].extends or _arch_of(layers[-1][1].like, path.parent, len(layers)):
        if len(layers) == MAX_LAYERS:
            raise GemmsimError(f"GPU file '{path.name}': more than {MAX_LAYERS} layers; does it extend itself?")
        like, path = layers[-1][1].like, _find(below, path.parent)
        if like and path.parent != PRESETS / "arch":
            raise GemmsimError(f"GPU file '{start.name}': it is like {like}, so it extends an architecture or nothing")
        layers.append((path, _layer(path)))
    return layers


def _arch_of(like: str, folder: Path, depth: int) -> str:
    """Return the architecture of the GPU `like`, "" where none is named."""
    while like:
        path = _find(like, folder)
        layer = _layer(path)
        if layer.arch:
            return layer.arch
        like, folder, depth = layer.extends or layer.like, path.parent, depth + 1
        if depth > 2 * MAX_LAYERS:
            raise GemmsimError(f"GPU file '{path.name}': it is like itself")
    return ""


def _layer(path: Path) -> Layer:
    return _shipped_layer(path) if path.is_relative_to(PRESETS) else read_layer(path, _sources())


@cache
def _shipped_layer(path: Path) -> Layer:
    return read_layer(path, _sources())


@cache
def _sources() -> dict[str, str]:
    return dict(tomllib.loads((PRESETS / "sources.toml").read_text(encoding="utf-8")))


@cache
def _constants() -> dict[str, Constants]:
    """Return the numbers of the rules by architecture. Each entry has unit, source and status, as in a GPU file."""
    table = tomllib.loads((PRESETS / "rules.toml").read_text(encoding="utf-8"))
    names = {short(field.name): field.name for field in dataclasses.fields(Constants)}

    def numbers(of: dict[str, dict[str, Any]]) -> dict[str, float]:
        return {names[key]: convert(item["value"], item["unit"], names[key], key) for key, item in of.items()}

    return {arch: Constants(**numbers(of)) for arch, of in table.items()}


def _over(below: dict[str, Value], above: dict[str, Value]) -> dict[str, Value]:
    """Merge the values of two layers; where both have a value, that of `above` holds.

    Where `above` changes the number of SMs or their clock, the arithmetic peaks of `below` are scaled in proportion.
    """
    merged = below | above
    scale = 1.0
    for key in ("sm.count", "clock.sm_boost_hz"):
        if key in below and key in merged:
            scale *= _number(merged[key]) / _number(below[key])
    if scale != 1.0:
        for key, value in below.items():
            if key.startswith("peak.") and key not in above:
                source = f"scaled by {scale:.4g} with sm.count and clock.sm_boost; before: {value.source}"
                merged[key] = dataclasses.replace(
                    value, value=_number(value) * scale, source=source, status="set", records=(), calibratable=False
                )
    return merged


def _number(value: Value) -> float:
    assert isinstance(value.value, (int, float))
    return float(value.value)


def _build(name: str, title: str, arch: str, values: dict[str, Value]) -> GpuSpec:
    timed = ("issue_interval_cycles", "latency_cycles")  # a GPU file gives these for every pipe that the GPU has
    pipes_here = {key.split(".")[1] for key in values if key.startswith("pipes.") and key.endswith(timed)} | set(PIPES)
    absent = tuple(f"pipes.{pipe}." for pipe in OPTIONAL_PIPES if pipe not in pipes_here)
    keys = [key for key in types() if not key.startswith(absent)] if absent else list(types())
    missing = [key for key in keys if key not in values]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise GemmsimError(f"GPU '{name}': no value for {missing[0]}{more}; give it, or extend a preset that has it")
    if not arch:
        raise GemmsimError(f"GPU '{name}': no arch; give one (arch = \"sm_90\"), or extend a preset that has it")
    values = {key: value.seen_from(arch) for key, value in values.items()}

    def part(prefix: str, kind: type) -> object:
        return kind(**{f.name: values[f"{prefix}.{f.name}"].value for f in dataclasses.fields(kind)})

    sections = {section: part(section, kind) for section, kind in SECTIONS.items()}
    pipes = {pipe: part(f"pipes.{pipe}", Pipe) for pipe in sorted(pipes_here)}
    entries = [f.name for f in dataclasses.fields(Value)]
    content = json.dumps([name, arch, [[getattr(values[key], entry) for entry in entries] for key in sorted(values)]])
    return GpuSpec(
        name=name,
        title=title,
        arch=arch,
        pipes=pipes,  # type: ignore[arg-type]  # built field by field from the same dataclasses
        provenance={key: values[key] for key in keys},
        sha256=hashlib.sha256(content.encode()).hexdigest(),
        **sections,  # type: ignore[arg-type]
    )
