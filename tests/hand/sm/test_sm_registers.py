"""Register ports: loops whose rate one port sets, by hand and as an H200 takes them."""

from dataclasses import replace
from itertools import pairwise

import pytest
from sm_builder import EXIT, HALVES, START, idle_sm, ins, issues, pipe, program, row, simulate

from gemmsim.isa.program import Operand, OperandKind
from gemmsim.sm.instructions import instruction_table
from gemmsim.sm.operands import bank_cycles
from gemmsim.sm.units.instruction import Instruction, Reason
from gemmsim.sm.units.register_ports import read_registers

HOPPER = replace(HALVES, pipes=HALVES.pipes | {"uniform": pipe("uniform", 2, 6), "fp64": pipe("fp64", 2, 8)})


def _op(text: str):
    """`R8` or `UR4`; anything else is an immediate."""
    for kind in (OperandKind.UNIFORM_REGISTER, OperandKind.REGISTER):
        if text.startswith(kind.value):
            return Operand(kind, int(text[len(kind.value) :]))
    return Operand(OperandKind.IMMEDIATE)


def reading(mnemonic: str, *sources: str, reuse: int = 0):
    instruction = ins(mnemonic, 1, operands=(Operand(OperandKind.REGISTER, 44), *map(_op, sources)))
    return replace(instruction, control=replace(instruction.control, reuse_mask=reuse))


FFMA = reading("FFMA", "R20", "R21", "R17")  # one even, two odd
IMAD = reading("IMAD", "R3", "R8", "0")
LOP3 = reading("LOP3", "R14", "0", "0")
LOP3_U = reading("LOP3", "R11", "UR20", "0")
UIADD3 = reading("UIADD3", "UR10", "UR12", "0")
WIDE = reading("IMAD.WIDE.U32", "R2", "R8", "R10")
WIDE_U = reading("IMAD.WIDE.U32", "R16", "UR18", "R10")
IADD3 = reading("IADD3", "R4", "R11", "0")

# Cycles that one iteration of a loop of these instructions takes a sub-partition, measured on an H200 with 8 warps a
# sub-partition and more (own microbenchmark, rounded to a cycle)
MEASURED = [
    ([FFMA], 2), ([IMAD], 2), ([LOP3], 2), ([UIADD3], 2), ([WIDE], 5), ([WIDE_U], 4),
    ([FFMA, LOP3], 2), ([FFMA, IMAD], 3), ([IMAD, LOP3], 2), ([FFMA, IMAD, LOP3], 3),
    ([WIDE, LOP3], 6), ([WIDE, UIADD3], 5), ([WIDE, FFMA], 6), ([WIDE, IMAD], 6), ([UIADD3, WIDE, LOP3], 6),
    ([WIDE_U, LOP3], 5), ([WIDE_U, LOP3_U], 4), ([WIDE_U, UIADD3], 4),
    ([reading("IMAD.WIDE", "R17", "0", "R14"), IADD3], 4),
    ([LOP3_U, UIADD3], 3), ([LOP3, UIADD3], 2), ([LOP3_U, reading("IMAD", "R0", "UR18", "0")], 2),
]  # fmt: skip


