"""Sets the times of a program's launches, predicted, beside those on a GPU.

`programs_measured.json` holds what was measured:

    {"gpu": PRESET, "machine": TEXT, "date": TEXT, "triton": VERSION, "torch": VERSION, "numba_cuda": VERSION,
     "programs": {ID: {"outcome": TEXT, "launches": [[KERNEL, GRID, BLOCK, REGISTERS, SHARED_BYTES, [US, ...]], ...]}}}

with the launches that are alike in one row, in order, each time from the kernel's begin to its end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).with_name("programs_measured.json")


@dataclass(frozen=True)
class Times:
    """Launches that are alike. grid, block: as in "4x4x1". us: of each, in order."""

    kernel: str
    grid: str
    block: str
    us: tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """What was measured on a GPU. what: the machine, in words. programs: by id."""

    gpu: str = ""
    what: str = ""
    programs: Mapping[str, Sequence[Times]] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """Launches that are in both. us: all of them together, predicted and measured."""

    launches: int
    us: tuple[float, float]

    @property
    def error(self) -> float:
        """How far the prediction is off, in percent."""
        return 100 * (self.us[0] / self.us[1] - 1)


def times_of(row: Sequence[Any]) -> Times:
    """Return a row [kernel, grid, block, ..., times] as `Times`."""
    kernel, grid, block, *_, us = row
    return Times(kernel, _shape(grid), _shape(block), tuple(us))


def _shape(dims: str | Sequence[int]) -> str:
    return dims if isinstance(dims, str) else "x".join(map(str, dims))


def load_measured(path: Path = MEASURED) -> Measured:
    """Return what was measured; nothing where the file is not there."""
    if not path.exists():
        return Measured()
    found = json.loads(path.read_text(encoding="utf-8"))
    packages = ", ".join(f"{name.replace('_', '-')} {found[name]}" for name in ("triton", "torch", "numba_cuda"))
    programs = {name: tuple(map(times_of, one["launches"])) for name, one in found["programs"].items()}
    return Measured(found["gpu"], f"{found['machine']}, {found['date']}, {packages}", programs)


def compared(predicted: Sequence[Times], measured: Sequence[Times]) -> Compared | None:
    """Compare the launches that are in both; None where there are none.

    A GPU's tools know a kernel by its symbol, in which the name that the program gave it stands. Launches of one name,
    grid and block pair up in order.
    """
    pairs: list[tuple[float, float]] = []
    left = [(other, [*other.us]) for other in measured]
    for one in predicted:
        waiting = [*one.us]
        for other, us in left:
            if (one.grid, one.block) == (other.grid, other.block) and one.kernel in other.kernel:
                both = min(len(us), len(waiting))
                pairs += zip(waiting[:both], us[:both], strict=True)
                del waiting[:both], us[:both]
    return Compared(len(pairs), (sum(p for p, _ in pairs), sum(m for _, m in pairs))) if pairs else None
