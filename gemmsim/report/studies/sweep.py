"""Renders a Sweep as text, Markdown, CSV, JSON and HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gemmsim.analysis.studies.ranking import Point, Prediction, Pruned, Ranking, Sweep, SweepResult
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.table_page import table_page
from gemmsim.report.layout.text import GAP, INDENT, indented, indented_table, paragraph, width
from gemmsim.report.layout.words import duration, problem_size
from gemmsim.support.plurals import plural
from gemmsim.support.version import MODEL_VERSION

SCHEMA_VERSION = 2
LEAST_LAST_COLUMN = 14  # characters of the last column for which there must be room
MOST_REASONS = 5  # failed combinations that are listed


@dataclass(frozen=True)
class _Column:
    """One column of the table that shows a `Ranking`.

    head      its heading
    cell      function that writes the column's entry for a prediction
    left_out  where a line would be too long, columns are left out in ascending order of this number; a column with 0
              always stays
    """

    head: str
    cell: Callable[[Prediction], str]
    left_out: int = 0


_COLUMNS = (
    _Column("time", lambda one: duration(one.time_us)),
    _Column("TFLOP/s", lambda one: "-" if one.tflops is None else f"{one.tflops:.2f}"),
    _Column("of peak", lambda one: "-" if one.percent_of_peak is None else f"{one.percent_of_peak:.1f}%", 3),
    _Column("regs", lambda one: str(one.registers), 2),
    _Column("shared", lambda one: f"{one.shared_bytes / 1024:.4g}K", 1),
    _Column("limited by", lambda one: one.limited_by),
)


def render_text(sweep: Sweep, top: int | None) -> str:
    """Render the `top` fastest results of each size and GPU (None: all), then the combinations without a prediction.

    The text is ASCII of at most 80 columns.
    """
    lines = paragraph(_summary(sweep))
    for ranking in sweep.rankings:
        shown = ranking.results[:top]
        axes = _shown_axes(sweep, ranking)
        lines += ["", *paragraph(_title(ranking, axes))]
        columns = _fitting(axes, shown)
        head, rows = _cells(axes, columns, ranking, shown)
        lines += indented_table(head, rows, ">" * (len(head) - 1) + "<")
        if len(shown) < len(ranking.results):
            lines.append(f"{INDENT}and {plural(len(ranking.results) - len(shown), 'slower one')}")
    for heading, entries in _left_out(sweep):
        lines += ["", heading]
        for entry in entries:
            lines += indented(entry)
    return "\n".join(lines) + "\n"


def render_markdown(sweep: Sweep, top: int | None) -> str:
    """Render what `render_text` does, but in Markdown and with all columns."""
    lines = [_summary(sweep)]
    for ranking in sweep.rankings:
        shown = ranking.results[:top]
        axes = _shown_axes(sweep, ranking)
        head, rows = _cells(axes, _COLUMNS, ranking, shown)
        lines += ["", f"**{_title(ranking, axes)}**", "", _row(head), _row(["---:"] * (len(head) - 1) + ["---"])]
        lines += [_row(row) for row in rows]
    for heading, entries in _left_out(sweep):
        lines += ["", f"{heading.capitalize()}:", "", *(f"- {entry}" for entry in entries)]
    return "\n".join(lines) + "\n"


def render_csv(sweep: Sweep, top: int | None) -> str:
    """Render CSV with a line for each combination, those without a prediction last, and a column for each tunable."""
    return csv_text(rows(sweep))


def render_json(sweep: Sweep, top: int | None) -> str:
    """Render every combination as JSON, by the schema in `sweep.schema.json`."""
    data = {
        "schema_version": SCHEMA_VERSION,
        "model_version": MODEL_VERSION,
        "axes": sweep.axes,
        "combinations": sweep.combinations,
        "reused": sweep.reused,
        "rankings": [
            {
                **_where(ranking.point),
                "results": [
                    {"rank": place, "tunables": one.point.tunables, "slower_than_best": _slower(one, ranking)}
                    | asdict(_prediction(one))
                    | {"key": one.key, "seconds": one.seconds}
                    for place, one in enumerate(ranking.results, 1)
                ],
            }
            for ranking in sweep.rankings
        ],
        "pruned": [_without(one, one.kind) for one in sweep.pruned],
        "refused": [_without(one) for one in sweep.refused],
        "failed": [_without(one) for one in sweep.failed],
    }
    return json_text(data)


def _summary(sweep: Sweep) -> str:
    parts = [f"{sweep.predicted} predicted, not measured"]
    if sweep.reused:
        parts[0] += f" ({plural(sweep.reused, 'result')} {'was' if sweep.reused == 1 else 'were'} there before)"
    if sweep.pruned or sweep.refused:
        parts.append(f"{len(sweep.pruned) + len(sweep.refused)} left out")
    if sweep.failed:
        parts.append(f"{len(sweep.failed)} failed")
    return f"{plural(sweep.combinations, 'combination', str(sweep.combinations))}: {', '.join(parts)}."


def _title(ranking: Ranking, axes: Sequence[str]) -> str:
    point = ranking.point
    fixed = [f"{name}={value}" for name, value in point.tunables.items() if name not in axes]
    size = problem_size(point.m, point.n, point.k)
    dtype = f", {point.dtype}" if point.dtype else ""
    return ", ".join([f"{point.kernel} on {point.gpu}{size}{dtype}", *fixed])


def _shown_axes(sweep: Sweep, ranking: Ranking) -> list[str]:
    """Return the names of the varied tunables whose values differ among the ranking's results."""
    values: dict[str, set[int]] = {}
    for one in ranking.results:
        for name, value in one.point.tunables.items():
            values.setdefault(name, set()).add(value)
    return [name for name in sweep.axes if len(values.get(name, ())) > 1]


