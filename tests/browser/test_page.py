"""The report in a real browser: it draws without an error or a request, and answers to mouse and keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from keys import ENTER, RIGHT, SPACE, TAB

NAMES = ("conflicts", "scattered", "tensor")
SECTIONS = (
    "verdict", "roofline", "memory", "stalls", "mix", "source", "occupancy", "threads", "global", "shared", "tiles",
    "product", "counters", "method",
)  # fmt: skip


def test_an_error_and_a_request_would_be_seen(browser: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>throw new Error('seen')</script>")
    browser.open(bad)
    assert any("seen" in message for message in browser.errors())
    assert "http://127.0.0.1:9/x.png" in browser.requests()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_every_section_draws_within_the_window(page: Any, name: str, width: int, dark: bool) -> None:
    at = page(name, width=width, dark=dark)
    assert tuple(section.get_attribute("id") for section in at.all("section")) == SECTIONS
    for section in SECTIONS:
        assert at.script("return document.getElementById(arguments[0]).offsetHeight", section) > 60
    for section in ("roofline", "memory", "occupancy", "threads", "global", "tiles", "product"):
        assert at.all(f"#{section} svg"), section
    assert at.script("return document.documentElement.scrollWidth") <= width
    outside = at.script("""
        return [...document.querySelectorAll("main *")]
            .filter((e) => !e.closest(".wide") && e.getBoundingClientRect().right > innerWidth + 0.5)
            .map((e) => `${e.tagName}.${e.className}`)""")
    assert outside == []
    assert not re.search(r"undefined|NaN|\[object", at.script("return document.getElementById('main').innerText"))


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", [*NAMES, "local", "tma"])
def test_no_label_of_the_memory_chart_lies_on_another(page: Any, name: str, width: int) -> None:
    at = page(name, width=width)
    on_top = at.script("""
        const texts = [...document.querySelectorAll("#memory svg text")]
            .map((e) => [e.textContent, e.getBoundingClientRect()]);
        return texts.flatMap(([one, a], i) => texts.slice(i + 1)
            .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
            .map(([other]) => `${one} / ${other}`))""")
    assert on_top == []
    sent_once = len(at.all("#memory svg line[data-sent]"))  # its arrow divides in two
    assert sent_once == (name == "tma")
    assert len(at.all("#memory svg polygon")) == len(at.all("#memory svg line")) - sent_once


def test_a_report_beside_another(page: Any) -> None:
    """naive reads no shared memory: what tiled_transposed has of it is gone. It has as many products."""
    at = page("beside")
    said = at.script("return document.querySelector('#former p:not(.soft)').innerText")
    assert said.startswith("Beside tiled_transposed, M=64 N=64 K=64, tile=32 on a100-80gb: ") and said.endswith(
        " as fast."
    )
    rows = at.script(
        "return [...document.querySelectorAll('#former tbody tr')].map((r) => [...r.cells].map((c) => c.innerText))"
    )
    moved = {name.split("?")[0].split()[0]: rest for name, *rest in rows}
    before, here, change = moved["smsp__inst_executed_op_shared_ld.sum"]
    assert int(before.replace(",", "")) > 0 and (here, change) == ("0", "-100.0%")
    assert "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum" not in moved
    assert int(at.script("return document.querySelector('#former > p:last-child').innerText").split()[0]) > 5


def test_multicast_and_the_swizzle_of_a_kernel_with_tma(page: Any) -> None:
    """Of two blocks each asks L2 for 128 x 128 halves of A, 32,768 bytes, and for as many of B that both get: 131,072
    bytes are sent, 196,608 arrive. Boxes of A are 64 halves wide, 8 pieces."""
    at = page("tma")
    assert "multicast: 197 kB arrive" in at.text("#memory")
    assert "TMA loads" in at.text("#memory") and "131 kB" in at.text("#memory")
    assert "A: boxes of 128 x 64 f16, swizzle 128B" in at.text("#swizzle")
    at.focus("#swizzle .canvas")
    at.press(RIGHT, RIGHT)
    assert "Piece 2 of rows 0 to 7 lies in bank groups 2 3 0 1 6 7 4 5: 8 groups" in at.text("#swizzle-readout")
    assert len(at.all("#swizzle rect[data-piece]")) == 64


def test_light_and_dark_follow_the_system_and_the_button(page: Any) -> None:
    at = page()
    background = "return getComputedStyle(document.body).backgroundColor"
    light = at.script(background)
    button = at.one("#theme")
    seen = []
    for _ in range(3):
        button.click()
        seen.append((button.get_attribute("data-name"), at.script(background)))
    assert [name for name, _ in seen] == ["light", "dark", "auto"]
    assert seen[0][1] == seen[2][1] == light != seen[1][1]
    at = page(dark=True)
    assert at.script(background) == seen[1][1]


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out(page: Any, dark: bool) -> None:
    """WCAG 2.1: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    at = page(dark=dark)
    ratio = """
        const paint = (name) => {
            const e = document.createElement("i");
            e.style.color = `var(${name})`;
            document.body.append(e);
            const found = getComputedStyle(e).color.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255);
            e.remove();
            return found;
        };
        const light = (name) => paint(name).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const [a, b] = [light(arguments[0]), light(arguments[1])].sort((x, y) => y - x);
        return (a + 0.05) / (b + 0.05);"""
    for ink in ("--ink", "--soft", "--accent", "--warn", "--good"):
        for ground in ("--card", "--faint", "--bg"):
            assert at.script(ratio, ink, ground) >= 4.5, (ink, ground)
    assert at.script(ratio, "--accent-ink", "--accent") >= 4.5
    for number in range(8):
        assert at.script(ratio, f"--t{number}", f"--c{number}") >= 4.5, number
    for number in (0, 1, 2):  # lines and points
        assert at.script(ratio, f"--c{number}", "--card") >= 3, number


