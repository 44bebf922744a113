"""What advice would gain: the costs that are changed, by hand, and the order of the advice."""

from __future__ import annotations

import numpy as np
import pytest

import gemmsim
from gemmsim.analysis.findings import Advice
from gemmsim.analysis.verdict.gains import cured, ranked
from gemmsim.api import analyze
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.memory.types import RecordCost

PC = np.array([3, 5, 3, 3, 5, 3], np.int32)


def cost(*wavefronts: int) -> RecordCost:
    numbers = np.array(wavefronts, np.uint16)
    flags = np.zeros(len(wavefronts), np.uint8)
    return RecordCost(*[numbers] * 4, flags > 0, *[flags] * 4, *[flags.astype(np.float32)] * 2)


def advice(rule: str, **more: object) -> Advice:
    return Advice(rule, rule, "", "", **more)  # type: ignore[arg-type]


def test_the_named_instruction_alone_costs_less() -> None:
    """A quarter of 4 + 4 + 2 + 2 wavefronts is 3: the running sums are 1, 2, 2.5 (to even: 2) and 3."""
    found = cured(cost(4, 9, 4, 2, 9, 2), PC, advice("x", cures=((3, 0.25), (7, 0.0)), left="wavefronts"))
    assert found.wavefronts.tolist() == [1, 9, 1, 0, 9, 1]
    assert found.l2_sectors.tolist() == found.tag_cycles.tolist() == [4, 9, 4, 2, 9, 2]


def test_sectors_go_with_wavefronts_where_all_is_less() -> None:
    found = cured(cost(4, 9, 4, 2, 9, 2), PC, advice("x", cures=((3, 0.5),)))
    for column in (found.wavefronts, found.tag_cycles, found.l2_sectors, found.dram_sectors):
        assert column.tolist() == [2, 9, 2, 1, 9, 1]


def test_advice_is_sorted_by_what_it_would_save() -> None:
    """100 us, 20 of them overhead. Half of the kernel's time is 40; `b` is predicted, of `c` nothing is known."""
    found = [advice("c"), advice("a", at_best=0.5), advice("b", gain="fewer sectors")]
    done = ranked(found, 100.0, 20.0, lambda one: 50.0 if one.rule == "b" else None)
    assert [(one.rule, one.time_us) for one in done] == [("b", 50.0), ("a", 60.0), ("c", None)]
    assert done[0].gain == "predicted without it 50.0 us, now 100.0 us (2.00x); fewer sectors"
    assert done[1].gain == "at best 60.0 us, now 100.0 us (1.67x)"
    (slower,) = ranked([advice("a")], 100.0, 20.0, lambda _: 101.0)
    assert slower.gain == "predicted without it 101.0 us, now 100.0 us: alone it saves nothing"


def test_what_saves_nothing_is_left_out() -> None:
    """Unless that is all there is, as two problems may hide one another; nothing at best is no advice at all."""
    times = {"helps": 90.0, "same": 100.0, "slower": 101.0, "hardly": 99.8}  # 99.8 is 1.00x
    found = [advice(rule) for rule in ("same", "slower", "hardly")] + [advice("even", at_best=1.0)]
    all_of_them = ranked([*found, advice("helps"), advice("unknown")], 100.0, 20.0, lambda one: times.get(one.rule))
    assert [one.rule for one in all_of_them] == ["helps", "unknown"]
    useless = ranked(found, 100.0, 20.0, lambda one: times.get(one.rule))
    assert [one.rule for one in useless] == ["hardly", "same", "slower"]
    assert all(one.gain.endswith(": alone it saves nothing") for one in useless)
    assert ranked([advice("even", at_best=1.0)], 100.0, 20.0, lambda _: None) == ()


DOUBLES = """extern "C" __global__ void sums(const float* a, float* b) {{
  {type} sum = 0;
  for (int i = 0; i < 64; i++) sum += a[i * 128 + threadIdx.x];
  b[blockIdx.x * 128 + threadIdx.x] = sum;
}}"""


def test_double_arithmetic_is_predicted_as_if_it_were_single() -> None:
    """64 additions a warp of 4 in each of 512 blocks. On a 4090 the fp64 pipe is far slower than FP32's."""
    launch = {"grid": 512, "block": 128, "args": ("f32[8192]", "f32[65536]=0"), "gpu": "rtx4090"}
    double, single = (gemmsim.analyze(DOUBLES.format(type=one), **launch) for one in ("double", "float"))
    first = double.advice[0]
    assert first.rule == "double_arithmetic" and first.evidence.startswith("131,072 warp instructions")
    assert first.title == "arithmetic in double precision on line 3: " + DOUBLES.splitlines()[2].strip()
    assert first.time_us < double.time_us
    assert single.time_us <= first.time_us  # that also converts
    assert "double_arithmetic" not in {one.rule for one in single.advice}


@pytest.mark.parametrize(
    ("kernel", "size", "gpu", "rule", "kind"),
    [
        ("naive", 256, "a100", "uncoalesced_access", "l1_data"),  # coalesced cures it, though 44 SMs are idle
        ("tiled_transposed", 512, "a100", "bank_conflicts", "pipe"),  # tiled_padded
        ("tiled", 1024, "a100", "register_tiling", "pipe"),  # blocktile_1d
        ("tensorcore_naive", 512, "h200", "uncoalesced_access", "latency"),  # tensorcore_warptiled
        ("tensorcore_pipelined", 512, "h200", "idle_sms", "small_grid"),
    ],
)
def test_the_first_advice_is_what_the_next_rung_cures(kernel: str, size: int, gpu: str, rule: str, kind: str) -> None:
    found = analyze(ladder_launch(LadderCase(kernel, size, size, size), load_gpu(gpu)), accesses=False)
    assert (found.advice[0].rule, found.bottleneck.kind) == (rule, kind)
    saved = [one.time_us for one in found.advice if one.time_us is not None]
    assert saved == sorted(saved) and saved[0] < found.evidence.timing.duration_us