def _cells(
    axes: Sequence[str], columns: Sequence[_Column], ranking: Ranking, shown: Sequence[SweepResult]
) -> tuple[list[str], list[list[str]]]:
    first, *others = columns
    head = ["", *axes, first.head, "of best", *(column.head for column in others)]
    rows = []
    for place, one in enumerate(shown, 1):
        prediction = _prediction(one)
        tunables = [str(one.point.tunables[name]) for name in axes]
        slower = f"{_slower(one, ranking):.2f}x"
        rows.append([f"{place}", *tunables, first.cell(prediction), slower, *(c.cell(prediction) for c in others)])
    return head, rows


def _fitting(axes: Sequence[str], shown: Sequence[SweepResult]) -> tuple[_Column, ...]:
    """Choose the columns for which a line of 80 characters has room."""
    columns: tuple[_Column, ...] = _COLUMNS
    while True:
        heads = ["99", *axes, "1.00x of", *(column.head for column in columns[:-1])]
        widths = [len(head) for head in heads]
        for one in shown:
            cells = ["", *(str(one.point.tunables[name]) for name in axes), ""]
            cells += [column.cell(_prediction(one)) for column in columns[:-1]]
            widths = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
        if len(INDENT) + sum(widths) + len(GAP) * len(widths) + LEAST_LAST_COLUMN <= width():
            return columns
        can_go = [column.left_out for column in columns if column.left_out]
        if not can_go:
            return columns
        columns = tuple(column for column in columns if column.left_out != min(can_go))


def _left_out(sweep: Sweep) -> list[tuple[str, list[str]]]:
    """Return (heading, entries) for combinations that were left out, that failed, and whose C is wrong.

    The entries are counts of combinations, and examples.
    """
    found = []
    without = []
    kinds: dict[str, list[Pruned]] = {}
    for one in sweep.pruned:
        kinds.setdefault(one.kind, []).append(one)
    for kind, members in kinds.items():
        without.append(f"{len(members)} by {kind}: {_example(members[0].point, members[0].reason)}")
    if sweep.refused:
        first = sweep.refused[0]
        without.append(f"{len(sweep.refused)} once compiled: {_example(first.point, first.reason)}")
    if without:
        found.append(("LEFT OUT", without))
    if sweep.failed:
        entries = [_example(one.point, one.reason) for one in sweep.failed[:MOST_REASONS]]
        if len(sweep.failed) > MOST_REASONS:
            entries.append(f"and {len(sweep.failed) - MOST_REASONS} more")
        found.append(("FAILED", entries))
    if sweep.wrong:
        found.append(("C IS WRONG", [_example(one.point, "C differs from A @ B") for one in sweep.wrong]))
    return found


def _example(point: Point, reason: str) -> str:
    named = " ".join(f"{name}={value}" for name, value in point.tunables.items())
    size = f" at {point.m} x {point.n} x {point.k}" if point.m is not None else ""
    return f"{named}{size} on {point.gpu}: {reason}".strip()


def rows(sweep: Sweep) -> list[dict[str, Any]]:
    """Return a row for each combination."""
    found_rows: list[dict[str, Any]] = []
    for ranking in sweep.rankings:
        for place, one in enumerate(ranking.results, 1):
            found = {"status": str(one.status), "rank": place, **_where(one.point), **one.point.tunables}
            found_rows.append(
                found | {"slower_than_best": _slower(one, ranking)} | asdict(_prediction(one)) | {"reason": ""}
            )
    others: list[Pruned | SweepResult] = [*sweep.pruned, *sweep.refused, *sweep.failed]
    for left in others:
        status = str(left.status) if isinstance(left, SweepResult) else "pruned"
        found_rows.append({"status": status, **_where(left.point), **left.point.tunables, "reason": left.reason})
    return found_rows


def _where(point: Point) -> dict[str, Any]:
    return {"kernel": point.kernel, "gpu": point.gpu, "dtype": point.dtype, "m": point.m, "n": point.n, "k": point.k}


def _without(one: Pruned | SweepResult, kind: str | None = None) -> dict[str, Any]:
    found = {**_where(one.point), "tunables": one.point.tunables, "reason": one.reason}
    return found if kind is None else found | {"kind": kind}


def _slower(one: SweepResult, ranking: Ranking) -> float:
    return _prediction(one).time_us / ranking.best_us


def _prediction(one: SweepResult) -> Prediction:
    assert one.prediction is not None
    return one.prediction


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def best(sweep: Sweep) -> SweepResult | None:
    """Return the fastest combination of all; None where none ran."""
    found = [one for one in sweep.results if one.prediction]
    return min(found, key=lambda one: one.prediction.time_us if one.prediction else 0.0, default=None)


def title(sweep: Sweep) -> str:
    """One line that says how many combinations there were and which is the fastest."""
    first = best(sweep)
    if first is None or first.prediction is None:
        return "a sweep of which no combination could be predicted"
    chosen = " ".join(f"{name}={value}" for name, value in first.point.tunables.items())
    return f"{plural(len(sweep.results), 'combination')}, the fastest is {chosen}: {duration(first.prediction.time_us)}"


def render_html(sweep: Sweep, top: int | None = None) -> str:
    """Render a page of its own: a table of all results with a bar for each time, and below it the text."""
    return table_page(title(sweep), rows(sweep), render_text(sweep, top))


RENDERERS: dict[str, Callable[[Sweep, int | None], str]] = {
    "text": render_text,
    "md": render_markdown,
    "csv": render_csv,
    "json": render_json,
    "html": render_html,
}