def test_explanations_open_and_close(page: Any) -> None:
    at = page()
    button = at.one("#stalls .why[data-term='barrier']")
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert "barrier" in at.text("#stalls .explained").lower()
    at.press(ENTER)  # it has the focus
    assert at.all("#stalls .explained") == [] and button.get_attribute("aria-expanded") == "false"
    at.press(SPACE)
    assert len(at.all("#stalls .explained")) == 1


def test_a_source_line_opens_to_its_machine_code(page: Any) -> None:
    at = page()
    assert at.all("#source .sass") == []
    lines = at.all("#source button.open")
    lines[0].click()
    first = len(at.all("#source .sass"))
    assert first > 0 and lines[0].get_attribute("aria-expanded") == "true"
    at.press(ENTER)
    assert at.all("#source .sass") == []
    at.focus("#sass-all")
    at.press(SPACE)
    assert len(at.all("#source .sass")) == at.script(
        "return JSON.parse(document.getElementById('data').textContent).code.length"
    )
    assert "STS" in at.text("#source")
    at.press(SPACE)
    assert at.all("#source .sass") == []
    at.one("#source tr.opens .text").click()  # anywhere on the line
    assert len(at.all("#source .sass")) == first
    at.one("#source tr.opens .text").click()
    assert at.all("#source .sass") == []


