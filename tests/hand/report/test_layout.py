"""Text of 80 columns, CSV and JSON, worked out by hand."""

from __future__ import annotations

import math
import re

from gemmsim.launch.spec import Labels
from gemmsim.report.layout.data import csv_text, json_text
from gemmsim.report.layout.table_page import table_page
from gemmsim.report.layout.text import indented, indented_table
from gemmsim.report.layout.web_page import embedded
from gemmsim.report.layout.words import launch_name, problem_size


def test_csv_has_the_columns_of_all_rows_and_empty_cells() -> None:
    rows = [{"a": 1.0, "b": None}, {"a": math.inf, "c": {"bm": 64, "bn": 8}}, {"a": "x,y"}]
    assert csv_text(rows) == 'a,b,c\n1,,\n,,bm=64 bn=8\n"x,y",,\n'


def test_json_has_null_for_what_is_no_number_and_integers_for_counts() -> None:
    assert json_text({"a": (1.0, 2.5, math.nan)}) == '{\n  "a": [\n    1,\n    2.5,\n    null\n  ]\n}\n'


def test_a_page_of_a_table_has_bars_on_one_scale_behind_the_name() -> None:
    rows = [{"group": "<g>", "name": "a", "time_us": 5.0}, {"group": "g", "name": "b", "time_us": 20.0}, {"name": "c"}]
    page = table_page("a title", rows, "text & more")
    assert [word.split("<")[0] for word in page.split('<th scope="col">')[1:]] == ["name", "time_us", "group"]
    assert re.findall(r'class="bar" style="width:([\d.]+)%"', page) == ["25.0", "100.0"]
    assert "&lt;g&gt;" in page and "text &amp; more" in page and "<g>" not in page
    assert "http" not in page and 'class="bar"' not in table_page("t", rows, "", bars="saved_pct")


def test_paragraphs_hang_below_their_first_word() -> None:
    first, second = indented("word " * 20)
    assert first == "  " + " ".join(["word"] * 15) and second == "      " + " ".join(["word"] * 5)


def test_a_table_is_indented_and_its_last_column_cut_at_80_columns() -> None:
    head, row = indented_table(("name", "text"), [("x", "y" * 90)], "<<")
    assert head == "  name  text" and row == "  x     " + "y" * 70 + ".." and len(row) == 80


def test_launches_are_named_by_kernel_size_and_tunables() -> None:
    assert launch_name(Labels("tiled", "", 8, 16, 24, {"tile": 4})) == "tiled, M=8 N=16 K=24, tile=4"
    assert launch_name(Labels("mine")) == "mine" and problem_size(None, None, None) == ""


def test_embedded_data_cannot_end_the_script_that_holds_it() -> None:
    assert embedded({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'
