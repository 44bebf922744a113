"""Selects the memory instructions of a Report by the number or the text of their source lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from gemmsim.analysis.accesses.types import AccessSample
from gemmsim.analysis.code.source_lines import LineTraffic, by_line
from gemmsim.report.access_drawing import draw
from gemmsim.report.report import Report
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True)
class Selection:
    """Memory instructions of a launch: all, or those of some source lines.

    where    the text that selected the lines; "" for all
    rows     the traffic of the instructions, one row for each kind of instruction on each line
    samples  single accesses to draw, one sample for each instruction
    """

    report: Report
    where: str
    rows: tuple[LineTraffic, ...]
    samples: tuple[AccessSample, ...]

    def arrays(self, row: LineTraffic) -> str:
        """Return the names of the arrays that the instructions of a row access, "" where they are not known."""
        view = self.report.block_view
        names = {array.position: array.name for array in view.arrays} if view else {}
        found = [sample.representative.argument for sample in self.samples if sample.index in row.indices]
        return ", ".join(sorted({names[position] for position in found if position is not None and position in names}))

    def drawing(self, row: LineTraffic) -> list[str]:
        """Draw the worst access of the instructions of `row`, lane by lane; [] where none was sampled."""
        mine = [
            sample
            for sample in self.samples
            if sample.index in row.indices and (sample.space, sample.op) == (row.space, row.op)
        ]
        if not mine:
            return []
        cost = "wavefronts" if row.space == "shared" else "sectors"
        view = self.report.block_view
        return draw(max(mine, key=lambda sample: int(getattr(sample.worst, cost))), view.arrays if view else ())


def everything(report: Report) -> Selection:
    return Selection(report, "", by_line(report.evidence), report.access_samples)


def select(report: Report, where: int | str) -> Selection:
    """Return the memory instructions of the source lines that `where` names.

    `where` is the number of a line (35, "35", "tiled.py:35") or a part of its text, in which spaces do not count.
    Raises GemmsimError where no such line accesses memory.
    """
    rows = tuple(row for row in by_line(report.evidence) if _names(where, row))
    if not rows:
        known = {f"{row.where} `{row.text}`" for row in by_line(report.evidence) if row.line}
        listed = "; ".join(sorted(known, key=_number)) or "none, the program has no source lines"
        raise GemmsimError(
            f"no memory access at '{where}' in {report.labels.kernel}: lines that have some are {listed}"
        )
    lines = {row.line for row in rows}
    samples = tuple(sample for sample in report.access_samples if sample.line in lines)
    return Selection(report, str(where), rows, samples)


def _number(text: str) -> int:
    return int(re.findall(r"\d+", text)[0])


def _names(where: int | str, row: LineTraffic) -> bool:
    if row.line is None:
        return False
    text = str(where).strip()
    file, _, number = text.rpartition(":")
    if number.isdecimal():
        return row.line.line == int(number) and (not file or PurePath(row.line.file).match(f"*{file}"))
    return bool(text) and "".join(text.split()) in "".join(row.text.split())
