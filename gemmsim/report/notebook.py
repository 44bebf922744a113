"""Renders the verdict and the evidence of a report as HTML tables, for a notebook.

The HTML has no scripts, which a notebook may block. `Report` calls this module, so the module takes parts of a report
and does not import `Report`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice, Bottleneck, Verification
from gemmsim.analysis.hardware.utilisation import utilisations
from gemmsim.launch.spec import Labels
from gemmsim.report.layout.words import number, problem_size

MOST_ROWS = 6
_BAR = "display:inline-block;height:.7em;background:#4a90d9;width:{:.0f}px"
_BAR_PX = 120


def summary(
    labels: Labels,
    evidence: Evidence,
    bottleneck: Bottleneck,
    verified: Verification,
    findings: Sequence[str],
    advice: Sequence[Advice],
) -> str:
    """Render the HTML of one cell's output, in which every text is escaped. The parameters are fields of `Report`."""
    timing = evidence.timing
    size = problem_size(labels.m, labels.n, labels.k)
    flops = labels.operations(evidence.roofline.flops)
    speed = f", {flops / timing.duration_us / 1e6:.2f} TFLOP/s" if flops else ""
    parts = [
        f"<h4>{escape(labels.kernel + size)} on {escape(evidence.gpu.title)}</h4>",
        _rows(
            [
                ("time", f"{timing.duration_us:,.1f} us{speed} (predicted)"),
                ("bottleneck", bottleneck.sentence),
                ("verified", verified.text),
                ("occupancy", f"{timing.achieved_occupancy_pct:.1f} % of {evidence.occupancy.theoretical_pct:.0f} %"),
            ]
        ),
    ]
    if findings:
        parts.append(_titled("problems found while executing", [(finding,) for finding in findings]))
    if advice:
        parts.append(_titled("what to change", [(one.title, f"{one.evidence}; {one.change}") for one in advice]))
    parts.append(_bars("how busy each unit is", [(use.unit, use.share_pct) for use in utilisations(evidence)]))
    total = sum(timing.stalls.values())
    if total:
        held = sorted(timing.stalls.items(), key=lambda item: -item[1])
        parts.append(_bars("where warps wait", [(reason, 100 * cycles / total) for reason, cycles in held]))
    return f'<div class="gemmsim">{"".join(parts)}</div>'


def _titled(title: str, rows: Iterable[Sequence[str]]) -> str:
    return f"<b>{escape(title)}</b>{_rows(rows)}"


def _rows(rows: Iterable[Sequence[str]]) -> str:
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def _bars(title: str, shares: Sequence[tuple[str, float]]) -> str:
    rows = "".join(
        f'<tr><td style="text-align:left">{escape(name)}</td><td>{number(round(pct, 1))} %</td>'
        f'<td style="text-align:left"><span style="{_BAR.format(min(pct, 100) / 100 * _BAR_PX)}"></span></td></tr>'
        for name, pct in shares[:MOST_ROWS]
        if pct > 0
    )
    return f"<b>{escape(title)}</b><table><tbody>{rows}</tbody></table>"
