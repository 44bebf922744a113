"""Renders a Comparison as text, Markdown, CSV, JSON and HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import pairwise

from gemmsim.analysis.studies.comparison import Baseline, Comparison, Group, Row
from gemmsim.analysis.studies.differences import Cause, Quantity
from gemmsim.report.layout.table_page import table_page
from gemmsim.report.layout.text import INDENT, indented, indented_table, paragraph, width
from gemmsim.report.layout.words import duration
from gemmsim.report.studies.comparison_data import as_csv, as_json, baseline_share, rows, title

MANY_TIMES = 10  # from this ratio on a change reads better as a factor than in percent
_HEAD = ("time", "TFLOP/s", "of peak", "speed-up", "limited by")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def render_text(comparison: Comparison) -> str:
    """Render a table for each group, then what made each launch faster or slower than the one in the row above.

    The text is ASCII of at most 80 columns.
    """
    lines = [f"{comparison.size}: {_predicted(comparison)}; caches {_caches(comparison)}"]
    for group in comparison.groups:
        rows = _rows(group, comparison)
        lines += ["", *paragraph(_group_title(group))]
        lines += indented_table(_head(comparison), rows, "<>>>><")
    for group in comparison.groups:
        reasons = [line for line in _reasons(group, comparison.by_gpu) if line]
        if reasons:
            heading = "WHY" if len(comparison.groups) == 1 else f"WHY, {group.title}"
            lines += ["", *paragraph(heading)]
            for line in reasons:
                lines += indented(line)
    for line in dict.fromkeys(line for group in comparison.groups for line in _measured(group)):
        lines += ["", *paragraph(line)]
    if comparison.wrong:
        lines += ["", "C IS WRONG"]
        for launch in comparison.wrong:
            lines += textwrap.wrap(f"{launch.name}: {launch.verified.text}", width(), initial_indent=INDENT)
    if comparison.skipped:
        lines += ["", "CANNOT RUN"]
        for one in comparison.skipped:
            lines += indented(f"{one.kernel} on {one.gpu}: {one.reason}")
    return "\n".join(lines) + "\n"


def _predicted(comparison: Comparison) -> str:
    return "predicted, but what is called measured" if comparison.measured else "predicted, not measured"


def _rows(group: Group, comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the cells of a group's launches, and of what its baselines take: predicted, and measured."""
    rows = [_cells(row, comparison.by_gpu) for row in group.rows]
    last = group.rows[-1].launch.time_us
    for one in group.baselines:
        name = f"{one.name} {one.gpu}" if comparison.by_gpu else one.name
        if one.time_us is not None:
            longest = max(one.launches, key=lambda launch: launch.time_us)
            over = "-" if comparison.by_gpu else f"{last / one.time_us:.2f}x"
            rows.append((f"{name}, predicted", *_rate(one, one.time_us, comparison), over, longest.limited_by))
        if one.measured_us is not None:
            rows.append((f"{name}, measured", *_rate(one, one.measured_us, comparison), "-", "-"))
    return rows


def _rate(baseline: Baseline, time_us: float, comparison: Comparison) -> tuple[str, str, str]:
    share = baseline_share(baseline, time_us, comparison)
    return duration(time_us), f"{comparison.tflops(time_us):.2f}", "-" if share is None else f"{share:.1f}%"


def _measured(group: Group) -> list[str]:
    """Say what a group's measured times are, which predictions they compare with, and of which kernels."""
    lines = []
    for one in group.baselines:
        of = " and ".join(dict.fromkeys(map(_short, one.kernels)))
        if one.measured_us is None:
            lines.append(f"{one.name}: {of}.")
            continue
        begin = f"{one.name}, measured {duration(one.measured_us)}: {of} {one.how} in a row with L2 warm, begin to end"
        without = f"; predicted without launch overhead: {duration(one.kernel_us)}" if one.kernel_us else ""
        lines.append(f"{begin}{without}.")
    return lines


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _caches(comparison: Comparison) -> str:
    return "warm (L2 as the launch before left it)" if comparison.warm_caches else "cold"


