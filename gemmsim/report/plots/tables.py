"""Draws results: heat maps of tables, and curves over problem sizes.

The functions take plain data, so that a sweep, a comparison or a notebook can call them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmsim.report.plots.figure import COLOURS, DASHES, FONT_SIZE, MARKERS, heading, new_figure, plain
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL_INCHES = 0.72
DARK = 0.18  # relative luminance at which black and white text are equally readable
MOST_CELLS = 40  # in a row or a column; digits do not fit into smaller cells


@dataclass(frozen=True, slots=True)
class HeatTable:
    """A table with a value for each pair of a column (x) and a row (y).

    x_name, y_name      what the columns and the rows stand for
    x_labels, y_labels  of each column and row, in order
    cells               [rows][columns], None where there is no result
    unit                of the values
    more_is_better      whether the largest value is marked as the best, else the smallest
    """

    title: str
    x_name: str
    y_name: str
    x_labels: tuple[str, ...]
    y_labels: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    unit: str
    more_is_better: bool

    @property
    def best(self) -> tuple[int, int]:
        """(row, column) of the best value; the first of equal ones, (0, 0) for an empty table."""
        found = [(v, -r, -c) for r, row in enumerate(self.cells) for c, v in enumerate(row) if v is not None]
        sign = 1 if self.more_is_better else -1
        _, row, column = max(((sign * value, r, c) for value, r, c in found), default=(0.0, 0, 0))
        return -row, -column


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of a scaling figure. `points` are (problem size, value), by ascending size."""

    name: str
    points: tuple[tuple[float, float], ...]


def heat_figure(title: str, subtitle: str, tables: Sequence[HeatTable]) -> Figure:
    """Draw a heat map for each table: cells are coloured by value and show it as a number; the best one is framed.

    Raises GemmsimError for an empty table, for tables too large to read, and where matplotlib is missing.
    """
    if not tables or any(value is None for value in map(_best_value, tables)):
        raise GemmsimError("no heat map: the table has no results")
    columns = max(len(table.x_labels) for table in tables)
    rows = [len(table.y_labels) for table in tables]
    if max(columns, sum(rows)) > MOST_CELLS:
        raise GemmsimError(
            f"no heat map: {sum(rows)} x {columns} cells are too many to read; at most {MOST_CELLS} a side"
        )
    longest = max(len(label) for table in tables for label in table.y_labels)
    figure = new_figure(
        max(5.0, 1.9 + 0.08 * longest + CELL_INCHES * columns),
        0.7 + sum(1.0 + CELL_INCHES * 0.6 * number for number in rows),
    )
    parts = figure.subplots(len(tables), 1, squeeze=False, gridspec_kw={"height_ratios": [n + 1 for n in rows]})
    for axes, table in zip(parts[:, 0], tables, strict=True):
        _table(axes, table)
    heading(figure, title, subtitle)
    return figure


def _best_value(table: HeatTable) -> float | None:
    row, column = table.best
    return table.cells[row][column]


def _table(axes: Any, table: HeatTable) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    columns, rows = len(table.x_labels), len(table.y_labels)
    values = [value for row in table.cells for value in row if value is not None]
    low, high = min(values), max(values)
    scale = Normalize(low, high if high > low else low + 1)
    colours = colormaps["cividis"]  # looks alike with and without colour vision, and is readable in grey
    for r, row in enumerate(table.cells):
        for c, value in enumerate(row):
            _cell(axes, r, c, value, None if value is None else colours(float(scale(value))))
    _frame(axes, *table.best)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    crowded = max(len(label) for label in table.x_labels) > 8
    axes.set_xticks(range(columns), table.x_labels, rotation=45 if crowded else 0, ha="right" if crowded else "center")
    axes.set_yticks(range(rows), table.y_labels)
    axes.set_xlabel(table.x_name, fontsize=FONT_SIZE)
    axes.set_ylabel(table.y_name, fontsize=FONT_SIZE)
    axes.set_title(f"{table.title}, {table.unit}; framed: the best", fontsize=FONT_SIZE, loc="left")
    axes.tick_params(length=0, labelsize=FONT_SIZE - 1)
    axes.spines[:].set_visible(False)


def scaling_figure(title: str, subtitle: str, unit: str, curves: Sequence[Curve], log_values: bool = False) -> Figure:
    """Draw values over problem sizes, a line for each curve.

    Raises GemmsimError where there are no points, and where matplotlib is missing.
    """
    drawn = [curve for curve in curves if curve.points]
    if not drawn:
        raise GemmsimError("no scaling curve: there are no results")
    figure = new_figure(7.2, 4.6 + 0.18 * len(drawn))
    axes = figure.subplots()
    for number, curve in enumerate(drawn):
        at, values = zip(*curve.points, strict=True)
        style = number % len(COLOURS)
        turn = (number + number // len(MARKERS)) % len(MARKERS)  # where a colour is used again, the marker differs
        axes.plot(
            at, values, color=COLOURS[style], linestyle=DASHES[style], marker=MARKERS[turn], markersize=5,
            linewidth=1.4, label=curve.name,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    sizes = sorted({size for curve in drawn for size, _ in curve.points})
    shown = _spread(sizes)
    axes.set_xticks(shown, [f"{size:g}" for size in shown])
    axes.minorticks_off()
    if log_values:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("problem size (cube root of M N K)", fontsize=FONT_SIZE)
    axes.set_ylabel(unit, fontsize=FONT_SIZE)
    plain(axes)
    axes.grid(True, color="#DDDDDD", linewidth=0.5)
    figure.legend(loc="outside lower left", fontsize=FONT_SIZE - 1, frameon=False, handlelength=4.5)
    heading(figure, title, subtitle)
    return figure


def _cell(axes: Any, row: int, column: int, value: float | None, colour: Any) -> None:
    from matplotlib.patches import Rectangle

    corner = (column - 0.5, row - 0.5)
    if value is None:
        axes.add_patch(Rectangle(corner, 1, 1, facecolor="white", edgecolor="#BBBBBB", hatch="///", linewidth=0))
        return
    axes.add_patch(Rectangle(corner, 1, 1, facecolor=colour, edgecolor="white", linewidth=1))
    red, green, blue = (part**2.2 for part in colour[:3])
    ink = "white" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < DARK else "black"
    axes.text(column, row, _digits(value), ha="center", va="center", fontsize=FONT_SIZE - 1, color=ink)


def _frame(axes: Any, row: int, column: int) -> None:
    from matplotlib.patches import Rectangle

    for width, colour in ((4.5, "white"), (2.0, "black")):
        axes.add_patch(
            Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=colour, linewidth=width)
        )


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def _spread(sizes: list[float]) -> list[float]:
    """Choose the sizes that get a label: each 1/14 or more of the logarithmic axis from the last, so none touch."""
    if len(sizes) < 2:
        return sizes
    apart = (sizes[-1] / sizes[0]) ** (1 / 14)
    shown = [sizes[0]]
    for size in sizes[1:]:
        if size >= apart * shown[-1]:
            shown.append(size)
    return shown
