"""The site of docs/, built with warnings as errors; the tutorial runs meanwhile."""

from __future__ import annotations

import html
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gemmsim.cli.main import COMMANDS
from gemmsim.report.glossary.entries import GLOSSARY

DOCS = Path(__file__).parents[2] / "docs"
MODEL = sorted(page for page in (DOCS / "model").glob("*.md") if page.stem != "index")
_AFTER_TMA = ("_specialised", "_persistent", "_cluster", "_fp8")
NAME = re.compile(r"(?<![\w./])(gemmsim(?:_validate)?(?:\.(?!(?:sarif|toml|xml)\b)\w+)+)")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make docs` does it."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_every_page_is_there(site: Path) -> None:
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert len(pages) > 30
    assert pages - {page.relative_to(site) for page in site.rglob("*.html")} == {Path("ladder.html")}  # part of another


def test_nothing_is_asked_of_the_network(site: Path) -> None:
    """Scripts, styles, fonts and pictures come with the pages."""
    pages = list(site.rglob("*.html"))
    for page in pages:
        loaded = re.findall(r"<(?:script|img|link)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page.read_text(encoding="utf-8"))
        assert [address for address in loaded if "//" in address] == []


def test_the_tutorial_ran(site: Path) -> None:
    source = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    page = (site / "tutorial.html").read_text(encoding="utf-8")
    cells = source.count("```{code-cell}")
    assert page.count("cell_input docutils") == cells
    assert page.count("cell_output docutils") == cells - 2  # helpers are defined and print nothing
    assert 'class="gemmsim"' in page  # a report that shows itself
    assert "Traceback" not in page
    rows = re.findall(r"^(\w+) +([\d,]+\.\d) us +\d", text_of(site / "tutorial.html"), re.MULTILINE)
    time_us = {name: float(number.replace(",", "")) for name, number in rows}
    assert next(iter(time_us)) == "naive"
    assert list(time_us)[-1] == "tensorcore_pipelined"
    assert time_us["naive"] > time_us["coalesced"] > time_us["tiled"] > time_us["blocktile_1d"]
    assert time_us["tiled_transposed"] > time_us["tiled_padded"]
    assert min(time_us, key=lambda name: time_us[name]) == "tensorcore_pipelined"


def test_the_tutorial_s_steps_on_an_h200_are_as_measured(site: Path) -> None:
    """Each predicted time is within a tenth of the measured one, and what a step is told to gain, it gains."""
    page = text_of(site / "tutorial.html")
    titles = list(re.finditer(r"^(wgmma\w*), \w+, 4096 +predicted +measured$", page, re.MULTILINE))
    assert [one[1] for one in titles] == [f"wgmma{end}" for end in ("", "_tma", *_AFTER_TMA)]
    rows = []
    for title, end in zip(titles, [*(one.start() for one in titles[1:]), len(page)], strict=True):
        found = re.findall(r"^  (\w[\w ]*?) {2,}([\d,.]+) +([\d,.]+)", page[title.end() : end], re.MULTILINE)
        rows.append({name: [float(value.replace(",", "")) for value in values] for name, *values in found})
    for row in rows:
        assert row["time"][0] == pytest.approx(row["time"][1], rel=0.1)
        assert row["tensor pipe busy"][0] == pytest.approx(row["tensor pipe busy"][1], abs=4)
    staged, tma, specialised, persistent, _, bytes_ = rows
    for side in (0, 1):
        assert staged["instructions"][side] > 4 * tma["instructions"][side]
        assert specialised["into the SMs"][side] < 0.8 * tma["into the SMs"][side]
        assert persistent["read in L2"][side] < specialised["read in L2"][side]
        assert persistent["tensor pipe busy"][side] > specialised["tensor pipe busy"][side]
        assert bytes_["times as fast as before"][side] > 1.7


def test_numbers_of_the_tutorial_are_printed_by_cells() -> None:
    """Prose has no measured number: only names, and what hardware is made of."""
    source = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$|^---.*?^---$|`[^`\n]*`|\]\([^)]*\)", "", source, flags=re.DOTALL | re.MULTILINE)
    numbers = set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?\b", re.sub(r"^## \d\.", "", prose, flags=re.MULTILINE)))
    assert numbers <= {"32", "4", "16", "3050", "4096"}  # lanes and banks, bytes of a float, bits, a GPU's name, a size


@pytest.mark.parametrize("page", MODEL, ids=lambda page: page.stem)
def test_a_page_of_the_model(page: Path, site: Path) -> None:
    """Equation, source, and functions that exist and are shown, with a link to their code."""
    source = page.read_text(encoding="utf-8")
    equations = re.findall(r"^```text\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)
    assert equations
    assert max(len(line) for text in equations for line in text.splitlines()) <= 82  # as wide as the page
    assert "**Source.**" in source
    named = re.findall(r"auto(?:function|method|class):: (\S+)", source)
    assert named
    built = (site / "model" / f"{page.stem}.html").read_text(encoding="utf-8")
    assert built.count(">[source]<") == len(named)
    for name in named:
        assert found(name)


def found(name: str) -> bool:
    """Whether the dotted name is of a module, or of something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


def test_names_that_pages_mention_exist() -> None:
    names = {name for page in DOCS.rglob("*.md") for name in NAME.findall(page.read_text(encoding="utf-8"))}
    assert len(names) > 80
    assert not found("gemmsim.memory.requests.coalescer.nothing")
    assert [name for name in sorted(names) if not found(name)] == []


def test_keys_of_the_gpu_that_the_model_names_exist() -> None:
    from gemmsim.gpu.fields import SECTIONS, types

    keys = set(types())
    sections = "|".join([*SECTIONS, "pipes"])
    for page in MODEL:
        for key in re.findall(rf"(?<![\w.])((?:{sections})\.[a-z][\w.]*_\w+)", page.read_text(encoding="utf-8")):
            assert key in keys, f"{page.name}: {key}"


def test_the_reference_is_complete(site: Path) -> None:
    commands = text_of(site / "reference" / "cli.html")
    for name in COMMANDS:
        assert f"gemmsim {name}" in commands
    for option in ("--set-kernel", "--expect", "--scheduler", "--analyse", "--records"):
        assert option in commands
    texts = {kind: text_of(site / "reference" / f"{kind}.html") for kind in ("metrics", "stalls", "glossary")}
    pages = {"metric": "metrics", "stall reason": "stalls", "term": "glossary"}
    for entry in GLOSSARY.values():
        assert entry.title in texts[pages[entry.kind]]
    assert "analyze" in text_of(site / "reference" / "api.html")
    schema = text_of(site / "reference" / "json.html")
    for key in ("counters", "bottleneck.sentence", "gpu.sha256"):
        assert key in schema
