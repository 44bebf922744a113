"""What the data stage waits for loads of shared words that could not be written into registers, by hand."""

import pytest
from sm_builder import GPU, idle_sm, row

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
