"""The roofline, worked out by hand on a GPU of round numbers."""

from __future__ import annotations

import math

import pytest

from gemmsim.analysis.limits.roofline import PRECISIONS, roofline
from gemmsim.gpu import load_gpu
from gemmsim.support.errors import GemmsimError

# 10 SMs at 1 GHz: L1 gives 10 * 1e9 * 128 = 1.28 TB/s; L2 0.5 TB/s; DRAM 0.1 TB/s; 2 TFLOP/s in fp32.
ROUND = load_gpu(
    "h200",
    [
        *("sm.count=10", "clock.sm_boost=1GHz", "clock.sm_base=1GHz", "l2.read=0.5TB/s", "dram.peak=100GB/s"),
        *("peak.fp32=2TFLOP/s", "peak.tensor_bf16=0"),
    ],
)


def test_dram_binds() -> None:
    # 1e9 FLOP over 1e8 bytes: 10 FLOP/B times 100 GB/s is 1 TFLOP/s, half the peak; at 2 ms, 0.5 TFLOP/s, half of that.
    got = roofline(1e9, 1e8, 2e8, 4e8, 2e-3, ROUND)
    dram = got.level("dram")
    assert (dram.intensity_flops_per_byte, dram.ridge_flops_per_byte) == (10, 20)
    assert (got.bound, got.attainable_flops, got.achieved_flops) == ("dram", 1e12, 5e11)
    assert got.percent_of_attainable == pytest.approx(50)


def test_l1_binds() -> None:
    # 1 FLOP a byte of L1: 1.28 TFLOP/s. L2: 4 * 0.5 = 2, at its ridge. DRAM: 100 * 0.1 = 10, above the peak of 2.
    got = roofline(1e9, 1e7, 2.5e8, 1e9, None, ROUND)
    assert (got.bound, got.attainable_flops) == ("l1", pytest.approx(1.28e12))
    assert [level.attainable_flops for level in got.levels] == pytest.approx([2e12, 2e12, 1.28e12])
    assert [level.ridge_flops_per_byte for level in got.levels] == pytest.approx([20, 4, 1.5625])
    assert got.achieved_flops is None and got.percent_of_attainable is None


def test_arithmetic_binds() -> None:
    got = roofline(1e12, 1e9, 1e9, 1e9, 1.0, ROUND)
    assert (got.bound, got.attainable_flops, got.percent_of_attainable) == ("compute", 2e12, 50)


def test_nothing_moved() -> None:
    got = roofline(1e9, 0, 0, 0, 1e-3, ROUND)
    assert got.bound == "compute"
    assert math.isinf(got.level("dram").intensity_flops_per_byte)


def test_no_arithmetic() -> None:
    got = roofline(0, 1e6, 1e6, 1e6, 1e-3, ROUND)
    assert (got.attainable_flops, got.achieved_flops, got.percent_of_attainable) == (0, 0, None)


def test_every_precision_has_its_own_peak() -> None:
    gpu = load_gpu("h200")
    got = {name: roofline(1e9, 1, 1, 1, None, gpu, name).peak_flops for name in PRECISIONS}
    assert got["tensor_fp16"] == 989.4e12
    assert got["fp64"] == 33.5e12


def test_unknown_precision_and_missing_unit() -> None:
    with pytest.raises(GemmsimError, match="did you mean 'fp32'"):
        roofline(1, 1, 1, 1, None, ROUND, "f32")
    with pytest.raises(GemmsimError, match="no tensor_bf16 unit"):
        roofline(1, 1, 1, 1, None, ROUND, "tensor_bf16")
