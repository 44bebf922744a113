"""Finds the preset of a real GPU by the name that the driver gives it."""

from __future__ import annotations

import re

from gemmsim.gpu.load import preset_names

# A board with such a word in its name shares its chip's name with a preset, but has other clocks or another memory.
_OTHER_BOARDS = {"laptop", "mobile", "pcie", "nvl", "max", "super", "ti", "d"}


def preset_of(device: str) -> str:
    """Return the name of the preset for the GPU that the driver calls `device` ("NVIDIA H200": "h200").

    Where no preset fits, return `device` in lower case with hyphens ("NVIDIA L40S": "nvidia-l40s").
    """
    words = re.findall(r"[a-z0-9]+", device.lower())
    runs = {"".join(words[i:j]): set(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)}
    fitting = [name for name in preset_names() if _fits(name.split("-"), runs, set(words))]
    if fitting:
        return max(fitting, key=len)
    return re.sub(r"\W+", "-", device.strip().lower())


def _fits(parts: list[str], runs: dict[str, set[str]], words: set[str]) -> bool:
    """Whether each part of a preset's name is one or more words of the device's in a row, and names the same board."""
    named = set().union(*(runs.get(part, set()) for part in parts))
    return all(part in runs for part in parts) and not (words - named) & _OTHER_BOARDS
