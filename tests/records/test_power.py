"""The power of an H200 under loops of one kind of work, and the clocks at which its limits let GEMMs run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.power import Energy, clock_within, watts_at

MEASURED = json.loads(Path(__file__).with_name("h200_power.json").read_text(encoding="utf-8"))
LOOPS = json.loads(Path(__file__).with_name("h200_power_loops.json").read_text(encoding="utf-8"))["rows"]
H200 = load_gpu("h200")
POWER = H200.power
OPERATIONS_OF_HMMA = {"tensor_bf16": 4096, "tensor_int8": 8192, "tensor_fp64": 1024}
LOAD_BYTES, STORE_BYTES, WAVEFRONT_BYTES = 512, 512, 128  # of a warp's LDG.128 and STG.128
SECTOR_BYTES = 32
INSTRUCTIONS_A_LINE = 10  # of the loops of loads and stores, for each 512 bytes: addresses, and use of what was loaded


def joules(work: str) -> tuple[float, float]:
    """Energy of a unit of `work` in the SMs, and in DRAM."""
    sm, dram = 0.0, 0.0
    for name in work.split():
        if name in OPERATIONS_OF_HMMA and work.startswith("mma.sync"):
            sm += POWER.matrix_instruction_joules / OPERATIONS_OF_HMMA[name]
        if name.startswith("dram"):
            dram += getattr(POWER, f"{name}_joules")
        elif name in ("loads", "stores"):
            sm += POWER.wavefront_joules / WAVEFRONT_BYTES
        elif name not in ("mma.sync", "of", "and"):
            sm += getattr(POWER, f"{name}_joules")
        sm += POWER.sm_byte_joules if name == "l2_byte" else 0.0
    return sm, dram


@pytest.mark.parametrize("row", MEASURED["loops"], ids=lambda row: f"{row[0]}, {row[1]}, {row[2]} MHz")
def test_power_of_loops(row: list) -> None:
    """Within 15 %: the energy of multiplications depends on the numbers, that of the loop around them is left out."""
    work, _, mhz, a_second, watts, _, _ = row
    sm, dram = joules(work)
    cycles = mhz * 1e6  # of one second
    found = watts_at(Energy(sm * a_second, dram * a_second), cycles, mhz * 1e6, H200)
    assert found == pytest.approx(watts, rel=0.15)


@pytest.mark.parametrize("row", LOOPS, ids=lambda row: f"{row[1]}, every {row[2]}, board {row[0]}")
def test_power_of_loops_at_several_rates(row: list) -> None:
    """Within 15 %, also where several SMs get a byte that L2 reads once, by requests that merge or by multicast. Of
    bank conflicts 20: their wavefronts, of half the lanes each, take less than others."""
    _, work, _, mhz, a_second, a_unit, watts, _ = row
    kind = work.split(",")[0].split(" of LDS")[0]
    sm, dram = (0.0, 0.0) if kind == "nothing" else joules(f"{kind} and l2_byte" if "dram" in kind else kind)
    if "byte" in kind:
        sm -= POWER.l2_byte_joules * (1 - 1 / a_unit)
    if kind.startswith(("loads", "stores")):
        sm += POWER.instruction_joules * INSTRUCTIONS_A_LINE / LOAD_BYTES
    if kind == "wavefront":
        sm += POWER.instruction_joules * a_unit
    found = watts_at(Energy(sm * a_second, dram * a_second), mhz * 1e6, mhz * 1e6, H200)
    assert found == pytest.approx(watts, rel=0.2 if "two of them" in work else 0.15)


def energy_of_gemm(name: str, operations: float, l2_sectors: float, dram_bytes: float) -> Energy:
    """The bytes that arrive at SMs are those of tiles of 128 x 256, which these kernels of cuBLAS have."""
    kind = {"bf16": POWER.tensor_bf16_joules, "f16": POWER.tensor_fp16_joules}[name.split(maxsplit=1)[0]]
    arrive = operations / 2 * 2 * (1 / 128 + 1 / 256)
    l2 = l2_sectors * SECTOR_BYTES * POWER.l2_byte_joules + arrive * POWER.sm_byte_joules
    return Energy(operations * kind + l2, dram_bytes * POWER.dram_read_byte_joules)


@pytest.mark.parametrize("row", MEASURED["gemms"], ids=lambda row: row[0])
def test_clock_of_single_gemms(row: list) -> None:
    """From the first microseconds on; those of 25 us run 2 to 4 % lower than their power says."""
    name, mhz, us, *work = row
    cycles = mhz * us
    held = clock_within(
        POWER.burst_limit_watts, energy_of_gemm(name, *work), cycles, H200.clock.sm_tensor_load_hz, H200
    )
    assert held / 1e6 == pytest.approx(mhz, rel=0.045 if us < 30 else 0.02)


@pytest.mark.parametrize("row", MEASURED["sustained"], ids=lambda row: row[0])
def test_clock_of_gemms_in_a_row(row: list) -> None:
    name, mhz, us, *work, watts = row
    energy = energy_of_gemm(name, *work)
    held = clock_within(POWER.limit_watts, energy, mhz * us, H200.clock.sm_tensor_load_hz, H200)
    assert held / 1e6 == pytest.approx(mhz, rel=0.06)
    if watts is not None:
        assert watts_at(energy, mhz * us, mhz * 1e6, H200) == pytest.approx(watts, rel=0.06)


def test_a_clock_is_found_where_the_power_is_the_limit() -> None:
    """1 J in 1e6 cycles, an exponent of 1: 100 W + f**2 / 1e6 / 2e9 = 600 W at sqrt(500 * 2e15) = 1 GHz."""
    power = replace(POWER, busy_watts=100.0, energy_exponent=1.0, energy_clock_hz=2e9)
    gpu = replace(H200, power=power)
    energy = Energy(1.0, 0.0)
    assert clock_within(600.0, energy, 1e6, 2e9, gpu) == pytest.approx(1e9, rel=2e-4)
    assert watts_at(energy, 1e6, 1e9, gpu) == pytest.approx(600.0)
    assert clock_within(2100.0, energy, 1e6, 2e9, gpu) == 2e9
    # 1000 us and 1000 us apart: 1 J each 2 ms at 1 GHz
    assert watts_at(energy, 1e6, 1e9, gpu, apart_us=1000) == pytest.approx(350.0)
    assert clock_within(350.0, energy, 1e6, 2e9, gpu, apart_us=1000) == pytest.approx(1e9, rel=2e-4)
    assert clock_within(50.0, energy, 1e6, 2e9, gpu) == pytest.approx(0.2e9, rel=1e-3)


def test_dmma_16x8x4_issues_as_often_as_in_the_loop_whose_power_was_measured() -> None:
    """59.84 TFLOP/s at 1781 MHz: 512 multiply-adds in 16.1 cycles of each sub-partition, the vendor's peak. The wider
    shapes reach it, too."""
    loop = next(row for row in MEASURED["loops"] if row[0] == "mma.sync tensor_fp64" and row[1] == 0)
    a_cycle = loop[3] / 2 / (loop[2] * 1e6) / (H200.sm.count * H200.sm.sub_partitions)
    narrow, middle, wide = H200.mma.dmma_wide_interval_cycles
    assert 16 * 8 * 4 / a_cycle == pytest.approx(narrow, rel=0.01)
    peak = H200.peak.tensor_fp64_flops / 2 / H200.clock.sm_boost_hz / (H200.sm.count * H200.sm.sub_partitions)
    assert [16 * 8 * 8 / middle, 16 * 8 * 16 / wide] == [pytest.approx(peak, rel=0.01)] * 2
