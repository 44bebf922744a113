"""Analyzes many launches in one process, and says whether its memory stays what it was: `make soak`.

Launches differ in rung, size, GPU and contents, so that caches within the process fill up and should then hold. From
the first third of the launches to the last, the median of the memory behind each may grow by no more than
`MOST_GROWTH_MB`. Single launches leave much more for a while, which says nothing of the others.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from statistics import median

from gemmsim import api
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.report.text import render

RUNGS = ("naive", "tiled", "blocktile_1d", "register_blocked", "warptiled", "tensorcore_naive")
GPUS = ("a100", "h200", "rtx4090")
LAUNCHES, MOST_GROWTH_MB = 210, 20.0


def resident_mb() -> float:
    """Return the memory that this process has of its own."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) / 1000


def main() -> int:
    """Analyze the launches; return 0 where memory stays, 1 where it grows."""
    mb: list[float] = []
    turns = itertools.cycle(itertools.product(RUNGS, GPUS))
    for number, (rung, gpu) in zip(range(LAUNCHES), turns, strict=False):
        size = 32 + 4 * (number % 37)
        render(api.analyze(ladder_launch(LadderCase(rung, size, size, size), load_gpu(gpu))))
        mb.append(resident_mb())
        if number % 50 == 49:
            print(f"{number + 1} launches: {mb[-1]:.0f} MB", flush=True)  # noqa: T201
    growth = median(mb[2 * LAUNCHES // 3 :]) - median(mb[: LAUNCHES // 3])
    print(f"memory grows by {growth:.1f} MB from the first third of {LAUNCHES} launches to the last")  # noqa: T201
    return int(growth > MOST_GROWTH_MB)


if __name__ == "__main__":
    sys.exit(main())
