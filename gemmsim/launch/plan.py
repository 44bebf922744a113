"""Reads a plan: a TOML file that names several launches in order, and the arrays that they share.

docs/howto/several-launches.md explains the file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.argument_text import given_argument, given_array, given_symbols
from gemmsim.launch.checks import formula_check
from gemmsim.launch.items import Arguments, Given, assemble
from gemmsim.launch.notation import parse_dims
from gemmsim.launch.own import check_of_arrays, own_source, split_target
from gemmsim.launch.spec import FormulaCheck, GemmCheck, Labels, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.toml_file import read_toml
from gemmsim.trace.types import Launch

_OF_PLAN = ("arrays", "launch")
_OF_LAUNCH = (
    *("kernel", "entry", "grid", "block", "cluster", "shared", "cooperative"),
    *("args", "symbols", "repeat", "verify"),
)
_OF_VERIFY = ("a", "b", "c", "alpha", "beta", "m", "n", "k")
_MOST_REPEATS = 1000


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What a plan's launches have in common besides its arrays: GPU, settings and the seed of the random arrays."""

    gpu: GpuSpec
    settings: Settings
    seed: int = 0


def read_plan(path: Path, common: PlanSettings) -> tuple[LaunchSpec, ...]:
    """Read the launches of a plan in order; one that repeats comes several times. Kernels are sought beside the file.

    Raises GemmsimError, one line, where the file cannot be read or says something that is not understood.
    """
    try:
        document = read_toml(path)
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise GemmsimError(f"{path}: not TOML: {error}") from None
    _refuse_unknown(f"{path}", document, _OF_PLAN)
    arrays, launches = document.get("arrays", {}), document.get("launch", [])
    if not isinstance(arrays, dict) or not arrays:
        raise GemmsimError(f'{path}: [arrays] is missing: it names what the launches share, as in A = "f32[256,256]"')
    if not isinstance(launches, list) or not launches:
        raise GemmsimError(f"{path}: there is no [[launch]]")
    shared = [given_array(f"{name}: {_text(f'{path}: array {name}', text)}") for name, text in arrays.items()]
    specs: list[LaunchSpec] = []
    for number, entry in enumerate(launches, 1):
        what = f"{path}: launch {number}"
        if not isinstance(entry, dict):
            raise GemmsimError(f"{what}: expected a table [[launch]], not {entry!r}")
        spec = _launch(what, entry, path.parent, shared, common)
        specs += [spec] * _number(what, entry, "repeat", 1, _MOST_REPEATS)
    return tuple(specs)


def _launch(
    what: str, entry: Mapping[str, Any], folder: Path, shared: Sequence[Given], common: PlanSettings
) -> LaunchSpec:
    _refuse_unknown(what, entry, _OF_LAUNCH)
    for key in ("kernel", "grid", "block"):
        if key not in entry:
            raise GemmsimError(f"{what}: '{key}' is missing")
    dims = tuple(parse_dims(_dims(what, entry, key), f"{what}: {key}") for key in ("grid", "block"))
    given = [given_argument(_text(f"{what}: args", text)) for text in _list(what, entry, "args")]
    values = entry.get("symbols", {})
    if not isinstance(values, dict):
        raise GemmsimError(f'{what}: symbols names variables, as in symbols = {{ scale = "f32=2" }}')
    symbols = given_symbols([f"{name}={_text(f'{what}: symbols: {name}', value)}" for name, value in values.items()])
    arguments = assemble(given, shared, symbols, arrays_first=True)
    known = assemble((), shared).args
    if own := [a.name for a in arguments.args[len(known) :] if a.shape]:
        raise GemmsimError(
            f"{what}: '{own[0]}' is an array of this launch: name it under [arrays], and pass &NAME here"
        )
    file, function = split_target(_text(what, entry["kernel"]))
    target = str(folder / file) + (f":{function}" if function else "")
    chosen = _text(f"{what}: entry", entry["entry"]) if "entry" in entry else None
    source, name = own_source(target, chosen, arguments.passed())
    shared_bytes = _number(what, entry, "shared", 0, 1 << 30)
    cooperative = entry.get("cooperative", False)
    if not isinstance(cooperative, bool):
        raise GemmsimError(f"{what}: cooperative = {cooperative!r} must be true or false")
    parameters, variables = arguments.parameters, arguments.symbols
    cluster = parse_dims(_dims(what, entry, "cluster"), f"{what}: cluster") if "cluster" in entry else None
    launch = Launch(dims[0], dims[1], arguments.args, shared_bytes, parameters, cooperative, variables, cluster)
    verify = entry.get("verify")
    checks: tuple[FormulaCheck, ...] = ()
    check: GemmCheck | None = None
    size: tuple[int, int, int] | tuple[None, None, None] = (None, None, None)
    if isinstance(verify, str) and "=" in verify:
        checks = (formula_check(verify, arguments.args, {}, None, None),)
    elif verify is not None:
        check, size = _check(what, entry, arguments)
    labels = Labels(name, f"{file}", *size)
    return LaunchSpec(source, launch, common.gpu, labels, check, common.settings, seed=common.seed, checks=checks)


def _check(what: str, entry: Mapping[str, Any], arguments: Arguments) -> tuple[GemmCheck, tuple[int, int, int]]:
    """Read `verify`, which names A, B and C: after this launch C must be alpha A B + beta C."""
    verify = entry["verify"]
    if not isinstance(verify, dict):
        raise GemmsimError(
            f'{what}: verify names three arrays, as in verify = {{ a = "A", b = "B", c = "C" }}, or is a formula'
        )
    _refuse_unknown(f"{what}: verify", verify, _OF_VERIFY)
    positions = {argument.name: n for n, argument in enumerate(arguments.args) if argument.shape}
    found = []
    for key in ("a", "b", "c"):
        name = verify.get(key)
        if name not in positions:
            known = ", ".join(positions)
            raise GemmsimError(f"{what}: verify: {key} = {name!r} is none of the arrays: they are {known}")
        found.append(positions[name])
    sizes = tuple(_number(f"{what}: verify", verify, key, 1, 1 << 40) for key in ("m", "n", "k") if key in verify)
    matrices = [arguments.args[position] for position in found]
    alpha, beta = (_factor(what, verify, key, usual) for key, usual in (("alpha", 1.0), ("beta", 0.0)))
    check, size = check_of_arrays(matrices, sizes if len(sizes) == 3 else None, alpha, beta)
    return replace(check, a=found[0], b=found[1], c=found[2]), size


def _refuse_unknown(what: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise GemmsimError(f"{what}: unknown key '{key}'{nearest(key, known)}: known are {', '.join(known)}")


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise GemmsimError(f"{what}: expected a text in quotes, not {value!r}")
    return value


def _list(what: str, entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise GemmsimError(f"{what}: {key} = {value!r} must be a list of texts in brackets")
    return value


def _factor(what: str, verify: Mapping[str, Any], key: str, usual: float) -> float:
    value = verify.get(key, usual)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise GemmsimError(f"{what}: verify: {key} = {value!r} must be a number")
    return float(value)


def _dims(what: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry[key]
    if isinstance(value, float | bool | dict):
        raise GemmsimError(f"{what}: {key} = {value!r} must be a whole number, a list of them or a text")
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value) if isinstance(value, int) else _text(f"{what}: {key}", value)


def _number(what: str, entry: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = entry.get(key, least)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise GemmsimError(f"{what}: {key} = {value!r} must be a number from {least} to {most}")
    return value
