"""Finds the preset of a real GPU by the name that the driver gives it."""

from __future__ import annotations

import re

from gemmsim.gpu.load import preset_names

# A board with such a word in its name shares its chip's name with a preset, but has other clocks or another memory.
_OTHER_BOARDS = ("laptop", "mobile", "pcie", "nvl", "maxq", "super")


def preset_of(device: str) -> str:
    """Return the name of the preset for the GPU that the driver calls `device` ("NVIDIA H200": "h200").

    Where no preset fits, return `device` in lower case with hyphens ("NVIDIA L40S": "nvidia-l40s").
    """
    joined = re.sub(r"\W", "", device.lower())
    fitting = [name for name in preset_names() if all(part in joined for part in name.split("-"))]
    if fitting and not any(other in joined for other in _OTHER_BOARDS):
        return max(fitting, key=len)
    return re.sub(r"\W+", "-", device.strip().lower())
