"""Register ports: loops whose rate one port sets, by hand and as an H200 takes them."""

from dataclasses import replace

import pytest

from gemmsim.gpu.spec import Pipe
from gemmsim.isa.program import Operand, OperandKind
from gemmsim.sm.code import Reason, issue_table
from gemmsim.sm.registers import NO_READS, RegisterPorts, register_reads

from .sm_builder import EXIT, HALVES, START, ins, issues, program, simulate

HOPPER = replace(HALVES, pipes=HALVES.pipes | {"uniform": Pipe(2, 6)})


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


def test_reused_operands_need_no_port_while_the_warp_stays_selected():
    first = reading("FFMA", "R1", "R3", "R5", reuse=0b111)
    again = reading("FFMA", "R1", "R3", "R5", reuse=0b111)
    table = issue_table(program(first, again, EXIT), HOPPER)
    assert (table[1].reads, table[1].reads_behind) == ((0, 3, 0), NO_READS)
    assert issues(program(*[first] * 10, EXIT), gpu=HOPPER).cycles(0)[-1] - START == 10


def test_another_slot_is_no_reuse():
    assert register_reads(reading("FFMA", "R3", "R1", "0"), "fma", reading("FFMA", "R1", "R3", "0", reuse=3)) == (
        0,
        2,
        0,
    )


def test_ports_book_each_bank_by_itself():
    ports = RegisterPorts()
    for _ in range(3):
        ports.read(10, (1, 0, 0), 3)
    assert (ports.next_free, ports.even_free, ports.odd_free) == (0, 13, 0)
    ports.read(10, (1, 1, 0), 3)
    assert (ports.next_free, ports.blocked_cycles) == (12, 1)


def test_switched_off_nothing_is_read():
    assert all(row.reads == NO_READS for row in issue_table(program(FFMA, WIDE, EXIT), HOPPER, register_ports=False))