@pytest.mark.parametrize(("loop", "cycles"), MEASURED)
@pytest.mark.parametrize("warps", [4, 16])
def test_loops_take_the_measured_cycles(loop, cycles, warps):
    times = 60
    last = simulate(program(*loop * times, EXIT), warps, gpu=HOPPER).cycles
    assert (last - START) / (times * warps // 4) == pytest.approx(cycles, rel=0.05)


def test_a_window_of_three_cycles_hides_two_conflicts_and_the_next_one_stalls():
    ffma = reading("FFMA", "R1", "R3", "0")  # two cycles of the odd bank each
    seen = issues(program(*[ffma] * 5, EXIT), gpu=HOPPER).cycles(0)
    # reads end 2, 4, 6 ... cycles after the first issue: the window of the second (issued 1 later) ends at 4, so it
    # just fits; the third, issued at 2, ends at 6 instead of 5, and holds back the fourth by one cycle
    assert [cycle - START for cycle in seen] == [0, 1, 2, 4, 6, 8]
    totals = simulate(program(*[ffma] * 5, EXIT), gpu=HOPPER)
    assert totals.stall_cycles[:, Reason["DISPATCH_STALL"]].sum() == 3


def cycles_of_two(*loop, warps: int = 4) -> float:
    """Cycles of a sub-partition for one pass through the loop."""
    return (simulate(program(*loop * 60, EXIT), warps, gpu=HOPPER).cycles - START) / (60 * warps // 4)


def test_reused_operands_need_no_port():
    again = reading("FFMA", "R1", "R3", "R5", reuse=0b111)
    assert issues(program(*[again] * 10, EXIT), gpu=HOPPER).cycles(0)[-1] - START == 10


def test_another_slot_is_no_reuse():
    """R1 and R3 kept in slots 0 and 1, read in slots 1 and 0: two odd reads an instruction, each evicting the other."""
    there, back = reading("FFMA", "R1", "R3", "0", reuse=3), reading("FFMA", "R3", "R1", "0", reuse=3)
    assert cycles_of_two(there, back) == pytest.approx(4, rel=0.05)


def test_a_slot_keeps_one_operand_of_each_bank():
    """Slot 1 keeps R18 (even) while R9 (odd) passes through it: 3 even reads for two instructions, not 4 (measured)."""
    first = reading("FFMA", "R16", "R9", "R8")
    second = reading("FFMA", "R27", "R18", "R24", reuse=2)
    assert cycles_of_two(first, second) == pytest.approx(3, rel=0.05)


def test_another_register_of_its_bank_takes_its_place():
    """R18 and R10 in turn in slot 1, both even: neither is there when it is read again."""
    first = reading("FFMA", "R17", "R10", "R8", reuse=2)
    second = reading("FFMA", "R27", "R18", "R24", reuse=2)
    assert cycles_of_two(first, second) == pytest.approx(4, rel=0.05)


def test_another_warp_finds_nothing():
    """All warps read R1, R3 and R5: what one has kept, another takes the place of."""
    state = idle_sm()
    ports = state.sm.sub_partitions[0].read_ports
    again = row(Instruction, first=1, second=3, third=5, reuse_mask=0b111, window=3, uniform_window=1)
    for rank, free in ((-1, 3), (-1, 3), (-2, 6), (-1, 9)):
        read_registers(ports, again, rank, 1, 0)
        assert ports.odd_free == free


def test_a_register_in_two_slots_is_read_once():
    """FFMA of one register takes no more than the issue slot (measured: 1.1 cycles); of three odd ones, three."""
    assert cycles_of_two(reading("FFMA", "R5", "R5", "R5")) == pytest.approx(1, rel=0.05)
    assert cycles_of_two(reading("FFMA", "R5", "R7", "R5")) == pytest.approx(2, rel=0.05)
    assert cycles_of_two(reading("FFMA", "R5", "R7", "R9")) == pytest.approx(3, rel=0.05)


def test_fp64_reads_pairs():
    """Three pairs are three registers of each bank: 3 cycles (measured on an H200: 3.07); with two of them, or one that
    is reused, the pipe's 2 (2.05 and 2.24)."""
    assert cycles_of_two(reading("DFMA", "R4", "R8", "R12")) == pytest.approx(3, rel=0.05)
    assert cycles_of_two(reading("DFMA", "R4", "R4", "R12")) == pytest.approx(2, rel=0.05)
    assert cycles_of_two(reading("DFMA", "R4", "R8", "R12", reuse=1)) == pytest.approx(2, rel=0.05)
    # beside an FFMA that reads two odd registers: 3 + 2 reads of the odd bank
    assert cycles_of_two(reading("DFMA", "R4", "R8", "R12"), reading("FFMA", "R1", "R3", "R6")) == pytest.approx(
        5, rel=0.05
    )


def test_rows_of_uniform_registers():
    """UR4 and UR6 are in one row of four, UR9 and UR12 in two; LOP3 adds one of its own (measured: 2 and 3 cycles)."""
    lop3 = reading("LOP3", "R15", "UR22", "0")
    assert cycles_of_two(reading("UIADD3", "UR4", "UR6", "0"), lop3) == pytest.approx(2, rel=0.05)
    assert cycles_of_two(reading("UIADD3", "UR9", "UR12", "0"), lop3) == pytest.approx(3, rel=0.05)


def test_three_rows_hold_the_uniform_datapath():
    """UIMAD of three rows, then USEL: 3 + 2 cycles (measured: 5)."""
    assert cycles_of_two(reading("UIMAD", "UR4", "UR15", "UR8"), reading("USEL", "UR27", "0", "0")) == pytest.approx(
        5, rel=0.05
    )


def test_the_stall_count_of_a_wide_multiply_begins_at_its_second_pass():
    """One warp, IMAD.WIDE with 1 and SHF with 2: 1 + 2 + 2 cycles a pass (measured: 5)."""
    wide, shift = reading("IMAD.WIDE.U32", "R16", "UR18", "R10"), reading("SHF", "0", "0", "R11")
    shift = replace(shift, control=replace(shift.control, stall_cycles=2))
    seen = issues(program(*[wide, shift] * 4, EXIT), gpu=HOPPER).cycles(0)
    assert [b - a for a, b in pairwise(seen)] == [3, 2] * 4


def test_ports_book_each_bank_by_itself():
    state = idle_sm()
    ports = state.sm.sub_partitions[0].read_ports
    one = row(Instruction, first=2, second=-1, third=-1, window=3, uniform_window=1)
    two = row(Instruction, first=2, second=3, third=-1, window=3, uniform_window=1)
    for _ in range(3):
        read_registers(ports, one, -1, 1, 10)
    assert (ports.next_free, ports.even_free, ports.odd_free) == (0, 13, 0)
    read_registers(ports, two, -1, 1, 10)
    assert (ports.next_free, ports.blocked_cycles) == (12, 1)


def test_switched_off_nothing_is_read():
    rows = instruction_table(program(FFMA, WIDE, EXIT), HOPPER, False).rows
    written = sum(rows[name] for name in ("even_results", "odd_results", "pair_results", "reads_registers"))
    assert written.tolist() == [0, 0, 0]
    assert (rows["first"] < 0).all()


@pytest.mark.parametrize(
    ("mnemonic", "cycles"),
    [("HMMA.16816.F32", 6), ("HMMA.1688.F32", 4), ("HMMA.16816.F16", 5), ("HMMA.1688.F32.TF32", 6),
     ("HMMA.1684.F32.TF32", 4), ("IMMA.16832.S8.S8", 6), ("IMMA.16816.S8.S8", 4), ("DMMA.884", 0),
     ("HMMA.SP.16832.F32", 0), ("FFMA", 0)],
)  # fmt: skip
def test_matrix_instructions_read_pairs_of_a_and_c_and_registers_of_b(mnemonic, cycles):
    """A of HMMA.16816.F32 has four registers, B two and C four: 2 + 2 + 2 cycles. None reads longer than it takes."""
    assert bank_cycles(ins(mnemonic), 8.0) == cycles
    assert bank_cycles(ins(mnemonic), 3.5) == min(cycles, 3)


@pytest.mark.parametrize(("interval", "issued"), [(8, [0, 1, 5, 6]), (4, [0, 1, 3, 4])])
def test_what_follows_a_matrix_instruction_reads_behind_it(interval, issued):
    """The banks are taken until cycle 6, so an FADD of cycle 1 has read in cycle 7, three cycles beyond its window.
    Where the tensor pipe takes the next one after four cycles, the banks are taken for four."""
    gpu = replace(HOPPER, pipes=HOPPER.pipes | {"tensor": pipe("tensor", interval, 20)})
    code = (ins("HMMA.16816.F32", 1), *[reading("FADD", "R4", "0")] * 2, reading("FADD", "0", "0"), EXIT)
    assert [cycle - START for cycle in issues(program(*code), gpu=gpu).cycles(0)][:4] == issued
