"""Provides the workspace through which the blocks of a cooperative launch synchronise.

`cooperative_groups::this_grid()` reads the workspace's address from two registers that the driver sets for such a
launch (PTX: %envreg1, the high word, and %envreg2). The machine code reads them from constant bank 0. The offsets below
were read off the code that the CUDA 13 toolchain makes for each architecture. The workspace holds its size, then the
counter of the grid's barrier, which begins at 0 (`cooperative_groups/details/helpers.h`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.launch_data.parameter_window import bank_0_reads
from gemmsim.trace.types import Argument, Launch

WORKSPACE = "the grid's workspace"
_WORKSPACE_BYTES = 256
_NEW_LAYOUT_FROM = 0x380  # parameters that start here belong to sm_100 and later
_SM_90_FROM = 0x210
# From sm_100 on the code subtracts so many bytes from the offsets for each unit of SR_CgaSize, which is 1 here.
_BYTES_A_CLUSTER_SIZE = 0xA0


def _mentioned(program: Program) -> tuple[int, int]:
    """Return the offsets of %envreg1 and %envreg2 in bank 0, as the code mentions them."""
    if program.usual_parameter_base >= _NEW_LAYOUT_FROM:
        return 0x254, 0x258
    return (0x44, 0x48) if program.usual_parameter_base >= _SM_90_FROM else (0x8C, 0x90)


def uses_grid_workspace(program: Program) -> bool:
    """Whether the code reads the workspace's address, so that it needs a cooperative launch."""
    wanted = _mentioned(program)
    return bank_0_reads(program).issuperset(wanted)


def grid_workspace(program: Program) -> tuple[Argument, ...]:
    """Return the workspace as an argument that the kernel does not name; () where the code does not use one."""
    if not uses_grid_workspace(program):
        return ()
    words = np.zeros(_WORKSPACE_BYTES // 4, np.uint32)
    words[0] = _WORKSPACE_BYTES
    return (Argument("u32", words.shape, words, WORKSPACE),)


def place_workspace(bank: NDArray[np.uint32], program: Program, address: int) -> None:
    """Write the workspace's address into constant bank 0, uint32 words."""
    cluster = _BYTES_A_CLUSTER_SIZE if program.usual_parameter_base >= _NEW_LAYOUT_FROM else 0
    high, low = _mentioned(program)
    bank[(high - cluster) // 4], bank[(low - cluster) // 4] = address >> 32, address & 0xFFFFFFFF


def check_cooperative(program: Program, launch: Launch, fit: int, gpu: str) -> None:
    """Check that all blocks of a cooperative launch are resident at once, as CUDA does.

    fit  how many blocks of this launch the GPU named `gpu` holds at once

    Raises GemmsimError where there are more blocks (CUDA: cudaErrorCooperativeLaunchTooLarge).
    """
    if launch.blocks > fit and (launch.cooperative or uses_grid_workspace(program)):
        raise GemmsimError(
            f"a cooperative launch of kernel '{program.name}' needs all {launch.blocks} blocks on the GPU at once, "
            f"but {fit} fit on {gpu}: CUDA refuses it (cudaErrorCooperativeLaunchTooLarge); launch at most {fit}"
        )
