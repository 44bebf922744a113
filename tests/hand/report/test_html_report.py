"""The HTML page without a browser: complete, alone, safe against what sources and names hold, and the Report's data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from report_factory import evidence, report

from gemmsim.analysis.accesses.types import (
    AccessSample,
    ArrayArgument,
    BlockView,
    Phase,
    Rectangle,
    ThreadAccess,
    WarpAccess,
)
from gemmsim.report.html import render as rendering
from gemmsim.report.html.data import Detail, page_data
from gemmsim.report.html.render import MOST_BYTES, render
from gemmsim.report.json import render as render_json
from gemmsim.report.layout.web_page import embedded
from gemmsim.report.report import Report

NASTY = "</script><script>alert(1)</script><!--<b>&amp;'\"\u2028@DATA@\0"


class Page(HTMLParser):
    """Elements with their attributes, and what each script and style holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "h1": []}
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.texts:
            self.texts[tag].append("")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]][-1] += data


def access() -> WarpAccess:
    """Lanes 0 to 15 read row 3 of A [4, 16]; lane l falls in sector l // 8."""
    half, rest = range(16), 16
    return WarpAccess(
        block=2, warp=1, execution=5,
        addresses=(*(0x7F0000000000 + 192 + 4 * lane for lane in half), *[None] * rest),
        sectors=2, ideal_sectors=2, wavefronts=1, conflicts=0,
        sector_addresses=(0x7F0000000000 + 192, 0x7F0000000000 + 224),
        sector=(*(lane // 8 for lane in half), *[-1] * rest), bank=(*(16 + lane for lane in half), *[-1] * rest),
        wavefront=(*[0] * 16, *[-1] * rest), argument=0, elements=(*((3, lane) for lane in half), *[None] * rest),
    )  # fmt: skip


def full_report() -> Report:
    first = np.full((2, 32), -1, np.int64)
    first[1, :16] = 48 + np.arange(16)
    view = BlockView(
        block=2,
        place=(2, 0, 0),
        arrays=(ArrayArgument(0, "A", "f32", (4, 16), 4),),
        threads=(ThreadAccess(0, 0, first, np.array([0, 7])),),
        phases=(Phase("the whole block", (Rectangle(0, "ld", (3, 4), (0, 16)),)),),
        iterations=0,
    )
    one = access()
    line = report().evidence.program.instructions[0].sources[0]
    sample = AccessSample(0, "LDG.E", line, "a = A[row, k]", "global", "ld", 4, 1, one, 1.0, one)
    return replace(report(), access_samples=(sample,), block_view=view)


def nasty_report() -> Report:
    """What others wrote, in every text of theirs: source, file, kernel, title, symbol, arguments, findings."""
    base = full_report()
    program = base.evidence.program
    code = tuple(
        replace(i, sources=tuple(replace(s, file=NASTY) for s in i.sources), text=NASTY) for i in program.instructions
    )
    hostile = replace(program, instructions=code, source={NASTY: NASTY * 4}, symbol=NASTY, name=NASTY)
    return replace(
        base,
        evidence=replace(base.evidence, program=hostile),
        labels=replace(base.labels, kernel=NASTY, title=NASTY),
        arguments=(NASTY,),
        findings=(NASTY,),
        bottleneck=replace(base.bottleneck, sentence=NASTY),
        versions={NASTY: NASTY},
    )


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Page(page).texts["script"][0])
    return found


def test_the_page_holds_what_the_json_report_says() -> None:
    given = full_report()
    assert data_of(render(given))["report"] == json.loads(render_json(given))


def test_accesses_survive_the_encoding() -> None:
    data = data_of(render(full_report()))
    sample, lists = data["samples"][0], data["lists"]
    shown = sample["representative"]
    wanted = access()
    addresses = [None if o is None else shown["base"] + o for o in lists[shown["offsets"]]]
    assert addresses == list(wanted.addresses)
    elements = [None if e is None else divmod(shown["first"] + e, 16) for e in lists[shown["elements"]]]
    assert elements == list(wanted.elements)
    assert [shown["base"] + at for at in lists[shown["sector_at"]]] == list(wanted.sector_addresses)
    for name in ("sector", "bank", "wavefront"):
        assert lists[shown[name]] == list(getattr(wanted, name))
    assert (shown["block"], shown["warp"], shown["execution"]) == (2, 1, 5)
    assert sample["worst"] is None  # the representative is the worst
    never, [base, lanes, times] = data["block"]["threads"][0]["warps"]
    assert (never, base, lists[lanes], times) == (0, 48, [*range(16), *[None] * 16], 7)
    assert data["block"]["phases"] == [{"label": "the whole block", "parts": [[0, "ld", 3, 4, 0, 16]]}]


def test_source_and_code() -> None:
    data = data_of(render(full_report()))
    (file,) = data["source"]
    assert (file["file"], file["first"]) == ("tiled.py", 1)
    assert file["text"][1] == "    a = A[row, k]"
    assert [(line["line"], line["instructions"]) for line in file["lines"]] == [(2, [0]), (3, [1, 2, 3, 4]), (4, [5])]
    assert file["lines"][0]["sectors"] == 3200
    assert data["code"][4] == [4, "IADD3 R0", 50]  # zeros at the end are left out
    assert data["code"][2] == [2, "LDS R0", 400, 0, 0, "", 400, 0, 800, 400]


def test_nothing_is_fetched() -> None:
    page = Page(render(full_report()))
    for tag, attributes in page.elements:
        assert tag not in ("img", "iframe", "object", "embed", "video", "audio", "base", "form")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:,")), (tag, attributes)
    style, script = page.texts["style"][0], page.texts["script"][1]
    assert not re.search(r"url\(|@import", style)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import)\s*\(", script)
    assert "innerHTML" not in script and "insertAdjacentHTML" not in script and "eval(" not in script
    assert set(re.findall(r"https?://[^\"'\s)]+", script)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_only_its_own_script_and_style_may_run() -> None:
    page = Page(render(full_report()))
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and policy.startswith("default-src 'none';")
    for rule, text in (("script-src", page.texts["script"][1]), ("style-src", page.texts["style"][0])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy


def test_what_others_wrote_stays_text() -> None:
    plain, nasty = Page(render(full_report())), Page(render(nasty_report()))
    assert [tag for tag, _ in nasty.elements] == [tag for tag, _ in plain.elements]
    assert nasty.texts["script"][1] == plain.texts["script"][1]
    data = json.loads(nasty.texts["script"][0])
    assert data["code"][0][1] == data["report"]["kernel"]["name"] == data["report"]["findings"][0] == NASTY
    assert data["source"][0]["text"][0] in NASTY
    assert NASTY.replace("\0", "\ufffd")[:30] in nasty.texts["h1"][0].replace("\0", "\ufffd")


def test_embedded_json_has_no_markup() -> None:
    text = embedded({"a": NASTY, NASTY: [NASTY]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": NASTY, NASTY: [NASTY]}


def test_small_and_smaller_where_there_is_too_much_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instructions that did not run go first, then all, then the threads."""
    given = full_report()
    seldom = replace(given, evidence=replace(evidence(), executed=(100.0, 0.0, 400.0, 400.0, 50.0, 10.0)))
    assert len(render(seldom).encode()) < MOST_BYTES
    codes = [len(page_data(seldom, detail)["code"]) for detail in Detail]
    assert codes == [6, 5, 0, 0]
    assert [page_data(seldom, detail)["code_left_out"] for detail in Detail] == [0, 1, 6, 6]
    assert [len(page_data(seldom, detail)["block"]["threads"]) for detail in Detail] == [1, 1, 1, 0]
    sizes = [len(rendering._page(seldom, page_data(seldom, detail)).encode()) for detail in Detail]
    for detail in Detail:
        monkeypatch.setattr(rendering, "MOST_BYTES", sizes[detail])
        assert len(render(seldom).encode()) == sizes[detail]


def test_a_report_without_accesses_renders() -> None:
    data = data_of(render(report()))
    assert (data["samples"], data["block"], data["lists"]) == ([], None, [])


def test_explanations_are_those_of_the_glossary() -> None:
    terms = data_of(render(full_report()))["terms"]
    assert terms["long_scoreboard"]["text"] and terms["bank conflict"]["text"]
    assert "smsp__inst_executed.sum" in terms
    assert "dram__bytes_read.sum" not in terms  # the report does not have it


def test_notebook_summary_is_safe_and_says_the_verdict() -> None:
    shown = report()._repr_html_()
    assert report().bottleneck.sentence in shown and "short_scoreboard" in shown
    nasty = Page(nasty_report()._repr_html_())
    assert "script" not in {tag for tag, _ in nasty.elements}
    assert "&lt;/script&gt;" in nasty_report()._repr_html_()
