"""Works out which wavefront of a request serves which lane, for drawings and messages.

How many wavefronts a group of lanes takes is what `banks` says. A load from global memory is drawn as one that hits L1
(where it misses, see `tags`). Which of the wavefronts serves a word is a convention: in each bank the distinct words of
the group are served by ascending address. The hardware's order is not known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.banks import BANK_SHIFT, BANKS, floor_wavefronts, wavefronts

NOT_SERVED = -1


def lane_banks(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the first bank that each lane touches: int64 [n, 32], -1 in inactive lanes.

    The arguments are those of `lane_wavefronts`.
    """
    return np.where(active, (offsets_bytes >> BANK_SHIFT) % BANKS, NOT_SERVED)


def lane_wavefronts(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], access: Access) -> NDArray[np.int64]:
    """Return the wavefront, from 0, that serves each lane: int64 [n, 32], -1 in inactive lanes.

    offsets_bytes  int64 [n, 32] each lane's address, aligned to the access's width, counted from a base that is a
                   multiple of 128
    active         bool [n, 32] which lanes are active

    A lane's words lie in neighbouring banks, so that one wavefront serves them all. A copy that bypasses L1 takes the
    data stage for its tags only, so no wavefront serves a lane of it, and all are -1.
    """
    served = np.full(offsets_bytes.shape, NOT_SERVED, np.int64)
    if access.bypasses:
        return served
    words_a_lane = floor_wavefronts(access.width_bytes)
    groups = np.full(len(offsets_bytes), words_a_lane)
    if access.merges and words_a_lane > 1:
        apart = wavefronts(offsets_bytes, active, access.width_bytes, merges=False)
        merged = wavefronts(offsets_bytes, active, access.width_bytes, merges=True) != apart
        groups = np.where(merged, words_a_lane // 2, words_a_lane)
    pieces = (offsets_bytes >> BANK_SHIFT) // words_a_lane  # as wide as one lane's access
    for row in range(len(served)):
        served[row] = _ranks(
            pieces[row].tolist(), active[row].tolist(), int(groups[row]), BANKS // words_a_lane, not access.copies
        )
    return served


def _ranks(pieces: list[int], active: list[Any], groups: int, places: int, shared: bool) -> list[int]:
    """Return the wavefront that serves each lane of one request, -1 in inactive lanes.

    pieces  number of the piece of memory, as wide as one lane's access, that each lane wants
    active  which lanes are active
    groups  in how many groups of neighbouring lanes, one after another, the request is served
    places  how many pieces the banks hold side by side
    shared  whether lanes that want the same piece share it
    """
    served, before, size = [NOT_SERVED] * len(pieces), 0, len(pieces) // groups
    for first in range(0, len(pieces), size):
        lanes = [lane for lane in range(first, first + size) if active[lane]]
        wanted = sorted({(pieces[lane], 0 if shared else lane) for lane in lanes})
        depth = [0] * places
        turn = {}
        for piece in wanted:
            turn[piece] = depth[piece[0] % places]
            depth[piece[0] % places] += 1
        for lane in lanes:
            served[lane] = before + turn[pieces[lane], 0 if shared else lane]
        before += max(depth)
    return served
