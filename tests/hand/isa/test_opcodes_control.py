"""Threads of a warp that part, wait for one another, and meet."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import run

from gemmsim.trace.stopped import Stopped

LANES = np.arange(32)


def parted(*on_the_way: str) -> list[str]:
    """Lanes from 2 on go to the convergence barrier at once, lanes 0 and 1 through `on_the_way` first."""
    met = 16 * (4 + len(on_the_way))
    return [
        f"BSSY B0, `({met:#x})",
        "ISETP.GT.AND P0, PT, R1, 0x1, PT",
        f"@P0 BRA `({met:#x})",
        *on_the_way,
        "MOV R2, 0x7",
        "BSYNC B0",
        "VOTE.ANY R3, PT, PT",
    ]


def test_threads_at_warpsync_go_on_where_the_others_are_at_a_convergence_barrier() -> None:
    """cuda.reduce of numba does this: `if tid < 2: ...; cuda.syncwarp()`."""
    after = run(parted("WARPSYNC.ALL"), R1=LANES)
    assert after["R2"].tolist() == [7] * 2 + [0] * 30
    assert (after["R3"] == 0xFFFFFFFF).all()  # all lanes have met behind it


def test_threads_at_warpsync_wait_for_those_at_a_block_barrier() -> None:
    parts = "ISETP.GT.AND P0, PT, R1, 0x1, PT", "@P0 BRA `(0x40)"
    with pytest.raises(Stopped, match=r"forever .*'(WARPSYNC.ALL|BAR.SYNC 0x0)'"):
        run([*parts, "WARPSYNC.ALL", "MOV R2, 0x7", "BAR.SYNC 0x0"], R1=LANES)
