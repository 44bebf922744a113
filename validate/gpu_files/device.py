"""The preset that belongs to a real GPU."""

from __future__ import annotations

import re

from gemmsim.gpu.load import preset_names

# These boards have the chip name of a preset, but other clocks or another memory.
_OTHER_BOARDS = ("laptop", "mobile", "pcie", "nvl", "maxq", "super")


def preset_of(device: str) -> str:
    """The preset of the GPU that the driver calls `device`, "NVIDIA H200"; `device` as a word where none fits."""
    joined = re.sub(r"\W", "", device.lower())
    fitting = [name for name in preset_names() if all(part in joined for part in name.split("-"))]
    if fitting and not any(other in joined for other in _OTHER_BOARDS):
        return max(fitting, key=len)
    return re.sub(r"\W+", "-", device.strip().lower())
