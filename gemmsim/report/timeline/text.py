"""Renders a timeline as text: a row for each warp, a character for each state; ASCII, at most 80 columns."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from gemmsim.report.layout.text import paragraph, width
from gemmsim.report.timeline.state_letters import LETTERS, NO_WARP, spoken
from gemmsim.report.timeline.types import TimelineReport, Window, per_column, within
from gemmsim.sm.observer import BESIDE_WARPS, LEVELS
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.plurals import plural

LABEL = 12  # columns of a row's name
TICK = 10  # columns between two cycle numbers
_SELECTED = STALL_REASONS.index("selected")
RING_STATES = {"ring full": (2, 3), "filling": (1, 2)}  # columns of `Ring.fills` between which it is so
TMA, TENSOR = LEVELS.index("TMA"), LEVELS.index("tensor pipe")


def render(report: TimelineReport, window: Window, most_warps: int) -> str:
    """Render the rows of the first `most_warps` warps, and below them two rows that sum up all warps."""
    step = -(-window.cycles // (width() - LABEL))
    edges = np.append(np.arange(window.first, window.stop, step, dtype=np.int64), window.stop)
    rows = _warp_rows(report, window, edges)
    shown = dict(list(rows.items())[:most_warps])
    used = {letter for row in shown.values() for letter in row} & set(LETTERS)
    lines = paragraph(report.title) + paragraph(report.scope)
    columns = f"{step:,} cycles a column" if step > 1 else "a cycle a column"
    count = f"{len(shown)} of {plural(len(rows), 'warp')}" if len(shown) < len(rows) else plural(len(rows), "warp")
    lines += ["", f"cycles {window.first:,} to {window.stop:,}, {columns}; {count}", *_axis(edges)]
    lines += [f"{name:<{LABEL}}{row}" for name, row in shown.items()]
    lines += ["", *_below(report, window, edges), "", *_legend(used, step)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _warp_rows(report: TimelineReport, window: Window, edges: NDArray[np.int64]) -> dict[str, str]:
    """Return {name: row} of each warp on the SM in the window; a column shows the state with most of its cycles."""
    rows: dict[str, str] = {}
    for stay in report.timeline.warps:
        states = within(stay.states, window)
        if len(states):
            rows[report.warp_name(stay)] = _states(states, edges)
    return rows


def _states(states: NDArray[np.int32], edges: NDArray[np.int64]) -> str:
    cycles = np.zeros((len(STALL_REASONS) + 1, len(edges) - 1))
    for reason in np.unique(states[:, 2]):
        mine = states[states[:, 2] == reason]
        cycles[reason] = per_column(mine[:, 0], mine[:, 1], edges)
    # Cycles without a warp come last, so that the warp is shown where both have half.
    cycles[-1] = np.diff(edges) - cycles.sum(axis=0)
    letters = np.array(list(LETTERS + NO_WARP))
    return "".join(letters[cycles.argmax(axis=0)])


def _axis(edges: NDArray[np.int64]) -> list[str]:
    numbers, marks = " " * LABEL, " " * LABEL
    for column in range(0, len(edges) - 1, TICK):
        text = f"{edges[column]:,}"
        if LABEL + column + len(text) <= width():
            numbers = numbers.ljust(LABEL + column) + text
        marks = marks.ljust(LABEL + column) + "|"
    return [numbers.rstrip(), marks.rstrip()]


def _below(report: TimelineReport, window: Window, edges: NDArray[np.int64]) -> list[str]:
    """Return rows of digits, in tenths, and lines that explain them.

    The first row says how busy issue slots were, the second how many memory instructions were under way, relative to
    the largest number that were under way in any column of the window. Where there are bulk copies or asynchronous
    multiplications, a row says how many copies the TMA unit had in the same way, or how busy the tensor pipes were. Of
    the first block with a ring of stages two rows say how many stages were full, and how many were being filled.
    """
    stays = report.timeline.warps
    cycles = np.diff(edges)
    states = np.concatenate([within(stay.states, window) for stay in stays])
    issued = states[states[:, 2] == _SELECTED]
    slots = cycles * len({stay.sub_partition for stay in stays})
    flights = np.concatenate([within(stay.memory, window) for stay in stays])

    def under_way(levels: Collection[int]) -> NDArray[np.float64]:
        """Return how many are under way in each column, at these levels."""
        mine = flights[np.isin(flights[:, 3], list(levels))]
        return per_column(mine[:, 0], mine[:, 1], edges) / cycles

    def row(name: str, shares: NDArray[np.float64]) -> str:
        return f"{name:<{LABEL}}{_tenths(shares)}"

    memory, most = _of_most(under_way(range(BESIDE_WARPS)))
    rows = [row("issue slots", per_column(issued[:, 0], issued[:, 1], edges) / slots), row("in flight", memory)]
    said = (
        "issue slots: used, in tenths (0 under 10 %). in flight: memory instructions under way, all warps, in tenths "
        f"of the most, {most:.1f}; blank where there are none"
    )
    copies, most_copies = _of_most(under_way([TMA]))
    if most_copies:
        rows.append(row("TMA", copies))
        said += f". TMA: bulk copies under way, in tenths of the most, {most_copies:.1f}"
    products = under_way([TENSOR]) / len({stay.sub_partition for stay in stays})
    if products.any():
        rows.append(row("tensor pipe", products))
        said += ". tensor pipe: busy with wgmma, in tenths"
    for ring in report.timeline.rings[:1]:
        rows += [f"{name:<{LABEL}}{_counts(ring.held(*ends, edges))}" for name, ends in RING_STATES.items()]
        said += (
            f". {', '.join(RING_STATES)}: how many of the {ring.stages} stages of block {ring.block} hold data that is "
            "still needed, and how many TMA is filling (rounded); the rest are free"
            + ("" if ring.told else ". No mbarrier says when: a stage counts as full until it is asked for again")
        )
    return [*rows, "", *paragraph(said)]


def _of_most(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the counts as shares of the largest one, and that one."""
    most = float(counts.max()) if len(counts) else 0.0
    return counts / most if most else counts, most


def _tenths(shares: NDArray[np.float64]) -> str:
    return "".join(" " if share < 1e-9 else str(min(9, int(10 * share))) for share in shares.tolist())


def _counts(numbers: NDArray[np.float64]) -> str:
    return "".join(" " if number < 1e-9 else str(round(number)) if number < 9.5 else "+" for number in numbers.tolist())


def _legend(used: set[str], step: int) -> list[str]:
    names = [
        f"{letter} {spoken(reason)}" for letter, reason in zip(LETTERS, STALL_REASONS, strict=True) if letter in used
    ]
    lead = "in each column the state with most of its cycles: " if step > 1 else ""
    return paragraph(f"{lead}{', '.join(names)}; blank: no warp. gemmsim explain NAME says more")
