"""Sets the figures of both halves of the records side by side, and logs each look at those to judge by.

Of cases to judge by only means are shown, never a case: who knows which of them are wrong chooses by them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from gemmsim.support.errors import GemmsimError
from gemmsim.support.version import MODEL_VERSION

from ..documents.sections import Section, Table, table
from ..records.case import JUDGE, STUDY
from .figures import Figures, counter_figures, grouped, time_figures
from .judge import Judged
from .metrics import MODELLED

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "docs" / "judgements.md"
_NOTHING = ("", "", "", "", "")
_COLUMNS = tuple(f"{half} {what}" for half in (STUDY, JUDGE) for what in ("cases", "mean %", "p90", "worst", "bias"))
# What a case is counted under -> its value there. Published cases have no place in the groups of measured ones.
GROUPS: tuple[tuple[str, Callable[[Judged], str]], ...] = (
    ("GPU", lambda row: row.case.gpu),
    ("kernels", lambda row: family(row)),
    ("size", lambda row: row.case.size if row.case.is_square else "rectangles"),
    ("L2", lambda row: "warm" if row.case.warm(row.time_way) else "cold"),
)


def family(row: Judged) -> str:
    """Return of which kind the case's kernel is: by who wrote it, then by the unit that multiplies."""
    case = row.case
    if case.folder.endswith("_foreign"):
        return "of others"
    by_unit = "mma rungs" if "tensorcore" in case.name else "rungs on CUDA cores"
    kind = "wgmma rungs" if case.name.startswith("wgmma") else by_unit
    return f"tiles of {kind}" if case.folder.endswith("_tiles") else kind


def of_half(judged: Iterable[Judged], half: str) -> list[Judged]:
    """Return the cases of one half, STUDY or JUDGE."""
    return [row for row in judged if row.case.half == half]


def halves(judged: Sequence[Judged]) -> tuple[Section, ...]:
    """Return the sections that set the two halves side by side."""
    measured, published = (
        [row for row in judged if row.case.kind == kind and not row.prediction.error]
        for kind in ("measured", "published")
    )
    rows = [("measured", "all", *_times(measured))]
    for what, key in GROUPS:
        rows += [(what, name, *_times(group)) for name, group in grouped(measured, key).items()]
    rows.append(("published", "all", *_times(published)))
    rows += [("published", name, *_times(group)) for name, group in grouped(published, GROUPS[0][1]).items()]
    time = table(("by", "", *_COLUMNS), [row for row in rows if any(row[2:])], numeric=range(2, 12))
    text = (
        "Half of the kernels and sizes, chosen by a hash, are for study: mechanisms and constants may be chosen on "
        "them. The other half is predicted and not looked into. Sections below are of the half for study.",
    )
    return Section("Study and judge: time", text, time), Section("Study and judge: counters", table=_counters(judged))


def _times(rows: Sequence[Judged]) -> tuple[str, ...]:
    return tuple(text for half in (STUDY, JUDGE) for text in _texts(time_figures(of_half(rows, half))))


def _texts(found: Figures | None) -> tuple[str, ...]:
    return (str(found.cases), *found.texts()) if found else _NOTHING


def _counters(judged: Sequence[Judged]) -> Table:
    rows = []
    for metric in MODELLED:
        figures = [counter_figures(of_half(judged, half), metric.name) for half in (STUDY, JUDGE)]
        if any(figures):
            texts = tuple(text for found in figures for text in _texts(found))
            rows.append((metric.label, "points" if metric.points else "%", *texts))
    columns = ("counter", "in", *(column.replace("mean %", "mean") for column in _COLUMNS))
    return table(columns, rows, numeric=range(2, 12))


def log(judged: Sequence[Judged], what: str, path: Path = LOG) -> None:
    """Append a line on this look to `path`: date, commit, model's version, the cases compared, and the means.

    Raises GemmsimError where there is no such file, as in an installation.
    """
    if not path.is_file():
        raise GemmsimError(f"each look at the records to judge by is logged in {path}, which is not here")
    cells = [date.today().isoformat(), _commit(), str(MODEL_VERSION), what]
    for kind in ("measured", "published"):
        for half in (STUDY, JUDGE):
            found = time_figures(of_half((row for row in judged if row.case.kind == kind), half))
            cells.append(f"{found.cases}: {found.mean:.1f}, {found.p90:.1f}, {found.worst:.1f}" if found else "-")
    with path.open("a", encoding="utf-8") as file:
        file.write("| " + " | ".join(cells) + " |\n")


def _commit() -> str:
    """Return the abbreviated commit of the checkout, with a + where files differ from it; "unknown" elsewhere."""
    words = ("git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*")
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
