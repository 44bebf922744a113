"""How long cycles take where tensor cores lower the clock: worked out by hand for 1 GHz and 0.8 GHz."""

from dataclasses import replace

import numpy as np
import pytest

from gemmsim.sm.clock import duration_s
from gemmsim.sm.spec import Rates
from gemmsim.sm.totals import Totals
from tests.helpers.sm_builder import GPU

CLOCK = replace(GPU.clock, sm_load_hz=1e9, sm_tensor_load_hz=8e8, tensor_entry_us=0.1, tensor_exit_us=1.0)


def totals(cycles: float, **tensor: float) -> Totals:
    return Totals(cycles, np.zeros((1, 1)), np.zeros(1), {}, np.zeros(1), **tensor)


@pytest.mark.parametrize(
    ("cycles", "tensor", "us"),
    [
        (10_000, {}, 10.0),
        # 1000 cycles before, 0.1 us to begin, 4000 at 0.8 GHz with a microsecond after the last, then 1000 - 800.
        (6000, {"before_tensor": 1000.0, "after_tensor": 1000.0}, 1.0 + 0.1 + 4800 / 800 + 0.2),
        # What comes after the last one ends before the clock is back.
        (5500, {"before_tensor": 1000.0, "after_tensor": 500.0}, 1.0 + 0.1 + 4500 / 800),
        (4000, {"before_tensor": 0.0, "after_tensor": 0.0}, 0.1 + 5.0),
    ],
)
def test_the_clock_is_lower_from_the_first_matrix_instruction_to_a_while_after_the_last(cycles, tensor, us):
    assert duration_s(totals(cycles, **tensor), CLOCK) * 1e6 == pytest.approx(us)


def test_multiples_lie_between_the_first_and_the_last_matrix_instruction():
    """Ten times as long: the 1000 cycles before and the 1800 after stay."""
    short = totals(6000, before_tensor=1000.0, after_tensor=1800.0)
    long = duration_s(short.scaled(10.0), CLOCK)
    assert long * 1e6 == pytest.approx(1.0 + 0.1 + (60_000 - 2000) / 800 + 1.0)


def test_the_fixed_part_of_a_latency_is_fewer_cycles_of_a_slower_clock():
    """100 ns are 100 cycles at 1 GHz and 80 at 0.8; 300 ns are 300 and 240."""
    l2 = replace(GPU.l2, partitions=1, hit_latency_cycles=200.0, fixed_latency_us=0.1)
    dram = replace(GPU.dram, latency_cycles=500.0, fixed_latency_us=0.3)
    gpu = replace(GPU, l2=l2, dram=dram, tma=replace(GPU.tma, load_latency_cycles=600.0))
    found = [Rates.share(gpu, 1, hz) for hz in (1e9, 8e8)]
    assert [rates.l2_latency_cycles for rates in found] == pytest.approx([200, 180])
    assert [rates.dram_latency_cycles for rates in found] == pytest.approx([500, 440])
    assert [rates.tma_load_latency_cycles for rates in found] == pytest.approx([600, 580])


def test_the_sm_that_waits_longest_ends_the_launch():
    """Of n SMs over 18 cycles: none more for one, 6 for two, 12 for five, 17 for 35."""
    l2 = replace(GPU.l2, partitions=1, hit_latency_cycles=200.0, latency_spread_cycles=18.0)
    found = [Rates.share(replace(GPU, l2=l2), sms, 1e9).l2_latency_cycles for sms in (1, 2, 5, 35)]
    assert found == pytest.approx([200, 206, 212, 217])
