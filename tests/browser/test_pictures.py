"""The pictures of the report in a real browser: each can be tried out with mouse and keyboard."""

from __future__ import annotations

import re
import time
from typing import Any

from keys import DOWN, END, ENTER, HOME, LEFT, RIGHT


def test_occupancy_can_be_tried_out(page: Any) -> None:
    at = page()
    assert "(this kernel)" in at.text("#stairs-readout")
    at.focus("#stairs-slider")
    at.press(HOME)
    assert at.text("#stairs-readout").startswith("1 register a thread: ")
    at.press(END)
    assert at.text("#stairs-readout") == "255 registers a thread: no block fits."
    at.all("#occupancy [role=group] button")[2].click()
    blocks = at.script("return JSON.parse(document.getElementById('data').textContent).report.occupancy.blocks_per_sm")
    assert at.text("#stairs-readout").startswith(f"1,024 threads a block (this kernel): {blocks} block")
    assert at.all("#occupancy [role=group] button")[2].get_attribute("aria-pressed") == "true"


def test_any_thread_can_be_chosen(page: Any) -> None:
    """Blocks of 32 x 32: thread (5, 2) is number 69, lane 5 of warp 2."""
    at = page()
    at.one("#threads [data-thread='69']").click()
    assert at.text("#thread-readout") == "Thread (5, 2) is lane 5 of warp 2: number 69 of 1024 in its block."
    at.focus("#threads [role=application]")
    at.press(RIGHT, DOWN)
    assert "Thread (6, 3) is lane 6 of warp 3" in at.text("#thread-readout")
    at.press(HOME, LEFT)  # there is none before the first
    assert "Thread (0, 0)" in at.text("#thread-readout")
    at.press(END)
    assert "lane 31 of warp 31" in at.text("#thread-readout")
    box = at.one("#thread-y")
    box.clear()
    box.send_keys("4", ENTER)
    assert "Thread (31, 4)" in at.text("#thread-readout")
    row = at.script("return JSON.parse(document.getElementById('data').textContent).block.place")
    assert f"A[{32 * row[1] + 4}, 31]" in at.text("#threads")
    assert f"C[{32 * row[1] + 4}, {32 * row[0] + 31}]" in at.text("#threads")


def test_lanes_and_sectors(page: Any) -> None:
    """naive reads a column of A: a sector a lane. A lane farther is a row farther, 64 * 4 bytes."""
    at = page("scattered")
    assert at.text("#lane-summary").startswith("32 sectors for 32 lanes of 4 bytes; 4 would do")
    first = int(re.findall(r"0x([0-9a-f]+)", at.text("#lane-readout"))[0], 16)
    at.one("#global rect[data-lane='7']").click()
    assert at.text("#lane-readout").startswith("Lane 7: A[") and "sector 8 of 32" in at.text("#lane-readout")
    at.focus("#global [role=application]")
    at.press(RIGHT)
    assert int(re.findall(r"0x([0-9a-f]+)", at.text("#lane-readout"))[0], 16) == first + 8 * 256
    at.press(END, RIGHT)
    assert "Lane 31" in at.text("#lane-readout")
    at.focus("#global-instruction")
    at.press(END)  # the last of the list has the fewest sectors for its bytes
    assert not at.text("#lane-summary").startswith("32 sectors")


def test_lanes_and_banks(page: Any) -> None:
    """A column of a 32-word tile: all lanes in one bank, a wavefront each."""
    at = page()
    assert at.text("#bank-summary").startswith("32 wavefronts, 31 of them because lanes want different words")
    at.one("#shared rect[data-lane='3']").click()
    assert re.match(r"Lane 3: byte [\d,]+, bank \d+, wavefront 4 of 32\.", at.text("#bank-readout"))
    at.focus("#shared [role=application]")
    at.press(DOWN)
    assert "Lane 4" in at.text("#bank-readout")
    at.focus("#wavefront")
    at.press(RIGHT, RIGHT)
    assert at.text("#shared output") == "wavefront 2"
    solid = "return document.querySelectorAll('#shared rect[fill-opacity=\"1\"]').length"
    assert at.script(solid) == 1
    at.press(HOME)
    assert at.script(solid) == 32 and at.text("#shared output") == "all wavefronts"


def test_wide_accesses_take_several_banks(page: Any) -> None:
    at = page("tensor")
    assert "16 bytes a lane" in at.text("#bank-summary")
    assert at.script("return document.querySelectorAll('#shared rect[fill-opacity=\"1\"]').length") == 4 * 32


def test_tiles_step_by_step(page: Any) -> None:
    at = page()
    assert at.text("#tile-readout").startswith("iteration 1 of 2: loads A[")
    assert not at.one("#tile-back").is_enabled()
    at.one("#tile-next").click()
    assert "iteration 2 of 2" in at.text("#tile-readout") and len(at.all("#tiles rect.now")) == 2
    at.focus("#tiles [role=application]")
    at.press(RIGHT)
    assert at.text("#tile-readout").startswith("after the loop over K: stores C[")
    assert not at.one("#tile-next").is_enabled()
    at.press(HOME)
    assert "iteration 1" in at.text("#tile-readout")
    at.focus("#tile-slider")
    at.press(END)
    assert "after the loop" in at.text("#tile-readout")
    at.one("#tile-play").click()  # from the start again, and stops at the end by itself
    limit = time.monotonic() + 10
    while at.text("#tile-play") != "play" and time.monotonic() < limit:
        time.sleep(0.1)
    assert at.text("#tile-play") == "play" and "after the loop" in at.text("#tile-readout")


def test_inner_and_outer_product(page: Any) -> None:
    """A 2 x 8 tile, depth 4: 64 products; inner 128 loads, outer 4 * (2 + 8) = 40."""
    at = page()
    at.focus("#product-rows")
    at.press(HOME, RIGHT)
    at.focus("#product-columns")
    at.press(END)
    at.focus("#product-step")
    at.press(END)
    said = at.text("#product-readout")
    assert said.startswith("After 64 of 64 multiply-adds: 128 values loaded by the inner product, 40 by the outer.")
    at.press(HOME, RIGHT)
    said = at.text("#product-readout")
    assert said.startswith("After 1 of 64 multiply-adds: 2 values loaded by the inner product, 10 by the outer.")
