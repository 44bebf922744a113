"""wgmma by hand: a test GPU whose data stage delivers 128 bytes a cycle and whose tensor pipe takes two columns.

A multiplication of 64 columns reads A in 16 cycles and B in 16, begins 10 + 16 cycles after its issue, and multiplies
for 32. A warp that waits goes on 3 cycles later.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from sm_builder import EXIT, GPU, START, ins, issues, pipe, program, simulate

from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.parse import parse_operand
from gemmsim.isa.program import Instruction
from gemmsim.sm.streams import RecordCycles
from gemmsim.sm.units.instruction import Reason
from gemmsim.support.errors import GemmsimError

TENSOR = replace(GPU, pipes=GPU.pipes | {"tensor": pipe("tensor", 4, 20)})
NO_LEAST = replace(TENSOR, warpgroup=replace(TENSOR.warpgroup, least_cycles=0.0))


def multiply(columns: int, ends: bool = True, a: str = "", stall: int = 1) -> Instruction:
    text = f"R24, {a}gdesc[UR4], R24{', gsb0' if ends else ''}"
    return ins(f"HGMMA.64x{columns}x16.F32", stall, operands=tuple(map(parse_operand, text.split(", "))))


def wait(most: int) -> Instruction:
    return ins("WARPGROUP.DEPBAR.LE", operands=(parse_operand("gsb0"), parse_operand(f"{most:#x}")))


def cycles(*code: Instruction, warps: int = 4, gpu: GpuSpec = TENSOR) -> list[int]:
    """The cycles after the first issue at which warp 0 issues the others."""
    return [cycle - START for cycle in issues(program(*code, EXIT, arch="sm_90a"), warps=warps, gpu=gpu).cycles(0)][1:]


def test_a_warp_goes_on_and_waits_for_the_end_of_the_group() -> None:
    begin = 10 + 16
    assert cycles(multiply(64), ins("IADD3"), wait(0)) == [1, begin + 32 + 3, begin + 32 + 4]


def test_a_from_registers_is_not_read_from_shared_memory() -> None:
    assert cycles(multiply(64, a="R4, "), wait(0))[0] == 10 + 32 + 3


def test_the_tensor_pipe_bounds_wide_multiplications() -> None:
    # reads take 16 + 32 of 64 cycles
    assert cycles(multiply(128, ends=False), multiply(128), wait(0))[1] == 26 + 2 * 64 + 3


def test_reading_the_operands_bounds_narrow_ones() -> None:
    # 16 columns: 8 cycles of the tensor pipe, 16 + 4 of reading: the second is read from cycle 20 on
    assert cycles(multiply(16, ends=False), multiply(16), wait(0), gpu=NO_LEAST)[1] == 20 + 26 + 8 + 3


def test_few_columns_take_the_least_time() -> None:
    # 8 columns from registers: 4 cycles of the tensor pipe, which begins the next after 5
    assert cycles(multiply(8, False, "R4, "), multiply(8, True, "R4, "), wait(0))[1] == 10 + 2 * 5 + 3


def test_at_most_so_many_groups_stay_under_way() -> None:
    first, second = 26 + 32 + 3, 26 + 64 + 3
    assert cycles(multiply(64), multiply(64), wait(1), wait(0)) == [1, first, second, second + 1]


def test_a_group_is_all_since_the_one_before() -> None:
    # the second group has two multiplications
    code = (multiply(64), multiply(64, ends=False), multiply(64), wait(1), wait(0))
    assert cycles(*code)[2:4] == [26 + 32 + 3, 26 + 96 + 3]


def test_an_empty_multiplication_ends_a_group_and_takes_nothing() -> None:
    close = ins("HGMMA.64x8x16.F16", 1, operands=tuple(map(parse_operand, ("RZ", "gdesc[URZ]", "RZ", "!UPT", "gsb0"))))
    assert cycles(multiply(64, ends=False), close, wait(0))[1] == 26 + 32 + 3


def test_the_queue_holds_two_that_have_not_begun() -> None:
    # They begin at 26, 58, 90. The third waits until the first begins, the fourth until the second does.
    assert cycles(*[multiply(64)] * 4)[:3] == [1, 26, 58]


def test_warpgroups_take_turns_at_the_tensor_pipe() -> None:
    one, two = (simulate(program(multiply(64), wait(0), EXIT, arch="sm_90a"), n, gpu=TENSOR).cycles for n in (4, 8))
    assert two == one + 32


def test_a_wait_is_a_stall_of_its_own_and_the_pipe_is_busy_as_long_as_it_multiplies() -> None:
    totals = simulate(program(multiply(64), wait(0), EXIT, arch="sm_90a"), 4, gpu=TENSOR)
    assert totals.stall_cycles[:, Reason["GMMA"]].tolist() == [0, 4 * (26 + 32 + 3 - 1), 0]
    assert totals.busy_cycles["tensor"] == 32
    assert totals.busy_cycles["lsu"] == 16 + 16  # of the data stage


def test_hmma_waits_until_the_tensor_pipe_is_free() -> None:
    assert cycles(multiply(64), ins("HMMA.16816.F32"))[0] == 26 + 32


def test_shared_accesses_wait_behind_operands() -> None:
    # A wavefront that would pass at once waits where the four warps' quarters of the operands pass.
    load = [ins("LDS", write=0), ins("IADD3", wait=1)]
    alone, behind = cycles(*load)[0], cycles(multiply(64), *load)[1]
    assert behind > alone + 20


def test_warps_of_a_warpgroup_wait_for_the_last_of_them_as_at_a_barrier_and_no_others() -> None:
    """Warps 4 to 7 come 30 cycles later. Each warpgroup has a barrier of its own; BAR holds all eight."""
    gpu = replace(TENSOR, barrier=replace(TENSOR.barrier, arrival_cycles=0.0))
    met, barred = (
        program(ins("FFMA", 30), meet, ins("ULDC", 1), EXIT) for meet in (ins("WARPGROUP.WAIT"), ins("BAR.SYNC"))
    )
    alone = issues(program(ins("WARPGROUP.WAIT"), ins("ULDC", 1), EXIT), warps=4, gpu=gpu)
    streams = [*[[1, 2, 3]] * 4, *[[0, 1, 2, 3]] * 4]
    first, last = (issues(code, streams=streams, gpu=gpu) for code in (met, barred))
    gap = alone.cycles(0)[1] - alone.cycles(0)[0]  # a barrier of four warps that come at once
    assert first.cycles(0)[1] - first.cycles(0)[0] in (gap, gap + 1)  # the second's FFMA issue meanwhile
    assert first.cycles(4)[2] - first.cycles(4)[1] == gap == 1  # no longer than an arrival takes
    assert last.cycles(0)[1] >= last.cycles(4)[1] + gap
    # Four that come early, two of each warpgroup, do not open it.
    mixed = [streams[0], streams[0], streams[4], streams[4]] * 2
    assert min(issues(met, streams=mixed, gpu=gpu).cycles(w)[1] for w in (0, 1, 4, 5)) >= 30 + gap


def test_a_group_that_ends_with_a_scoreboard_is_refused() -> None:
    text = tuple(map(parse_operand, ("R24", "gdesc[UR4]", "R24", "gsb0")))
    with pytest.raises(GemmsimError, match="scoreboard"):
        issues(program(ins("HGMMA.64x64x16.F32", write=2, operands=text), EXIT, arch="sm_90a"), gpu=TENSOR)


@pytest.mark.parametrize(
    ("mnemonic", "spent"), [("LOP3", 3 * 4), ("IADD3", 3 * 4), ("IMAD", 3 * 2), ("FFMA", 3), ("UMOV", 3)]
)
def test_math_takes_twice_as_long_while_the_tensor_pipe_works(mnemonic: str, spent: int) -> None:
    """The ALU of interval 2 takes 4 cycles, IMAD of interval 1 two. The wait for the group before ends when the second
    multiplication has begun."""
    gpu = replace(TENSOR, warpgroup=replace(TENSOR.warpgroup, math_interval=2.0))
    beside = cycles(multiply(64), multiply(128), wait(1), *[ins(mnemonic)] * 4, gpu=gpu)[2:6]
    assert beside[3] - beside[0] == spent


def test_before_and_behind_the_multiplication_math_is_not_slower() -> None:
    """The tensor pipe works in cycles 26 to 58."""
    gpu = replace(TENSOR, warpgroup=replace(TENSOR.warpgroup, math_interval=2.0))
    code = (multiply(64), *[ins("LOP3")] * 30)
    issued = cycles(*code, gpu=gpu)[:30]
    assert [b - a for a, b in pairwise(issued)] == [2] * 13 + [4] * 8 + [2] * 8


def test_copies_past_l1_do_not_wait_for_operands_and_slow_what_multiplies_next() -> None:
    """Two copies of each of four warps bring 4096 bytes, 32 cycles of the banks here. So much later the second
    multiplication reads its operands, which would have waited 16 cycles for the tensor pipe anyway."""
    cost = RecordCycles(1, 4, 16, 0)
    first, second = multiply(128, ends=False), multiply(128)

    def end(copies: int) -> int:
        code = (first, *[ins("LDGSTS.E.BYPASS.128")] * copies, second, wait(0))
        seen = issues(
            program(*code, EXIT, arch="sm_90a"), warps=4, gpu=TENSOR, costs=dict.fromkeys(range(1, 1 + copies), cost)
        )
        return seen.cycles(0)[-1] - START

    # a copy issues every 4 cycles; the second multiplication of each warp is read behind the first one's 48 cycles
    assert end(0) == 26 + 2 * 64 + 3 + 1
    assert end(2) - end(0) == 8 * 4096 / 8 / 128 - 16  # the tensor pipe would wait 64 - 48 cycles anyway


@pytest.mark.parametrize(("mnemonic", "beside"), [("LDGSTS.E.BYPASS.128", 16), ("LDGSTS.E.128", 52)])
def test_only_copies_through_l1_wait_for_the_banks(mnemonic: str, beside: int) -> None:
    """The registers of two copies are free 16 cycles behind the second. Beside a multiplication whose operands take the
    banks until cycle 48, those of copies through L1 are 36 cycles later."""

    def free_after(*before: Instruction) -> int:
        code = (*before, *[ins(mnemonic, read=0)] * 2, ins("IADD3", wait=1), EXIT)
        costs = dict.fromkeys(range(len(before), len(before) + 2), RecordCycles(1, 4, 0, 0))
        seen = issues(program(*code, arch="sm_90a"), warps=4, gpu=TENSOR, costs=costs)
        return seen.cycles(0)[-2] - seen.cycles(0)[-3]

    assert (free_after(), free_after(multiply(128))) == (16, beside)
