"""A Comparison rendered: text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from launch_summary_factory import BASE, rung, uses

import gemmsim.report
from gemmsim.analysis.findings import Bottleneck, Verification
from gemmsim.analysis.studies.comparison import Comparison, Skipped, compare_launches
from gemmsim.analysis.studies.launch_summary import SpaceTraffic
from gemmsim.report.layout.words import duration
from gemmsim.report.studies.comparison import RENDERERS


@pytest.fixture
def comparison() -> Comparison:
    spaces = BASE.spaces | {"shared": SpaceTraffic(7e7, 0, 3.5e7, 0, 0)}
    fast = rung(name="faster", time_us=502.0, kernel_us=500.0, spaces=spaces, uses=uses(data_stage=(70, 350, 3.6e7)))
    wrong = replace(BASE, name="wrong", precision="fp64", verified=Verification(False, 1.0, "NO: relative error 1.0"))
    reason = "dtype f32: tensorcore_naive takes f16 or bf16"
    return compare_launches(
        (64, 64, 64), [BASE, fast, wrong], [Skipped("tensorcore_naive", "a100-80gb", reason)], False
    )


EXPECTED = """\
M=64 N=64 K=64: predicted, not measured; caches cold

NVIDIA A100 (sm_80), f32 operands, fp32 arithmetic, peak 10.0 TFLOP/s
  kernel      time  TFLOP/s  of peak  speed-up  limited by
  tiled   1.002 ms     1.00    10.0%         -  L1/shared 80%
  faster    502 us     2.00    20.0%     2.00x  L1/shared 80%

NVIDIA A100 (sm_80), f32 operands, fp64 arithmetic, peak 10.0 TFLOP/s
  kernel      time  TFLOP/s  of peak  speed-up  limited by
  wrong   1.002 ms     1.00    10.0%         -  L1/shared 80%

WHY, NVIDIA A100 (sm_80), f32 operands, fp32 arithmetic
  faster 2.00x: shared wavefronts 79 M -> 35 M (-56%), wavefronts a request 1.13
      -> 0.5

C IS WRONG
  wrong: NO: relative error 1.0

CANNOT RUN
  tensorcore_naive on a100-80gb: dtype f32: tensorcore_naive takes f16 or bf16
"""


def test_text(comparison: Comparison) -> None:
    text = RENDERERS["text"](comparison)
    assert text == EXPECTED
    assert max(map(len, text.splitlines())) <= 80 and text.isascii()


def test_html_has_the_table_and_the_text(comparison: Comparison) -> None:
    page = RENDERERS["html"](comparison)
    assert "<h1>3 launches compared, the fastest is faster on a100-80gb: 502 us</h1>" in page
    assert page.count('class="bar"') == 3 and "wavefronts a request 1.13" in page
    nothing = compare_launches((64, 64, 64), [], [Skipped("x", "a100-80gb", "no")], False)
    assert "no launch could be predicted" in RENDERERS["html"](nothing)


def test_markdown_has_a_row_a_rung(comparison: Comparison) -> None:
    text = RENDERERS["md"](comparison)
    assert "| faster | 502 us | 2.00 | 20.0% | 2.00x | L1/shared 80% | shared wavefronts 79 M -> 35 M (-56%)," in text
    assert "- tensorcore_naive on a100-80gb: dtype f32" in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_csv_reads_back(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(RENDERERS["csv"](comparison))))
    assert [row["name"] for row in rows] == ["tiled", "faster", "wrong"]
    assert float(rows[1]["speed_up"]) == pytest.approx(1002 / 502) and rows[0]["speed_up"] == ""
    assert rows[0]["tunables"] == "tile=32" and rows[1]["why"] == "shared wavefronts"


def test_json_keeps_its_schema(comparison: Comparison) -> None:
    schema = json.loads((Path(gemmsim.report.__file__).parent / "comparison.schema.json").read_text())
    data = json.loads(RENDERERS["json"](comparison))
    jsonschema.validate(data, schema)
    why = data["groups"][0]["rows"][1]["why"][0]
    assert (why["rule"], why["quantity"]["before"], why["quantity"]["after"]) == ("l1_data", 79_000_000, 35_000_000)
    assert data["skipped"][0]["kernel"] == "tensorcore_naive"


@pytest.mark.parametrize(("us", "text"), [(0.0, "0 us"), (0.25, "250 ns"), (12.34, "12.34 us"), (2.5e6, "2.5 s")])
def test_durations(us: float, text: str) -> None:
    assert duration(us) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("latency", "barrier"),
        ("small_grid", "40/100 SMs idle"),
        ("launch", "launch overhead 70%"),
        ("pipe", "alu 70%"),
    ],
)
def test_limiters_are_short(kind: str, text: str) -> None:
    assert rung(blocks=60, bottleneck=Bottleneck(kind, "alu pipe: 70% of peak", 70.0)).limited_by == text


def test_uncounted_operations_are_no_zero() -> None:
    found = compare_launches((64, 64, 64), [rung(flops=0.0, precision="integer")], [], False)
    assert "  tiled   1.002 ms        -        -         -  L1/shared 80%" in RENDERERS["text"](found)
    assert json.loads(RENDERERS["json"](found))["groups"][0]["rows"][0]["tflops"] is None
