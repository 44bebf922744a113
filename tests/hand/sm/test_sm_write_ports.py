"""Write ports by hand: an instruction that issues in cycle t writes in cycle t + 4."""

import pytest
from sm_builder import GPU, Operand, OperandKind, idle_sm, ins, row

from gemmsim.sm.operands import NO_WRITES, Writes, results_of, returns_of
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.write_ports import expect_return, write_results

NONE, EVEN, ODD, PAIR = NO_WRITES, Writes(1, 0, 0), Writes(0, 1, 0), Writes(0, 0, 1)
FILE = GPU.register_file
MOST_WAIT, HOLD, SLACK = FILE.load_write_most_wait_cycles, FILE.load_write_hold_cycles, FILE.load_write_slack_cycles


class Ports:
    """The write ports of a sub-partition."""

    def __init__(self) -> None:
        self._state = idle_sm()
        self._spec, self._ports = self._state.sm.spec, self._state.sm.sub_partitions[0].write_ports

    def expect(self, used: int, returns: Writes, wavefronts: int = 4) -> None:
        fields = {"even_returns": returns.even, "odd_returns": returns.odd, "pair_returns": returns.pairs}
        load = row(Instruction, shared_load=1, **fields)
        expect_return(self._spec, self._ports, load, wavefronts, used)

    def pending(self) -> int:
        return int(self._ports.count)

    def waited(self) -> int:
        return int(self._ports.waited)

    def write(self, now: int, results: Writes) -> int:
        done = row(Instruction, even_results=results.even, odd_results=results.odd, pair_results=results.pairs)
        return write_results(self._spec, self._ports, done, now)


def held(ports: Ports, cycles: range, results: Writes) -> list[int]:
    """Cycles in which an instruction holds up those behind it, if one issues in each."""
    return [now for now in cycles if ports.write(now, results)]


@pytest.mark.parametrize(
    ("returns", "results", "waits"),
    [(EVEN, EVEN, True), (ODD, EVEN, False), (PAIR, EVEN, True), (Writes(1, 1, 0), ODD, True), (EVEN, NONE, False)],
)
def test_what_has_waited_too_long_holds_the_issue(returns: Writes, results: Writes, waits: bool) -> None:
    """Ready in cycle 10; results are written in each cycle from 5 on. In cycle 10 + 24 the wait is over: that is what
    the instruction of cycle 30 writes in."""
    ports = Ports()
    ports.expect(13, returns)
    first = 10 + MOST_WAIT - 4
    assert held(ports, range(1, first), results) == []
    assert held(ports, range(first, first + 1), results) == ([first] if waits else [])


def test_a_cycle_without_an_issue_is_free_for_both_banks() -> None:
    ports = Ports()
    ports.expect(13, PAIR)
    held(ports, range(1, 12), EVEN)  # up to cycle 15
    assert ports.write(13, EVEN) == 0  # nothing is written in 16: the pair is
    assert held(ports, range(14, 60), EVEN) == []


@pytest.mark.parametrize(("returns", "cycles"), [(Writes(3, 0, 0), 3), (Writes(0, 3, 0), 3), (Writes(2, 1, 1), 3)])
def test_what_a_load_writes_in_cycles_without_an_issue(returns: Writes, cycles: int) -> None:
    """A register a bank and cycle, pairs before others. With a free cycle less the last one is left."""
    for free, left in ((cycles, False), (cycles - 1, True)):
        ports = Ports()
        ports.expect(13, returns)
        held(ports, range(1, 12), PAIR)  # up to cycle 15
        ports.write(12 + free, PAIR)  # nothing is written in the `free` cycles from 16 on
        assert held(ports, range(13 + free, 32), PAIR) == ([30, 31] if left else [])


def test_two_pairs_need_two_cycles() -> None:
    ports = Ports()
    ports.expect(13, Writes(0, 0, 2))
    held(ports, range(1, 12), EVEN)
    ports.write(13, EVEN)  # one of them in cycle 16
    assert held(ports, range(14, 31), EVEN) == [30]
    assert ports.write(30 + 1 + HOLD, EVEN) == 0  # and the other in cycle 35


@pytest.mark.parametrize(("wavefronts", "waited"), [(2, 19 - 12 - SLACK), (4, 0)])
def test_what_a_load_of_shared_words_waits_for_its_registers_is_noted(wavefronts: int, waited: int) -> None:
    """Ready in cycle 10, both pairs would be written by cycle 12. Results to one bank are written in each cycle up to
    16: the pairs are in 17 and 18. With four wavefronts, others do not wait behind them."""
    ports = Ports()
    ports.expect(13, Writes(0, 0, 2), wavefronts)
    held(ports, range(1, 13), EVEN)
    assert ports.waited() == 0
    ports.write(15, EVEN)
    assert ports.waited() == waited


def test_a_load_that_waits_for_another_ones_registers_waits_no_longer_for_that() -> None:
    """Both are ready in cycle 10. The first is written in 17 and 18, as above, and the second right behind it."""
    ports = Ports()
    for _ in range(2):
        ports.expect(13, Writes(0, 0, 2), wavefronts=2)
    held(ports, range(1, 13), EVEN)
    ports.write(20, EVEN)
    assert (ports.waited(), ports.pending()) == (19 - 12 - SLACK, 0)


def test_what_is_ready_first_is_written_first() -> None:
    """A load that waits for L2 issued before one from shared memory, which is written by cycle 16 all the same."""
    ports = Ports()
    ports.expect(1000, PAIR)
    ports.expect(13, PAIR)
    held(ports, range(1, 12), EVEN)
    ports.write(13, EVEN)
    assert ports.pending() == 1


def test_what_instructions_write() -> None:
    def of(mnemonic: str, register: int, port: str = "fma") -> Writes:
        return results_of(ins(mnemonic, operands=(Operand(OperandKind.REGISTER, index=register),)), port)

    assert (of("FFMA", 4), of("FFMA", 5), of("FFMA", -1)) == (EVEN, ODD, NONE)
    assert of("IMAD.WIDE", 4, "fmaheavy") == of("DFMA", 4, "fp64") == of("CS2R", 4, "alu") == PAIR
    assert of("CS2R.32", 4, "alu") == EVEN
    assert of("HMMA", 4, "tensor") == of("LDS", 4, "lsu") == NONE
    assert results_of(ins("ISETP", operands=(Operand(OperandKind.PREDICATE, index=0),)), "alu") == NONE


@pytest.mark.parametrize(
    ("mnemonic", "register", "returns"),
    [
        ("LDS", 4, EVEN), ("LDG.E", 5, ODD), ("LDS.64", 4, PAIR), ("LDG.E.128", 4, Writes(0, 0, 2)),
        ("LDSM.16.M88", 5, ODD), ("LDSM.16.M88.2", 4, Writes(1, 1, 0)), ("LDSM.16.M88.4", 4, Writes(2, 2, 0)),
        ("STS", 4, NONE), ("LDGSTS.E.128", 4, NONE), ("FFMA", 4, NONE), ("LDS", -1, NONE),
    ],
)  # fmt: skip
def test_what_loads_return(mnemonic: str, register: int, returns: Writes) -> None:
    assert returns_of(ins(mnemonic, operands=(Operand(OperandKind.REGISTER, index=register),))) == returns
