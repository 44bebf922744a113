"""Renders a Report as text: the verdict first, then the evidence; ASCII, in the columns that text has."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from gemmsim.analysis.code.compiler_notes import compiler_facts
from gemmsim.analysis.code.instruction_mix import by_class, by_mnemonic
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.code.source_lines import LineTraffic, by_line
from gemmsim.analysis.hardware.utilisation import utilisations
from gemmsim.analysis.verdict.spills import local_sentence, local_traffic
from gemmsim.report import hazards
from gemmsim.report.former import in_short, moves
from gemmsim.report.layout.text import INDENT, NARROW, bar, body, table, width
from gemmsim.report.layout.words import ENGINE_NAMES, launch_name, moved, number
from gemmsim.report.metrics import METRICS
from gemmsim.report.report import Report
from gemmsim.sm.types import Timing
from gemmsim.support.plurals import plural
from gemmsim.support.provenance import Provenance
from gemmsim.support.version import MODEL_VERSION

LABEL = 10  # columns of the verdict's labels
MIN_STALL_SHARE = 0.01
EXPLAINED_STALLS = 3
CACHES = {
    "cold": "caches cold: L1 and L2 are empty at the start, as Nsight Compute leaves them",
    "warm": "caches warm: L2 begins as an identical launch just before left it; L1 is empty",
    "continued": "caches continued: L2 begins as the launch before left it; L1 is empty",
}


def render(report: Report) -> str:
    sections: tuple[tuple[str, Callable[[Report], list[str]]], ...] = (
        ("", _verdict),
        ("Beside the baseline", _former),
        ("What to change", _advice),
        ("Problems found while executing", _problems),
        ("How busy each unit is", _utilisation),
        ("Roofline", _roofline),
        ("Memory by source line", _lines),
        ("Counters", _counters),
        ("Instructions", _instructions),
        ("Occupancy", _occupancy),
        ("Where warps wait", _stalls),
        ("How this was computed", _method),
        ("Not modelled", lambda r: list(r.not_modelled)),
    )
    lines: list[str] = []
    for title, section in sections:
        body = section(report)
        if body:
            lines += ([""] if lines else []) + ([title.upper()] if title else [])
            lines += [piece for line in body for piece in _fit(line, INDENT if title else "")]
    return "\n".join(lines) + "\n"


def _fit(line: str, indent: str) -> list[str]:
    """Wrap a line that is too long, and indent its rest. The lines of tables are made to fit and stay as they are."""
    if len(indent + line) <= width():
        return [(indent + line).rstrip()]
    hang = indent + " " * (len(line) - len(line.lstrip()) + 2)
    label, colon, _ = line.partition(": ")
    if colon and len(label) == LABEL:
        hang = indent + " " * (LABEL + 2)
    return textwrap.wrap(line, width(), initial_indent=indent, subsequent_indent=hang, drop_whitespace=True)


def _verdict(report: Report) -> list[str]:
    labels, evidence, timing = report.labels, report.evidence, report.evidence.timing
    gpu = evidence.gpu
    overhead = f", {gpu.launch.overhead_us:.1f} us of it launch overhead"
    rate = f", {report.tflops:.2f} TFLOP/s" if report.tflops else ""
    clusters = f" in clusters of {_dims(evidence.cluster)}" if evidence.cluster else ""
    return [
        f"{launch_name(labels)} on {gpu.title} ({gpu.arch})",
        f"grid {_dims(evidence.grid)}{clusters}, block {_dims(evidence.block)}: predicted, not measured",
        "",
        _labelled("time", f"{timing.duration_us:,.1f} us{overhead}{rate}"),
        _labelled("", f"{timing.cycles:,.0f} cycles at {timing.sm_clock_hz / 1e9:.3f} GHz"),
        *_power(timing),
        _labelled("bottleneck", report.bottleneck.sentence),
        _labelled("verified", report.verified.text),
    ]


def _former(report: Report) -> list[str]:
    if report.former is None:
        return []
    evidence = report.evidence
    rows = []
    for one in moves(report.former, evidence.counters, evidence.timing.stalls):
        label = METRICS[one.name].label if one.name in METRICS else one.name
        before, now = (number(value) if value is not None else "-" for value in (one.before, one.now))
        rows.append((label, before, now, moved(one.before or 0, one.now or 0)))
    lines = table(("", "baseline", "here", "change"), rows, "<>>>") if rows else ["nothing moved"]
    return [in_short(report.former, evidence.counters, MODEL_VERSION), *lines]


_MUCH_LOWER = 0.99  # a clock that is hardly lower is found by trials, and not named


def _power(timing: Timing) -> list[str]:
    power = timing.power
    if power is None:
        return [_labelled("power", "not known for this work on this GPU; no limit lowers the clock")]
    text = f"{power.watts:,.0f} W"
    if power.held_watts:
        held = f"{timing.sm_clock_hz / 1e9:.2f} GHz"
        text += f"; the limit of {power.held_watts:,.0f} W brings the clock to {held}"
    if power.sustained_clock_hz < _MUCH_LOWER * timing.sm_clock_hz:
        held = f"{power.sustained_clock_hz / 1e9:.2f} GHz"
        text += f"; launched over and over, the limit of {power.limit_watts:,.0f} W brings the clock to {held}"
    return [_labelled("power", text)]


def _labelled(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{': ' if label else '  '}{text}"


def _dims(dims: Sequence[int]) -> str:
    return " x ".join(map(str, dims[:2] if dims[2] == 1 else dims))


def _advice(report: Report) -> list[str]:
    lines = []
    for advice in report.advice:
        lines += [f"* {advice.title}", f"    {advice.evidence}", f"    {advice.change}"]
        if advice.gain:
            lines.append(f"    {advice.gain}")
    return lines


def _problems(report: Report) -> list[str]:
    if report.sanitized is None:
        return list(report.findings)
    found = [line for finding in report.sanitized.findings for line in hazards.lines(finding, body())]
    return [*found, hazards.summary(report.sanitized)]


def _utilisation(report: Report) -> list[str]:
    rows = [
        (use.unit, f"{use.share_pct:.1f}%", bar(use.share_pct / 100, 20), use.detail)
        for use in utilisations(report.evidence)
        if use.share_pct >= 1
    ]
    lines = table(("unit", "of peak", "", ""), rows, "<><<")
    busy, count = report.evidence.blocks, report.evidence.gpu.sm.count
    return lines if busy >= count else [*lines, f"of an SM's units: over the {busy} of {count} SMs that have blocks"]


def _roofline(report: Report) -> list[str]:
    line = report.evidence.roofline
    if not line.flops:
        return ["unknown: the number of operations is not known for this kernel"]
    rows = [
        (
            level.name.upper(),
            number(level.bytes_moved / 1e6),
            f"{level.peak_bytes_per_s / 1e9:,.0f}",
            number(level.intensity_flops_per_byte),
            number(level.ridge_flops_per_byte),
            f"{level.attainable_flops / 1e12:.2f}",
        )
        for level in line.levels
    ]
    head = ("level", "MB moved", "GB/s peak", "FLOP/byte", "ridge", "TFLOP/s at most")
    last = [f"arithmetic peak {line.peak_flops / 1e12:.2f} TFLOP/s ({line.precision}); bound by {line.bound}"]
    if line.achieved_flops is not None and line.percent_of_attainable is not None:
        more = line.flops > 1.005 * report.labels.operations(line.flops)
        reached = f"reached {line.achieved_flops / 1e12:.2f} TFLOP/s{' of executed operations' if more else ''}"
        last.append(f"{reached}, {line.percent_of_attainable:.0f}% of what that allows")
    return table(head, rows, "<>>>>>") + last


def _lines(report: Report) -> list[str]:
    rows = by_line(report.evidence)
    lines: list[str] = []
    for space in ("global", "local", "shared", "dshared"):
        head = _SHARED if space in _ON_CHIP else _GLOBAL
        if cells := [_line_cells(row) for row in rows if row.space == space]:
            lines += ([""] if lines else []) + [
                _ON_CHIP.get(space, f"{space} memory"),
                *table(head, cells, "<<>>>>>"[: len(head)]),
            ]
    if local := local_traffic(report.evidence):
        lines += ["", f"* {local_sentence(local, report.evidence.gpu)}"]
    seen = {row.line.line: row.text for row in rows if row.line and row.text}
    if seen:
        most = body() if width() == NARROW else None  # a wide terminal shows lines of source whole
        lines += [""] + [f"{line:>5}  {text}"[:most] for line, text in sorted(seen.items())]
    facts = compiler_facts(report.evidence, rows)
    return lines + ([""] + [f"* {fact}" for fact in facts] if facts else [])


_GLOBAL = ("line", "instruction", "requests", "sectors/req", "ideal", "wavefronts", "L1 hit")
_SHARED = ("line", "instruction", "requests", "wavefr/req", "wavefronts", "conflicts")
_ON_CHIP = {"shared": "shared memory", "dshared": "shared memory of other blocks of the cluster"}


def _line_cells(row: LineTraffic) -> tuple[str, ...]:
    """Return the cells of one source line's row in a table whose head is `_SHARED` or `_GLOBAL`."""
    first = (str(row.line.line) if row.line else "?", f"{row.static_count} {row.mnemonic}", number(row.requests))
    wavefronts = number(row.wavefronts)
    if row.space in _ON_CHIP:
        return (*first, _each(row.wavefronts, row.requests), wavefronts, number(row.conflicts))
    hit = f"{100 * row.l1_hit_sectors / row.sectors:.1f}%" if row.sectors and row.op == "ld" else "-"
    sectors, ideal = _each(row.sectors, row.requests), _each(row.ideal_sectors, row.requests)
    return (*first, sectors, ideal, wavefronts, hit)


