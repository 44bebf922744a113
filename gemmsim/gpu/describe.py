"""Writes the file of a GPU that is like a preset, from its data sheet, and says where its numbers come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gemmsim.gpu.load import load_own
from gemmsim.gpu.spec import Value
from gemmsim.gpu.units import shown


@dataclass(frozen=True)
class Stated:
    """A number that a data sheet says: its key without the unit, e.g. "l2.size", and the unit in which it is given."""

    key: str
    unit: str


# Option of `gemmsim gpu new` -> the number that it gives.
SHEET: dict[str, Stated] = {
    "sms": Stated("sm.count", "1"),
    "base_mhz": Stated("clock.sm_base", "MHz"),
    "boost_mhz": Stated("clock.sm_boost", "MHz"),
    "l2_mib": Stated("l2.size", "MiB"),
    "dram_gbs": Stated("dram.peak", "GB/s"),
    "dram_gib": Stated("dram.size", "GiB"),
    "tensor_tflops": Stated("peak.tensor_fp16", "TFLOP/s"),
    "watts": Stated("power.limit", "W"),
}


def file_text(title: str, like: str, stated: Mapping[str, float], source: str) -> str:
    """Return the text of the GPU file.

    stated  option of SHEET -> number; what a data sheet leaves out is not in it
    source  names the data sheet
    """
    lines = [f"title = {_quoted(title)}", f"like = {_quoted(like)}"]
    section = ""
    for option, of in SHEET.items():
        if option not in stated:
            continue
        where, _, name = of.key.rpartition(".")
        if where != section:
            section = where
            lines += ["", f"[{section}]"]
        number = f"{stated[option]:.12g}"
        lines.append(
            f'{name} = {{ value = {number}, unit = "{of.unit}", source = {_quoted(source)}, status = "vendor" }}'
        )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def origins(path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return the numbers of a GPU that its architecture does not give: status -> (key, value, where it comes from)."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for key, value in load_own(str(path)).items():
        found.setdefault(value.status, []).append((key, shown(key, value.value), _origin(value)))
    return found


def _origin(value: Value) -> str:
    """Return the first source of a value, without those that it goes back to."""
    return value.source.partition(": ")[0] if value.status == "copied" else value.source