def render_markdown(comparison: Comparison) -> str:
    """Render a table for each group, with the causes of each difference in time in its last column."""
    lines = [f"{comparison.size}, {_predicted(comparison)}; caches {_caches(comparison)}."]
    for group in comparison.groups:
        lines += ["", f"**{_group_title(group)}**", ""]
        lines.append(f"| {' | '.join((*_head(comparison), 'why'))} |")
        lines.append("|---|---:|---:|---:|---:|---|---|")
        for row in group.rows:
            causes = "; ".join(_cause(cause) for cause in row.why)
            lines.append(f"| {' | '.join((*_cells(row, comparison.by_gpu), causes))} |")
        for cells in _rows(group, comparison)[len(group.rows) :]:
            lines.append(f"| {' | '.join((*cells, ''))} |")
        lines += [text for said in _measured(group) for text in ("", said)]
    if comparison.skipped:
        lines += ["", "Cannot run:", ""]
        lines += [f"- {one.kernel} on {one.gpu}: {one.reason}" for one in comparison.skipped]
    return "\n".join(lines) + "\n"


def _head(comparison: Comparison) -> tuple[str, ...]:
    """Each speed-up is over the row above; of GPUs, which have no order, the heading says so."""
    names = (one if one != "speed-up" or not comparison.by_gpu else "vs above" for one in _HEAD)
    return ("GPU" if comparison.by_gpu else "kernel", *names)


def _group_title(group: Group) -> str:
    peaks = {row.launch.peak_flops for row in group.rows if row.launch.flops}
    peak = f", peak {peaks.pop() / 1e12:.1f} TFLOP/s" if len(peaks) == 1 else ""
    return f"{group.title}{peak}"


def _cells(row: Row, by_gpu: bool) -> tuple[str, ...]:
    launch = row.launch
    return (
        launch.gpu if by_gpu else launch.name,
        duration(launch.time_us),
        f"{launch.achieved_flops / 1e12:.2f}" if launch.achieved_flops else "-",
        f"{launch.percent_of_peak:.1f}%" if launch.percent_of_peak else "-",
        f"{row.speed_up:.2f}x" if row.speed_up is not None else "-",
        launch.limited_by,
    )


def _reasons(group: Group, by_gpu: bool) -> list[str]:
    """Write a paragraph for each row but the first: `coalesced 2.43x: global wavefronts 70.9 G -> 8.9 G (-87%)`."""
    lines = []
    for above, row in pairwise(group.rows):
        if row.speed_up is None:
            continue
        said = why(row.why, row.speed_up)
        name = f"{row.launch.gpu} against {above.launch.gpu}" if by_gpu else row.launch.name
        lines.append(f"{name} {row.speed_up:.2f}x: {said}")
    return lines


def why(causes: Sequence[Cause], speed_up: float) -> str:
    """Write the causes of a difference in time in a line."""
    return "; ".join(_cause(cause) for cause in causes) or _no_cause(speed_up)


def _no_cause(speed_up: float) -> str:
    return "as fast as the one before" if 0.98 < speed_up < 1.02 else "no single counter explains it"


def _cause(cause: Cause) -> str:
    text = _quantity(cause.quantity)
    if cause.quantity.before:
        text += f" ({_change(cause.quantity.after / cause.quantity.before)})"
    return f"{text}, {_quantity(cause.detail)}" if cause.detail else text


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f}%" if ratio < MANY_TIMES else f"{ratio:.0f} times"


def _quantity(quantity: Quantity) -> str:
    return f"{quantity.what} {_value(quantity.before, quantity.unit)} -> {_value(quantity.after, quantity.unit)}"


def _value(value: float, unit: str) -> str:
    if unit == "us":
        return duration(value)
    if unit == "%":
        return f"{value:.1f}%"
    if unit == "ratio":
        return f"{value:.3g}"
    suffix = "B" if unit == "byte" else ""
    for limit, prefix in _PREFIXES:
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{suffix}"
    return f"{value:.3g} {suffix}".rstrip()


def render_html(comparison: Comparison) -> str:
    """Render a page of its own: a table with a bar for each time, and below it the text."""
    return table_page(title(comparison), rows(comparison), render_text(comparison))


RENDERERS: dict[str, Callable[[Comparison], str]] = {
    "text": render_text,
    "md": render_markdown,
    "csv": as_csv,
    "json": as_json,
    "html": render_html,
}
