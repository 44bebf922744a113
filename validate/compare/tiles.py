"""Says how well predictions choose a configuration: of all that were measured at one problem, which is the fastest.

Configurations are the records of folders whose names end in `_tiles`. Both halves count, as the choice is among all; no
single case is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..documents.sections import Section, table
from .figures import grouped, tau_of
from .judge import Judged

TOP = 5


@dataclass(frozen=True)
class Choice:
    """The choice among the configurations of one problem.

    regret_pct      how much longer than the measured best the predicted best was measured to take
    top_regret_pct  the same for the measured best of the TOP predicted best
    overlap         how many of the TOP measured best are among the TOP predicted best
    tau             Kendall's tau of the predicted and the measured order
    """

    configurations: int
    regret_pct: float
    top_regret_pct: float
    overlap: int
    tau: float


def choice(times: Sequence[tuple[float, float]]) -> Choice:
    """Judge the choice among configurations with the times (predicted, measured)."""
    predicted, measured = (sorted(times, key=lambda pair: pair[which])[:TOP] for which in (0, 1))
    best = measured[0][1]
    regret, top = (100 * (time / best - 1) for time in (predicted[0][1], min(pair[1] for pair in predicted)))
    overlap = sum(pair in predicted for pair in measured)
    return Choice(len(times), regret, top, overlap, tau_of(times))


def choices(judged: Sequence[Judged]) -> Section | None:
    """Return the section on the choice among the configurations of each GPU, type and size; None without records."""
    rows = []
    tiles = [row for row in judged if row.case.folder.endswith("_tiles") and row.time]
    for name, group in grouped(tiles, lambda row: f"{row.case.gpu} {row.case.dtype} {row.case.size}").items():
        if len(group) < 2:
            continue  # nothing to choose from: only some of the records were compared
        found = choice([(row.time.predicted, row.time.measured) for row in group if row.time])
        texts = (f"{found.regret_pct:.1f}", f"{found.top_regret_pct:.1f}", str(found.overlap), f"{found.tau:.2f}")
        rows.append((name, str(found.configurations), *texts))
    if not rows:
        return None
    columns = ("configurations of", "number", "regret %", f"regret of the best of {TOP} %", f"of the best {TOP}", "tau")
    text = (
        "Regret is how much longer the predicted best takes than the measured best, both as measured. The best of "
        f"{TOP} is what one finds who measures the {TOP} predicted best.",
    )
    return Section("Choice of tiles", text, table(columns, rows, numeric=range(1, 6)))
