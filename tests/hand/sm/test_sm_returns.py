"""The way of loaded data to the registers of a sub-partition, and what 8 and 16 bits a lane take, by hand."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, ins, issues, program

from gemmsim.sm.streams import RecordCycles


@pytest.mark.parametrize(("mnemonic", "latency"), [("LDS", 24), ("LDG", 32)])
def test_32_wavefronts_take_64_cycles_to_the_registers_of_a_sub_partition(mnemonic: str, latency: int):
    one, other = ins(mnemonic, 1, write=0), ins(mnemonic, 1, write=1)
    code = program(one, other, ins("FFMA", 1, wait=1), ins("FFMA", 1, wait=2), EXIT)
    cycles = issues(code, cost=RecordCycles(32, 8 if mnemonic == "LDG" else 0, 0, 0)).cycles(0)
    tags = 7 if mnemonic == "LDG" else 0  # passes after the first
    assert cycles[2] == 1 + latency + 31 * 2 + tags
    assert cycles[3] == cycles[2] + 32 * 2


def test_what_has_come_for_another_load_is_passed_on_a_wavefront_a_cycle():
    """Behind the load that asked for it, whose 32 wavefronts take 64 cycles."""
    loads = [ins("LDG", 1, write=number) for number in range(3)]
    code = program(*loads, *(ins("FFMA", 1, wait=1 << number) for number in range(3)), EXIT)
    first, second, third = issues(code, cost=RecordCycles(32, 8, 32, 0, fetch=1)).cycles(0)[3:6]
    assert (second - first, third - second) == (64, 32)


@pytest.mark.parametrize(("mnemonic", "longer"), [("LDG.E.U16", 10), ("LDG.E.S8", 10), ("LDG.E", 0), ("LDG.E.64", 0)])
def test_what_a_load_of_16_bits_a_lane_misses_takes_the_data_stage_longer(mnemonic: str, longer: int):
    """Eight warps of 64 loads, with a stage that what comes holds for 11 cycles instead of one."""
    code = program(*[ins(mnemonic, 2, write=0)] * 64, ins("FFMA", 1, wait=1), EXIT)

    def end(cycles: float, l2_sectors: int) -> int:
        gpu = replace(GPU, l1=replace(GPU.l1, narrow_fill_cycles=cycles))
        seen = issues(code, 8, cost=RecordCycles(1, 1, l2_sectors, 0), gpu=gpu)
        return max(seen.cycles(warp)[-1] for warp in range(8))

    assert end(10, 2) - end(0, 2) == pytest.approx(8 * 64 * longer, rel=0.2)
    assert end(10, 0) == end(0, 0)  # hits
