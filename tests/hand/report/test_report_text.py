"""The text report: what a reader sees, at 80 columns and in ASCII."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from report_factory import evidence, report

from gemmsim.analysis.findings import Verification
from gemmsim.launch.spec import Labels
from gemmsim.report.layout.text import NARROW, WIDE, bar, table, use_columns
from gemmsim.report.layout.words import number
from gemmsim.report.report import Report
from gemmsim.report.text import render
from gemmsim.sm.types import PowerUse

GOLDEN = Path(__file__).parents[2] / "golden" / "report.txt"


def test_golden_report() -> None:
    """After a wanted change, print the new one in tests/ and read the difference:
    python -c "import report_factory as f, gemmsim.report.text as t; print(t.render(f.report()), end='')".
    """
    assert render(report()) == GOLDEN.read_text(encoding="utf-8")


def long_names() -> Report:
    base = report()
    source = {"tiled.py": "\n".join("x" * 200 for _ in range(5))}
    program = replace(base.evidence.program, source=source)
    counters = {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio": 123456789.5}
    return replace(
        base,
        evidence=replace(base.evidence, program=program, counters=counters),
        labels=Labels("kernel_with_a_very_long_name_" * 4),
        notes=("a note that goes on " * 20,),
    )


@pytest.mark.parametrize("made", [report, long_names])
def test_at_most_80_ascii_columns(made) -> None:
    text = render(made())
    assert max(len(line) for line in text.splitlines()) <= NARROW
    assert text.isascii()


@pytest.fixture
def columns() -> Iterator[Callable[[int], None]]:
    yield use_columns
    use_columns(NARROW)


@pytest.mark.parametrize(("asked", "given"), [(40, NARROW), (100, 100), (300, WIDE)])
def test_a_wide_terminal_is_used(columns: Callable[[int], None], asked: int, given: int) -> None:
    """From 80 to 120 columns; then lines of source are whole, whatever their length."""
    columns(asked)
    text = render(long_names())
    assert given - 20 < max(len(line) for line in text.splitlines()) <= given
    listed = text[text.index("\n      2  xx") : text.index("\n  * line")]
    assert ("x" * 200 in "".join(listed.split())) == (given > NARROW)


@pytest.mark.parametrize(
    ("power", "said"),
    [
        (None, "not known for this work on this GPU; no limit lowers the clock"),
        (PowerUse(38.2, 72, 1.41e9, 0), "38 W"),
        (PowerUse(72, 72, 1.405e9, 72), "72 W; the limit of 72 W brings the clock to 1.41 GHz"),
        (PowerUse(90, 72, 1e9, 0), "90 W; launched over and over, the limit of 72 W brings the clock to 1.00 GHz"),
    ],
)
def test_power_and_what_it_does_to_the_clock(power: PowerUse | None, said: str) -> None:
    base = report()
    timing = replace(base.evidence.timing, power=power, sm_clock_hz=1.41e9)
    text = render(replace(base, evidence=replace(base.evidence, timing=timing)))
    line = text[text.index("power     : ") : text.index("bottleneck:")]
    assert " ".join(line.split()) == f"power : {said}"


def test_verdict_comes_first() -> None:
    head = render(report()).split("\n\n")[1]
    labels = [line.split(":")[0].strip() for line in head.splitlines() if line[:1].strip()]
    assert labels == ["time", "power", "bottleneck", "verified"]


def test_shows_what_the_compiler_made_of_the_source() -> None:
    text = " ".join(render(report()).split())
    assert "1 LDS.128, 4 words at a time, for 4 in the source; all lanes read the same address" in text


def test_source_lines_carry_sectors_a_request() -> None:
    """Line 2: 3200 sectors in 100 requests, 400 would do, 2400 hit L1."""
    row = next(line for line in render(report()).splitlines() if "1 LDG" in line)
    assert row.split() == ["2", "1", "LDG", "100", "32.00", "4.00", "3,200", "75.0%"]


def test_a_program_without_source_lines_says_why() -> None:
    base = report()
    bare = tuple(replace(one, sources=()) for one in base.evidence.program.instructions)
    program = replace(base.evidence.program, instructions=bare)
    text = " ".join(render(replace(base, evidence=replace(base.evidence, program=program))).split())
    why = "the machine code has no source lines: it was compiled without -lineinfo"
    assert why in text and why not in " ".join(render(base).split())


def test_unknown_is_printed_as_unknown() -> None:
    base = report(evidence())
    roof = replace(base.evidence.roofline, flops=0.0, achieved_flops=None, percent_of_attainable=None)
    counters = {"dram__sectors_read.sum": float("nan")}
    unknown = replace(
        base,
        evidence=replace(base.evidence, roofline=roof, counters=counters, provenance={}),
        verified=Verification(None, None, "unknown: nothing to compare with"),
    )
    text = render(unknown)
    assert "unknown: the number of operations is not known" in text
    assert "unknown u dram__sectors_read.sum" in text


def test_table_aligns_and_cuts_the_last_column() -> None:
    assert table(("a", "n"), [("x", "1"), ("yyy", "22")], "<>", 20) == ["a     n", "x     1", "yyy  22"]
    assert table(("a", "b"), [("x", "1234567890")], "<<", 8) == ["a  b", "x  123.."]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "unknown"), (float("nan"), "unknown"), (float("inf"), "inf"), (0.0, "0"), (1234567.0, "1,234,567"),
     (3.14159, "3.142"), (1234.5, "1,234"), (0.00012345, "0.0001234")],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_bars() -> None:
    assert [bar(share, 10) for share in (0, 0.001, 0.5, 1, 2)] == ["", "#", "#####", "#" * 10, "#" * 10]
