"""The power of boards whose energies are an H200's, scaled: loops of loads and multiplications (gpu-benches)."""

import json
from pathlib import Path

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.power import Energy, clock_within, watts_at

BOARDS = json.loads(Path(__file__).with_name("board_power.json").read_text(encoding="utf-8"))["boards"]
ROWS = [(name, *row) for name, rows in BOARDS.items() for row in rows]
WAVEFRONT_BYTES = 128
# Loops with many multiplications take less than random numbers do, as their values grow beyond all bounds: on an H200,
# too, which takes 396 W where its energies, measured with random numbers, give 479.
WITHIN = {"a100-40gb": 0.03, "a40": 0.03, "l40": 0.04, "l40s": 0.09}


def energy(name: str, gigabytes: float, gigaflops: float) -> Energy:
    """Of one second."""
    power, sms = load_gpu(name).power, load_gpu(name).sm.count
    byte = power.l2_byte_joules + power.sm_byte_joules + power.wavefront_joules / WAVEFRONT_BYTES
    sm = gigaflops * 1e9 * power.fp32_joules + gigabytes * 1e9 * byte
    return Energy(sm, gigabytes * 1e9 * power.dram_read_byte_joules, sms)


@pytest.mark.parametrize(("name", "gigabytes", "gigaflops", "mhz", "watts"), ROWS)
def test_power_of_loops(name: str, gigabytes: float, gigaflops: float, mhz: float, watts: float) -> None:
    found = watts_at(energy(name, gigabytes, gigaflops), mhz * 1e6, mhz * 1e6, load_gpu(name))
    assert found == pytest.approx(watts, rel=WITHIN[name])


@pytest.mark.parametrize(("name", "within"), [("a40", 0.03), ("l40s", 0.09)])
def test_clocks_to_which_the_limit_brings_loops(name: str, within: float) -> None:
    """Of loops that are held, from what they do in a cycle; those that are not keep the clock under load."""
    gpu = load_gpu(name)
    for gigabytes, gigaflops, mhz, _ in BOARDS[name]:
        work = energy(name, gigabytes, gigaflops)
        held = clock_within(gpu.power.limit_watts, work, mhz * 1e6, gpu.clock.sm_load_hz, gpu)
        assert held / 1e6 == pytest.approx(mhz, rel=within)
        assert (held == gpu.clock.sm_load_hz) == (mhz * 1e6 == gpu.clock.sm_load_hz)