def _each(total: float, requests: float) -> str:
    return f"{total / requests:.2f}" if requests else "-"


def _counters(report: Report) -> list[str]:
    """List every counter that is not 0 and that no other section shows, under Nsight Compute's name."""
    provenance = report.evidence.provenance
    rows = []
    for name, value in report.evidence.counters.items():
        metric = METRICS.get(name)
        if value and not (metric and metric.section in ("launch", "occupancy", "stalls")):
            rows.append((number(value), str(provenance.get(name, Provenance.UNKNOWN))[0], name))
    if not rows:
        return []
    width = max(len(value) for value, _, _ in rows)
    lines = []
    for text, letter, name in rows:
        room = body() - len(f" {letter} {name}")  # a name is never cut; the longest names have small values
        lines.append(f"{text:>{min(width, room)}} {letter} {name}")
    return [*lines, "e exact, m modelled, c calibrated, u unknown; explained by: gemmsim list metrics"]


def _instructions(report: Report) -> list[str]:
    evidence = report.evidence
    total = evidence.warp_instructions
    kinds = [
        (str(kind), number(count), f"{100 * count / total:.1f}%", bar(count / total, 20))
        for kind, count in by_class(evidence).items()
    ]
    loop = k_loop(evidence.program, evidence.executed)
    products = []
    if loop:
        share = f"{100 * loop.product_share:.0f}% of the {loop.instructions:,.0f} issued there"
        products = [f"loop over K: instructions {loop.start} to {loop.stop - 1}; multiply-adds are {share}"]
    most = list(by_mnemonic(evidence).items())[:8]
    names = ", ".join(f"{name} {100 * count / total:.0f}%" for name, count in most)
    rows = table(("warp instructions", number(total), "", ""), kinds, "<>><")
    return [*rows, f"most: {names}", *products]


