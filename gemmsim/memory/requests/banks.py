"""Banks of the data array that shared memory and L1 share: how many wavefronts a request takes.

There are 32 banks of 4 bytes. A wavefront reads or writes one word of each bank. The rules are:

1. Lanes are served in groups whose words would fill the banks once: the warp for accesses up to 32 bits, half-warps for
   64 bits, quarter-warps for 128 bits. A group takes as many wavefronts as the most distinct words that it asks of one
   bank. A word that several lanes share costs once, for loads and for stores. A group without an active lane costs
   nothing.
2. A wide load merges two groups into one wavefront where the crossbar can route it. It can if every lane has the
   address of lane^1 (or that lane is inactive), or if every lane has that of lane^2; and the merged lanes (the warp for
   64 bits, each half-warp for 128 bits) must ask no bank for two words. All groups merge, or none does. Stores never
   merge.
3. A copy to shared memory (LDGSTS) through L1 is read like a load, except that lanes which want the same word do not
   share it, and takes one wavefront more, and those that conflicts of its destinations add (see `copies`). A copy that
   bypasses L1 takes one wavefront, whatever it reads.
4. Global and local accesses follow rule 1 by the bank of their address. Loads that miss L1 follow it for each pass of
   the tag stage by itself (see `tags`).
5. The wavefronts of a request beyond its floor are conflicts. The floor is 1, 2 or 4 wavefronts by width. It is half of
   that for a wide load that could be routed as in rule 2 and does not merge only because its lanes collide.
6. A matrix load (LDSM) reads each 8 x 8 matrix of 16-bit elements like a quarter-warp of 128-bit accesses: eight rows
   of 16 bytes, which take one wavefront if they lie in different banks. Matrices never merge.
7. Lanes of an atomic operation that want the same word do not share it. Nsight Compute counts wavefronts of shared
   memory as if they did, but they take a cycle for each lane; compare and swap takes two (`held_longer`).

Sources: groups, merging and the routable set were measured with Nsight Compute on an RTX 5090
(cicuvc/nvidia-sass-document, notes/sm90/arch/shared_bank_conflicts.md, sections 2 to 4 and tests/bankconf/run.py, whose
pattern v4_share:1 shows that a 128-bit merge needs conflict-free half-warps only). They reproduce published counters of
a T4 and an A100: with NVRTC's code for SwayamInSync/SGEMM-Worklog kernel 5, whose A fragments merge although their
half-warps share banks, 176 wavefronts a warp and tile where an A100 counted 176.03. Rule 3: own microbenchmarks on an
H200 (l1tex__data_pipe_lsu_wavefronts; tests/records/h200_copies.json: copies that bypass L1 take 0.6 a request with
rows of 16 to 512 bytes, and in kernels of strangers 0.5 to 1.7; those through L1 add 1.7 to 2.1 wavefronts a request to
their reads in the async_pipelined kernel, of which the write is 1).
Rule 7: own microbenchmark on an H200, tests/records/h200_atomics.json.
Rule 4: an H200 counted 1,108,480,190 wavefronts for a naive 1024 GEMM, the rule gives 1,108,344,832; loads see `tags`;
of 222 patterns of stores 190 take the wavefronts of rule 1. tests/hand/memory/test_banks.py has these and the others.

Not modelled: arbitration between clients of the data array, which adds up to 0.1 % to loads and 6 to 25 % to stores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.access import Access
from gemmsim.support.warp import WARP_LANES

BANKS = 32
BANK_SHIFT = 2  # banks are 4 bytes wide


def floor_wavefronts(width_bytes: int, lanes: int = WARP_LANES) -> int:
    """Return the wavefronts of an access by `lanes` lanes without conflicts or merging.

    A warp takes 1 for accesses up to 32 bits, 2 for 64 bits and 4 for 128 bits. A matrix load is a 128-bit access of 8
    lanes a matrix.
    """
    return max(1, width_bytes * lanes // (BANKS << BANK_SHIFT))


def conflict_free(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int) -> NDArray[np.int64]:
    """Return the wavefronts that loads would take if no bank were asked for two words (rule 5): int64 [n].

    The arguments are those of `wavefronts`.
    """
    floor = floor_wavefronts(width_bytes)
    if floor == 1:
        return np.ones(len(offsets_bytes), np.int64)
    return np.where(_routable(offsets_bytes, active), floor // 2, floor)


def wavefronts(
    offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int, merges: bool
) -> NDArray[np.int64]:
    """Return the wavefronts of requests that all access `width_bytes` a lane: int64 [n].

    offsets_bytes  int64 [n, 32] each lane's address, not negative, counted from a base that is a multiple of 128
    active         bool [n, 32] which lanes are active
    merges         whether rule 2 applies, as it does to loads
    """
    words_a_lane = floor_wavefronts(width_bytes)
    words = (offsets_bytes >> BANK_SHIFT)[:, :, None] + np.arange(words_a_lane)
    wanted = np.repeat(active[:, :, None], words_a_lane, axis=2)
    total = _passes(words, wanted, words_a_lane).sum(axis=1)
    if merges and words_a_lane > 1:
        merged = _passes(words, wanted, words_a_lane // 2)
        free = _routable(offsets_bytes, active) & (merged.max(axis=1) <= 1)
        total = np.where(free, merged.sum(axis=1), total)
    return total


def copy_wavefronts(
    offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int, bypasses: bool
) -> NDArray[np.int64]:
    """Return the wavefronts that read what an LDGSTS copies (rule 3): int64 [n].

    bypasses  whether the copy bypasses L1; the other arguments are those of `wavefronts`
    """
    if not bypasses:
        return wavefronts_apart(offsets_bytes, active, width_bytes)
    return (active.sum(axis=1) > 0).astype(np.int64)


def wavefronts_apart(
    offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], width_bytes: int
) -> NDArray[np.int64]:
    """Return the wavefronts of requests whose lanes do not share words (rules 3 and 7): int64 [n].

    The arguments are those of `wavefronts`.
    """
    words_a_lane = floor_wavefronts(width_bytes)
    words = (offsets_bytes >> BANK_SHIFT)[:, :, None] + np.arange(words_a_lane)
    own = words % BANKS + BANKS * np.arange(WARP_LANES)[:, None]  # in each bank, every lane has a word of its own
    wanted = np.repeat(active[:, :, None], words_a_lane, axis=2)
    return _passes(own, wanted, words_a_lane).sum(axis=1)


def held_longer(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], access: Access) -> NDArray[np.int64]:
    """Return for how many cycles atomic operations on shared memory take the data stage beyond the wavefronts that are
    counted (rule 7): int64 [n].

    offsets_bytes, active  as of `wavefronts`
    """
    counted = wavefronts(offsets_bytes, active, access.width_bytes, merges=False)
    apart = wavefronts_apart(offsets_bytes, active, access.width_bytes)
    return apart * (2 if access.arithmetic == "cas" else 1) - counted


def _passes(words: NDArray[np.int64], wanted: NDArray[np.bool_], groups: int) -> NDArray[np.int64]:
    """Return how many distinct words each group of neighbouring lanes asks of the bank that it asks for the most:
    int64 [n, groups].

    words   int64 [n, 32, words a lane] number of each word, counted from the base
    wanted  bool [n, 32, words a lane] whether it is asked for
    """
    n = len(words)
    rows = np.sort(np.where(wanted, words, -1).reshape(n * groups, -1), axis=1)
    distinct = rows >= 0
    distinct[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    row, column = np.nonzero(distinct)
    bank = rows[row, column] % BANKS
    return np.bincount(row * BANKS + bank, minlength=n * groups * BANKS).reshape(n, groups, BANKS).max(axis=2)


def _routable(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether the crossbar could merge groups of each request (rule 2): bool [n]."""
    lane = np.arange(WARP_LANES)
    by_step = [
        (~active | ~active[:, lane ^ step] | (offsets_bytes == offsets_bytes[:, lane ^ step])).all(axis=1)
        for step in (1, 2)
    ]
    return by_step[0] | by_step[1]
