"""Holds a report beside a former prediction, of the same kernel or another: which counters and waits moved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

TIME = "gpu__time_duration.sum"


@dataclass(frozen=True, slots=True)
class Former:
    """A prediction that a report is held against.

    name           the launch: "tiled, M=256 N=256 K=256, tile=32 on a100-80gb"
    model_version  of the models that made it
    values         counters by Nsight Compute's name, and stall reasons in cycles an instruction
    """

    name: str
    model_version: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Move:
    """A value that is not what it was; None where one of the two predictions does not have it."""

    name: str
    before: float | None
    now: float | None

    @property
    def size(self) -> float:
        """How far it moved, up or down alike; infinite from or to nothing, or where the sign changed."""
        ratio = self.now / self.before if self.before and self.now else 0.0
        return abs(math.log(ratio)) if 0 < ratio < math.inf else math.inf


def moves(former: Former, counters: Mapping[str, float], stalls: Mapping[str, float]) -> list[Move]:
    """Return what moved, farthest first; values that agree in nine digits are the same."""
    now = {**counters, **stalls}
    found = [Move(name, former.values.get(name), now.get(name)) for name in {**now, **former.values}]
    moved = [one for one in found if not math.isclose(one.before or 0, one.now or 0, rel_tol=1e-9)]
    return sorted(moved, key=lambda one: -one.size)


def in_short(former: Former, counters: Mapping[str, float], model_version: int) -> str:
    """Say how the times compare, and whether other models made the former one."""
    before, now = former.values.get(TIME), counters.get(TIME)
    times = ""
    if before and now:
        times = f": {before / 1e3:,.2f} us there, {now / 1e3:,.2f} us here, {before / now:.2f}x as fast"
    other = f"; it is of model {former.model_version}, this of model {model_version}, which moves numbers, too"
    return f"beside {former.name}{times}{other if former.model_version != model_version else ''}"
