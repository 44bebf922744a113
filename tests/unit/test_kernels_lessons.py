"""What each rung is there to show, shown by its counters and its code."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

import pytest

from gemmsim.api import Counted, count
from gemmsim.cli.requests import Options, ladder_request

pytest.importorskip("numba_cuda")


@lru_cache(maxsize=32)
def counted(name: str, *tunables: str, size: int = 64) -> Counted:
    """The rung at M = N = K = size on an A100."""
    return count(
        ladder_request(
            Options(
                target=None, kernel=name, entry=None, size=size, m=None, n=None, k=None, gpu="a100", gpu_sets=(),
                kernel_sets=tunables, alpha=1.0, beta=0.0, grid=None, block=None, shared=0, args=(), verify=None,
                full=False, max_instructions=None, seed=0, no_cache=False,
            )
        )
    )  # fmt: skip


def wavefronts_per_request(name: str, *tunables: str) -> dict[str, set[float]]:
    """{"LDS.128": {2.0}, ...}: of each shared memory instruction."""
    run, found = counted(name, *tunables), defaultdict(set)
    for row in run.traffic.instructions:
        if row.space == "shared":
            found[run.program.instructions[row.index].mnemonic].add(row.wavefronts / row.requests)
    return dict(found)


def conflicts(name: str, *tunables: str) -> float:
    return sum(row.conflicts for row in counted(name, *tunables).traffic.instructions if row.space == "shared")


def sectors_per_request(name: str, line: str) -> set[float]:
    """Of the global loads and stores in source lines that contain `line`."""
    run = counted(name)
    found = set()
    for row in run.traffic.instructions:
        source = run.program.instructions[row.index].sources[0]
        if row.space == "global" and line in run.program.source[source.file].splitlines()[source.line - 1]:
            found.add(row.sectors / row.requests)
    return found


def test_transposed_tile_conflicts_32_ways() -> None:
    """32 lanes, 32 rows of 128 bytes: every word of a column lies in the same bank. tile_a is still a broadcast."""
    shared = wavefronts_per_request("tiled_transposed")
    assert shared["STS"] == {1.0, 32.0}
    assert 32.0 in shared["LDS.128"]


@pytest.mark.parametrize(("name", "tile"), [("tiled_padded", 32), ("tiled_swizzled", 16), ("tiled_swizzled", 32)])
def test_padding_and_swizzle_cure_it(name: str, tile: int) -> None:
    assert conflicts(name, f"tile={tile}") == 0
    assert wavefronts_per_request(name, f"tile={tile}")["STS"] == {1.0}


def test_padding_costs_memory_and_the_swizzle_does_not() -> None:
    """2 x 32 x 32 words, and 32 words of padding."""
    shared = {name: counted(name).program.static_shared_bytes for name in ("tiled_padded", "tiled_swizzled")}
    assert shared == {"tiled_padded": (2 * 32 * 32 + 32) * 4, "tiled_swizzled": 2 * 32 * 32 * 4}


def test_rows_of_a_transposed_b_take_a_sector_a_lane() -> None:
    """A is one address that all lanes share, B 32 rows; the same line holds both loads."""
    assert sectors_per_request("coalesced", "acc +=") == {1.0, 4.0}
    assert sectors_per_request("uncoalesced_bt", "acc +=") == {1.0, 32.0}
