"""What the data stage waits for loads of shared words that could not be written into registers, by hand."""

from dataclasses import replace

import pytest
from sm_builder import EXIT, GPU, Operand, OperandKind, RecordCycles, idle_sm, ins, program, row, simulate

from gemmsim.sm.units.data_stage import behind_returns
from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.instruction import Instruction

MOST = GPU.register_file.load_write_spare_wavefronts


@pytest.mark.parametrize(
    ("owed", "wavefronts", "pairs", "free", "waits", "left"),
    [
        (3.0, 4, 2, 11.0, 3.0, 0.0),  # four wavefronts return four registers: all is waited for
        (3.0, 4, 2, 10.0, 0.0, 0.0),  # the stage is idle: nothing waits
        (3.0, 8, 2, 11.0, 0.0, -1.0),  # of eight, four return none of their own
        (5.0, 8, 2, 11.0, 1.0, 0.0),
        (0.0, 32, 0, 11.0, 0.0, -MOST),  # a store with conflicts
        (3.0, 2, 2, 11.0, 3.0, 0.0),  # one of shared words makes up for nothing
    ],
)
def test_a_request_that_arrives_in_cycle_10(
    owed: float, wavefronts: int, pairs: int, free: float, waits: float, left: float
) -> None:
    state = idle_sm()
    spec, memory = state.sm.spec, state.sm.memory
    memory.owed, memory.data.next_free = owed, free
    load, cost = row(Instruction, pair_returns=pairs), row(AccessCost, wavefronts=wavefronts)
    assert behind_returns(spec, memory, load, cost, 10.0) == waits
    assert memory.owed == left


def test_a_stage_that_was_idle_meanwhile_owes_nothing() -> None:
    """What a load returns waits for FFMAs that write to one bank, long after the stage has served it. The loads behind
    these take as long as if that cost nothing."""

    def cycles(blocking: float) -> int:
        gpu = replace(GPU, register_file=replace(GPU.register_file, load_write_blocking=blocking))
        load = {"write": 0, "operands": (Operand(OperandKind.REGISTER, index=8),)}
        product = ins("FFMA", 1, operands=(Operand(OperandKind.REGISTER, index=4),))
        loads = (ins("LDS.128", 1, **load), ins("LDS.128", 1, **load))
        code = program(ins("LDS.128", 1, **load), *[product] * 80, *loads, ins("FFMA", 1, wait=1), EXIT)
        return int(simulate(code, cost=RecordCycles(2, 0, 0, 0), gpu=gpu).cycles)

    assert cycles(30.0) == cycles(0.0)
