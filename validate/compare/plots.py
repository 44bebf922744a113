"""Plots predicted against measured times, and errors against sizes, with matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from gemmsim.support.errors import GemmsimError

from .judge import Judged


def plots(judged: Sequence[Judged]) -> dict[str, str]:
    """Return the plots as SVG, by title. Raises GemmsimError where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GemmsimError("plots need matplotlib: pip install 'gemmsim[plot]'") from None
    timed = [row for row in judged if row.time]
    if not timed:
        return {}
    scatter, errors = Figure((7, 6), layout="constrained"), Figure((9, 5), layout="constrained")
    axes = scatter.subplots()
    for gpu in sorted({row.case.gpu for row in timed}):
        some = [row.time for row in timed if row.case.gpu == gpu and row.time]
        axes.scatter([t.measured for t in some], [t.predicted for t in some], s=14, alpha=0.7, label=gpu)
    low, high = axes.get_xlim()
    ends = [max(low, 1.0), high]
    for factor, style in ((1.0, "-"), (0.8, ":"), (1.25, ":")):
        axes.plot(ends, [factor * end for end in ends], style, color="gray", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured us", ylabel="predicted us")
    axes.legend()
    axes = errors.subplots()
    for gpu in sorted({row.case.gpu for row in timed}):
        some_rows = [row for row in timed if row.case.gpu == gpu]
        sizes = [(row.case.m * row.case.n * row.case.k) ** (1 / 3) for row in some_rows]
        axes.scatter(sizes, [row.time.error_pct for row in some_rows if row.time], s=14, alpha=0.7, label=gpu)
    axes.axhline(0, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="cube root of M N K", ylabel="error of the time, %")
    axes.legend()
    return {"Predicted and measured time": _svg(scatter), "Errors by size": _svg(errors)}


def _svg(figure: Any) -> str:
    """Return the figure as SVG without the XML declaration, so that an HTML page can hold it."""
    out = io.StringIO()
    figure.savefig(out, format="svg")
    text = out.getvalue()
    return text[text.index("<svg") :]
