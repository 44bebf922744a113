"""What a launch takes and what a limit of power makes of its clock, by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from report_factory import traffic
from trace_builder import program

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.power import Energy, energy_of, timed_within, watts_at
from gemmsim.sm.types import Timing

A40 = load_gpu("a40")
# 20 W, 1 nJ of each cycle of an SM with blocks at 1 GHz, voltage in proportion to the clock's root.
POWER = replace(
    A40.power,
    busy_watts=20,
    cycle_joules=1e-9,
    energy_clock_hz=1e9,
    energy_exponent=1,
    limit_watts=65,
    burst_limit_watts=65,
)
GPU = replace(A40, power=POWER, clock=replace(A40.clock, sm_load_hz=2e9))


def timing(clock_hz: float | None) -> Timing:
    """A launch of a million cycles at any clock."""
    found = object.__new__(Timing)
    hz = clock_hz or 2e9
    values = {"cycles": 1e6, "sm_clock_hz": hz, "duration_us": 1e12 / hz, "power": None}
    for name in Timing.__dataclass_fields__:
        object.__setattr__(found, name, values.get(name))
    return found


def test_bytes_cost_their_way_from_l2_once_and_their_arrival_at_each_sm() -> None:
    """Of 100 sectors 25 join another SM's request, and each arrives at the two blocks of a cluster; 10 are stored."""
    rows = (
        traffic(0, "global", "tma_ld", 16, l2_sectors=100, merged_sectors=25, receivers=2),
        traffic(1, "global", "st", 4, l2_sectors=10, receivers=1),
    )
    counters = {"dram__sectors_read.sum": 3.0, "dram__sectors_write.sum": 1.0}
    moved: Any = SimpleNamespace(instructions=rows, counters=counters)
    power = replace(POWER, l2_byte_joules=1, sm_byte_joules=100, dram_read_byte_joules=7, dram_write_byte_joules=5)
    found = energy_of(program("UTMALDG.2D", "STG.E"), (4, 4), moved, 8, replace(A40, power=power))
    assert found == Energy(32 * (75 + 10 + 100 * (200 + 10)), 32 * (3 * 7 + 5), 8)


def test_sms_without_blocks_take_no_cycles() -> None:
    # at 2 GHz a cycle takes 2 nJ: 10 SMs take 40 W; 5 mJ in half a millisecond become 20 W
    assert watts_at(Energy(0.005, 0, 10), 1e6, 2e9, GPU) == pytest.approx(20 + 40 + 20)
    assert watts_at(Energy(0.005, 0, 0), 1e6, 2e9, GPU) == pytest.approx(20 + 20)
    # DRAM's 5 mJ are the same at any clock; so many cycles take twice as long at 1 GHz
    assert watts_at(Energy(0, 0.005, 10), 1e6, 1e9, GPU) == pytest.approx(20 + 10 + 5)


def test_work_lowers_the_clock_and_a_light_kernel_keeps_it() -> None:
    # at f GHz 20 + f**2 * (10 + 1.25) W: 65 W at 2 GHz
    light = timed_within(65, timing, Energy(0.00125, 0, 10), GPU)
    assert light.sm_clock_hz == 2e9 and light.power is not None
    assert (light.power.watts, light.power.held_watts) == (pytest.approx(65), 0)
    # 20 + f**2 * (10 + 35) W: 65 W at 1 GHz
    heavy = timed_within(65, timing, Energy(0.035, 0, 10), GPU)
    assert heavy.sm_clock_hz == pytest.approx(1e9, rel=0.01) and heavy.power is not None
    assert (heavy.power.watts, heavy.power.held_watts) == (pytest.approx(65, rel=0.01), 65)
