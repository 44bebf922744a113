"""Makes the registers with which every block of a launch begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.launch_data.clusters import Clusters
from gemmsim.trace.launch_data.constant_banks import ConstantBanks
from gemmsim.trace.launch_data.special_registers import special_registers
from gemmsim.trace.lower import MicroProgram
from gemmsim.trace.types import Launch

_ALL = 0xFFFFFFFF
_AXES = ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z")
_RANK = "SR_CgaCtaId"


def initial_registers(
    program: Program, launch: Launch, lowered: MicroProgram, banks: ConstantBanks, shared_bytes: int
) -> NDArray[np.uint32]:
    """Return the rows of each warp of a block, uint32 [warps, words]; those that say which block it is are zero.

    shared_bytes  shared memory of a block, with what the system reserves

    Raises GemmsimError for a special register that gemmsim does not provide.
    """
    rows = np.zeros((launch.warps_per_block, lowered.rows, WARP_LANES), np.uint32)
    rows[:, lowered.ones] = _ALL
    for row, word in lowered.literals:
        rows[:, row] = word
    for constant in lowered.constants:
        rows[:, constant.row] = banks.word(constant.bank, constant.offset_bytes)
    known = special_registers(program, launch, shared_bytes)
    for name, row in lowered.specials.items():
        if name in known:
            rows[:, row] = known[name]
        elif name not in (*_AXES, _RANK):
            raise GemmsimError(f"kernel '{program.name}' reads {name}, which gemmsim does not provide")
    return rows.reshape(launch.warps_per_block, -1)


def block_registers(lowered: MicroProgram, launch: Launch, clusters: Clusters, block: int) -> dict[int, int]:
    """Return {row: the word that fills it} of the rows that say which block it is that has the linear id `block`."""
    gx, gy, _ = launch.grid
    words = dict(zip(_AXES, (block % gx, block // gx % gy, block // (gx * gy)), strict=True))
    if _RANK in lowered.specials:
        words[_RANK] = clusters.rank(block)
    return {lowered.specials[name]: word for name, word in words.items() if name in lowered.specials}
