"""docs/from-ncu.md names what there is: counters, options, sections of the text and of the page."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from report_factory import report

from gemmsim.cli.main import COMMANDS, cli
from gemmsim.report.metrics import METRICS
from gemmsim.report.text import render

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "from-ncu.md").read_text(encoding="utf-8")
PAGES = [
    PAGE,
    (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"),
    (ROOT / "docs" / "gallery.md").read_text("utf-8"),
]


def test_counters_are_known() -> None:
    named = set(re.findall(r"`(\w+__[\w.]+\.\w+|launch__\w+)`", PAGE))
    assert len(named) > 10 and named <= set(METRICS)


def test_sections_are_those_of_the_text_and_of_the_page() -> None:
    rows = [
        line.split("|")[1:-1]
        for line in PAGE.partition("## Sections")[2].partition("## ")[0].splitlines()
        if "|" in line
    ]
    text = render(report())
    quoted = {name for _, ours, _ in rows[2:] for name in re.findall(r'"([^"]+)"', ours)}
    assert len(quoted) > 6 and [name for name in quoted if f"\n{name.upper()}\n" not in text] == []
    scripts = "".join(path.read_text() for path in (ROOT / "gemmsim" / "report" / "html").glob("*.js"))
    titles = set(re.findall(r'section\("\w+", "([^"]+)"', scripts))
    shown = {cell.strip() for *_, cell in rows[2:] if cell.strip() and "`" not in cell}
    assert len(shown) > 6 and shown <= titles


@pytest.mark.parametrize("page", PAGES, ids=["from-ncu", "faq", "gallery"])
def test_commands_and_options_exist(page: str) -> None:
    context = click.Context(cli, info_name="gemmsim")
    options: set[str] = set()
    for name in COMMANDS:
        command = cli.get_command(context, name)  # type: ignore[attr-defined]
        options |= {text for param in command.params for text in param.opts}
    of_ncu = {"--cache-control", "--clock-control"}
    assert set(re.findall(r"(?<=[`\s])--[a-z][a-z-]+", page)) - of_ncu <= options
    assert set(re.findall(r"`gemmsim (\w+)", page)) <= set(COMMANDS)