def test_the_verdict_is_the_largest_text_and_advice_leads_to_its_line(page: Any) -> None:
    at = page()
    size = """return [...document.querySelectorAll("h1, h2, h3, .cards b, .lead")]
        .map((e) => [e.className, parseFloat(getComputedStyle(e).fontSize)])"""
    sizes = at.script(size)
    assert (
        max(sizes, key=lambda one: one[1])[0] == "lead"
        and sum(one[1] == max(s[1] for s in sizes) for one in sizes) == 1
    )
    assert at.text(".lead").startswith("too few blocks: 4 for 108 SMs, so 104 SMs stand idle (L1/shared data stage")
    link = at.one("#verdict a.line")
    assert link.text == "line 35"
    link.click()
    assert "tile_a[ty, k] * tile_b[tx, k]" in at.text("tr:target")
    top = at.script("return document.querySelector('tr:target').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_executions_the_instruction_mix_and_shares_of_peak(page: Any) -> None:
    """64 x 64 x 64: 4 blocks of 32 warps store 128 requests; 2 tiles of 32 multiply-adds a warp and thread of C."""
    at = page()
    data = at.script("return JSON.parse(document.getElementById('data').textContent)")
    rows = at.script(
        "return [...document.querySelectorAll('#mix tbody tr')].map((e) => [...e.cells].map((c) => c.innerText))"
    )
    assert {row[0]: row[1] for row in rows}["multiply-add"] == f"{4 * 32 * 64:,}"
    line = next(one for one in data["source"][0]["lines"] if one["line"] == 41)
    shown = at.script("return [...document.getElementById('line-41').cells].map((c) => c.innerText)")
    assert shown[2].replace(",", "") in (str(line["executed"]), f"{line['executed'] / 1e3:.3g} k")
    stage = next(use["share_pct"] for use in data["busy"] if use["unit"] == "L1/shared data stage")
    kernel = [flow["share_pct"] for flow in data["memory"]["flows"] if "kernel" in (flow["source"], flow["target"])]
    assert sum(kernel) == pytest.approx(stage, rel=1e-6)
    assert f"{max(kernel):.1f} % of peak" in at.text("#memory")


def test_bars_share_one_scale(page: Any) -> None:
    """A share of 100 % is as long as the cell that holds the bar, in every table of shares."""
    at = page()
    for section, column in (("verdict", 1), ("stalls", 2), ("mix", 2)):
        rows = at.script(
            """return [...document.querySelectorAll(`#${arguments[0]} table tr`)].filter((e) => e.querySelector(".bar"))
                .map((e) => [parseFloat(e.cells[arguments[1]].innerText), e.querySelector(".bar").style.width])""",
            section, column,
        )  # fmt: skip
        assert rows
        for share, wide in rows:
            assert float(wide.rstrip("%")) == pytest.approx(share, abs=0.06)


def test_code_without_lines_opens_too(page: Any) -> None:
    at = page("tensor")
    at.one("#source button.open").click()
    assert "HMMA" in at.text("#source")


def test_counters_are_found_by_name_and_meaning(page: Any) -> None:
    at = page()
    rows = "return [...document.querySelectorAll('#counters tbody tr')].filter((row) => !row.hidden).length"
    shown = at.script(rows)
    at.one("#counter-zeros").click()
    assert at.script(rows) > shown
    assert at.script("return [...document.querySelectorAll('#counters .group')].some((one) => one.open)") is False
    at.one("#counter-search").send_keys("dram__bytes_read")
    assert at.script(rows) == 1
    (group,) = [one for one in at.all("#counters .group") if one.is_displayed()]
    assert group.find_element("css selector", "summary").text == "DRAM 1" and "dram__bytes_read.sum" in group.text


def test_the_keyboard_alone_reaches_everything(page: Any) -> None:
    at = page()
    at.press(TAB)
    assert "skip" in at.focused()
    at.press(ENTER)
    assert at.focused().startswith("MAIN")
    at.press(TAB)
    assert at.script("return document.activeElement.closest('section').id") == "verdict"
    unreachable = at.script("""
        return [...document.querySelectorAll("button, input, select, summary, a[href], [role=application]")]
            .filter((e) => e.tabIndex < 0 && !e.disabled).map((e) => e.outerHTML.slice(0, 80))""")
    assert unreachable == []
    nameless = at.script("""
        return [...document.querySelectorAll("main button, main input, main select, [role=application], [role=region]")]
            .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length)))
            .map((e) => e.outerHTML.slice(0, 80))""")
    assert nameless == []


def test_source_text_is_never_markup(page: Any, pages: dict[str, Path], browser: Any, tmp_path: Path) -> None:
    """A line of source that would end the data and start a script, in a page that the browser parses."""
    from dataclasses import replace

    from report_factory import report

    from gemmsim.report.html.render import render

    text = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">\n"
    base = report()
    program = replace(base.evidence.program, source={"tiled.py": text * 4})
    given = replace(base, evidence=replace(base.evidence, program=program), findings=(text,))
    nasty = tmp_path / "nasty.html"
    nasty.write_text(render(given), encoding="utf-8")
    page()
    browser.open(nasty)
    assert browser.driver.title.startswith("tiled 8 x 8 x 200")
    assert browser.all("main img") == [] and len(browser.all("script")) == 2
    assert text.strip() in browser.text("#source")
