"""A Comparison as text, Markdown, CSV and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, L2
from gemmsim.analysis.studies.comparison import Comparison, Group, Row
from gemmsim.analysis.studies.differences import Cause, Quantity
from gemmsim.analysis.studies.launch_summary import LaunchSummary
from gemmsim.report.layout.table import table
from gemmsim.report.studies.comparison_data import as_csv, as_json

WIDTH = 80
MANY_TIMES = 10  # a change beyond reads better as a factor than in percent
INDENT = "  "
_HEAD = ("time", "TFLOP/s", "of peak", "speed-up", "limited by")
_SHORT = {DATA_STAGE: "L1/shared", L2: "L2", DRAM: "DRAM"}
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def render_text(comparison: Comparison) -> str:
    """The tables, then what made the difference from row to row; ASCII, at most 80 columns."""
    size = f"M={comparison.m} N={comparison.n} K={comparison.k}"
    lines = [f"{size}: predicted, not measured; caches {_caches(comparison)}"]
    for group in comparison.groups:
        rows = [_cells(row, comparison.by_gpu) for row in group.rows]
        lines += ["", *textwrap.wrap(_group_title(group), WIDTH)]
        lines += [f"{INDENT}{line}" for line in table(_head(comparison), rows, "<>>>><", WIDTH - len(INDENT))]
    for group in comparison.groups:
        reasons = [line for line in _reasons(group, comparison.by_gpu) if line]
        if reasons:
            heading = "WHY" if len(comparison.groups) == 1 else f"WHY, {group.title}"
            lines += ["", *textwrap.wrap(heading, WIDTH)]
            for line in reasons:
                lines += textwrap.wrap(line, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 3)
    if comparison.wrong:
        lines += ["", "C IS WRONG"]
        for launch in comparison.wrong:
            lines += textwrap.wrap(f"{launch.name}: {launch.verified.text}", WIDTH, initial_indent=INDENT)
    if comparison.skipped:
        lines += ["", "CANNOT RUN"]
        for one in comparison.skipped:
            text = f"{one.kernel} on {one.gpu}: {one.reason}"
            lines += textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT * 3)
    return "\n".join(lines) + "\n"


def _caches(comparison: Comparison) -> str:
    return "warm (L2 as the launch before left it)" if comparison.warm_caches else "cold"


def render_markdown(comparison: Comparison) -> str:
    """A table a group, the reasons in its last column."""
    size = f"M={comparison.m} N={comparison.n} K={comparison.k}"
    lines = [f"{size}, predicted, not measured; caches {_caches(comparison)}."]
    for group in comparison.groups:
        lines += ["", f"**{_group_title(group)}**", ""]
        lines.append(f"| {' | '.join((*_head(comparison), 'why'))} |")
        lines.append("|---|---:|---:|---:|---:|---|---|")
        for row in group.rows:
            why = "; ".join(_cause(cause) for cause in row.why)
            lines.append(f"| {' | '.join((*_cells(row, comparison.by_gpu), why))} |")
    if comparison.skipped:
        lines += ["", "Cannot run:", ""]
        lines += [f"- {one.kernel} on {one.gpu}: {one.reason}" for one in comparison.skipped]
    return "\n".join(lines) + "\n"


def duration(us: float) -> str:
    """Three or four significant digits: 12.3 us, 1.234 ms."""
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= limit:
            return f"{us / limit:.4g} {unit}"
    return f"{us:.4g} us" if us >= 1 or not us else f"{1e3 * us:.3g} ns"


def limiter(launch: LaunchSummary) -> str:
    """The bottleneck in few words."""
    kind, share = launch.bottleneck.kind, launch.bottleneck.share_pct
    if kind == "launch":
        return f"launch overhead {share:.0f}%"
    if kind not in ("latency", "small_grid"):
        unit = launch.bottleneck.sentence.partition(":")[0]
        return f"{_SHORT.get(unit, unit.removesuffix(' pipe'))} {share:.0f}%"
    if kind == "small_grid":
        return f"{launch.sm_count - launch.blocks}/{launch.sm_count} SMs idle"
    waits = {reason: held for reason, held in launch.waits_us.items() if reason != "selected"}
    return max(waits, key=lambda reason: waits[reason], default="latency")


def _head(comparison: Comparison) -> tuple[str, ...]:
    return ("GPU" if comparison.by_gpu else "kernel", *_HEAD)


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
        limiter(launch),
    )


def _reasons(group: Group, by_gpu: bool) -> list[str]:
    """One paragraph a row: `coalesced 2.43x: global wavefronts 70.9 G -> 8.9 G (-87%)`."""
    lines = []
    for row in group.rows:
        if row.speed_up is None:
            continue
        said = "; ".join(_cause(cause) for cause in row.why) or _no_cause(row.speed_up)
        lines.append(f"{row.launch.gpu if by_gpu else row.launch.name} {row.speed_up:.2f}x: {said}")
    return lines


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


RENDERERS: dict[str, Callable[[Comparison], str]] = {
    "text": render_text,
    "md": render_markdown,
    "csv": as_csv,
    "json": as_json,
}
