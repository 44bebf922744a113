"""Sums up the memory traffic of the machine code by source line."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.analysis.evidence import Evidence
from gemmsim.isa.program import Instruction, Program, SourceLine
from gemmsim.memory.types import InstructionTraffic

_SUMMED = (
    "requests", "sectors", "wavefronts", "conflicts", "l1_hit_sectors", "l2_sectors", "dram_sectors", "ideal_sectors",
    "used_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LineTraffic:
    """What the memory instructions of one kind on one source line did over the whole launch.

    line          None where the program has no line for them
    text          the line as written, without its indentation, "" where its file could not be read
    mnemonic      "LDS.128"
    static_count  how many such instructions the compiler made of the line
    indices       these instructions
    other fields  sums of the same fields of `InstructionTraffic`
    """

    line: SourceLine | None
    text: str
    mnemonic: str
    static_count: int
    space: str
    op: str
    width_bytes: int
    requests: float
    sectors: float
    wavefronts: float
    conflicts: float
    l1_hit_sectors: float
    l2_sectors: float
    dram_sectors: float
    ideal_sectors: float
    used_bytes: float
    indices: tuple[int, ...] = ()

    @property
    def where(self) -> str:
        return f"line {self.line.line}" if self.line else self.mnemonic


def source_line(program: Program, instruction: Instruction) -> SourceLine | None:
    """Return the source line of an instruction: the innermost one whose file could be read.

    That is a line of the user, not of a library that was inlined. Where no file could be read, the result is the
    innermost line of all; where the program has no line for the instruction, it is None.
    """
    for line in instruction.sources:
        if line.file in program.source:
            return line
    return instruction.sources[0] if instruction.sources else None


def line_text(program: Program, line: SourceLine | None) -> str:
    """Return the text of a source line without its indentation, "" where its file could not be read."""
    if line is None:
        return ""
    lines = program.source.get(line.file, "").splitlines()
    return lines[line.line - 1].strip() if 0 < line.line <= len(lines) else ""


def by_line(evidence: Evidence) -> tuple[LineTraffic, ...]:
    """Sum up the memory traffic by source line and kind of instruction.

    Lines are in source order, the kinds of instruction of one line in the order of the machine code.
    """
    program = evidence.program
    groups: dict[tuple[SourceLine | None, str, str], list[InstructionTraffic]] = {}
    for row in sorted(evidence.traffic, key=lambda row: row.index):
        instruction = program.instructions[row.index]
        key = (source_line(program, instruction), _short(instruction), f"{row.space}.{row.op}")
        groups.setdefault(key, []).append(row)
    rows = [_merged(program, line, mnemonic, members) for (line, mnemonic, _), members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (row.line is None, row.line.line if row.line else 0)))


def split(evidence: Evidence, row: LineTraffic) -> tuple[LineTraffic, ...]:
    """Split a row so that instructions stand apart that cost differently a request, as loads of A and of B do."""
    alike: dict[tuple[float, float], list[InstructionTraffic]] = {}
    for one in evidence.traffic:
        if one.index in row.indices and (one.space, one.op) == (row.space, row.op) and one.requests:
            key = round(one.sectors / one.requests, 2), round(one.wavefronts / one.requests, 2)
            alike.setdefault(key, []).append(one)
    return tuple(_merged(evidence.program, row.line, row.mnemonic, members) for members in alike.values())


def _short(instruction: Instruction) -> str:
    """Return an instruction's opcode with the modifiers that change how much memory it touches: LDS.128, LDG.64."""
    widths = [m for m in instruction.modifiers if m in ("64", "128", "U8", "S8", "U16", "S16")]
    return ".".join((instruction.opcode, *widths))


def _merged(program: Program, line: SourceLine | None, mnemonic: str, rows: list[InstructionTraffic]) -> LineTraffic:
    first = rows[0]
    sums = {name: float(sum(getattr(row, name) for row in rows)) for name in _SUMMED}
    return LineTraffic(
        line=line,
        text=line_text(program, line),
        mnemonic=mnemonic,
        static_count=len({row.index for row in rows}),
        space=first.space,
        op=first.op,
        width_bytes=first.width_bytes,
        **sums,
        indices=tuple(dict.fromkeys(row.index for row in rows)),
    )