def _occupancy(report: Report) -> list[str]:
    occupancy, program, timing = report.evidence.occupancy, report.evidence.program, report.evidence.timing
    limits = {
        "block slots": ("blocks", occupancy.limit_blocks),
        "warp slots": ("warps", occupancy.limit_warps),
        f"registers ({program.registers} a thread)": ("registers", occupancy.limit_registers),
        f"shared memory ({occupancy.allocated_shared_bytes:,} B a block)": ("shared_mem", occupancy.limit_shared_mem),
    }
    rows = [
        (what, str(limit), "<- limit" if name in occupancy.limiters else "") for what, (name, limit) in limits.items()
    ]
    unified_kib = report.evidence.gpu.l1.unified_bytes // 1024
    return [
        f"theoretical {occupancy.theoretical_pct:.0f}% ({plural(occupancy.warps_per_sm, 'warp')}, "
        f"{plural(occupancy.blocks_per_sm, 'block')} an SM), "
        f"achieved {timing.achieved_occupancy_pct:.1f}%, {timing.waves:.2f} waves",
        *table(("blocks an SM by", "", ""), rows, "<><"),
        *([f"clusters at once {occupancy.clusters_at_once}"] if occupancy.clusters_at_once is not None else []),
        f"shared memory carve-out {occupancy.carveout_bytes // 1024} KiB of {unified_kib} KiB",
    ]


def _stalls(report: Report) -> list[str]:
    stalls = report.evidence.timing.stalls
    total = sum(stalls.values())
    if not total:
        return []
    shown = [item for item in sorted(stalls.items(), key=lambda item: -item[1]) if item[1] >= MIN_STALL_SHARE * total]
    rows = [(reason, f"{held:.2f}", f"{100 * held / total:.0f}%", bar(held / total, 20)) for reason, held in shown]
    return [
        f"{total:.1f} cycles a warp for each instruction it issues",
        *table(("reason", "cycles", "", ""), rows, "<>><"),
        *(f"{reason}: {_stall_meaning(reason)}" for reason, _ in shown[:EXPLAINED_STALLS]),
    ]


def _stall_meaning(reason: str) -> str:
    metric = METRICS.get(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")
    return metric.meaning.partition(": ")[2].rstrip(".") if metric else ""


def _method(report: Report) -> list[str]:
    sampling, timing = report.sampling, report.evidence.timing
    executed = "every block" if sampling.full else f"{sampling.blocks_executed:,} of {sampling.blocks_total:,} blocks"
    lines = [
        f"executed {executed}: {plural(sampling.executed_instructions, 'warp instruction')}",
        f"timed on one SM: {timing.simulated_instructions:,} of {report.evidence.warp_instructions:,.0f} warp "
        f"instructions, by {ENGINE_NAMES[timing.engine]}",
    ]
    lines.append(CACHES[report.evidence.caches])
    lines += dict.fromkeys([*sampling.notes, *timing.notes, *report.notes])  # each once
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return lines + ([f"with {versions}"] if versions else [])
