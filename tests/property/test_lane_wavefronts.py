"""Which wavefront serves which lane: never two words of one bank in one, and as many as the model counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmsim.memory.requests.access import Access
from gemmsim.memory.requests.banks import copy_wavefronts, wavefronts
from gemmsim.memory.requests.lane_wavefronts import lane_banks, lane_wavefronts

WIDTHS = (1, 2, 4, 8, 16)
LANES = np.arange(32)


@st.composite
def requests(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Offsets [1, 32] aligned to the width, from a few words so that lanes collide and share; active [1, 32]."""
    width = draw(st.sampled_from(WIDTHS))
    kind = draw(st.sampled_from(("any", "strided", "pairs")))
    if kind == "strided":
        pieces = LANES * draw(st.integers(0, 40))
    else:
        some = draw(st.lists(st.integers(0, draw(st.sampled_from((3, 40, 400)))), min_size=32, max_size=32))
        pieces = np.array(some)
        if kind == "pairs":  # what wide loads merge
            pieces = pieces[LANES & ~draw(st.sampled_from((1, 2, 3)))]
    active = np.array(draw(st.lists(st.booleans(), min_size=32, max_size=32)))
    active[draw(st.integers(0, 31))] = True
    return (pieces * width)[None].astype(np.int64), active[None], width


def words_of(offset: int, width: int) -> set[int]:
    return {(offset + byte) // 4 for byte in range(width)}


@settings(max_examples=200, deadline=None)
@given(requests(), st.sampled_from(("ld", "st")))
def test_wavefronts_are_those_counted_and_serve_a_bank_one_word(
    request: tuple[np.ndarray, np.ndarray, int], op: str
) -> None:
    offsets, active, width = request
    served = lane_wavefronts(offsets, active, Access("shared", op, width))[0]
    assert (served[~active[0]] == -1).all()
    used = set(served[active[0]].tolist())
    assert used == set(range(int(wavefronts(offsets, active, width, merges=op == "ld")[0])))
    for wave in used:
        words = set().union(*(words_of(int(offsets[0, lane]), width) for lane in LANES if served[lane] == wave))
        assert len({word % 32 for word in words}) == len(words)


@settings(max_examples=100, deadline=None)
@given(requests())
def test_copies_do_not_share_words(request: tuple[np.ndarray, np.ndarray, int]) -> None:
    offsets, active, width = request
    served = lane_wavefronts(offsets, active, Access("global", "ldgsts", width))[0]
    assert served.max() + 1 == copy_wavefronts(offsets, active, width, bypasses=False)[0]
    past = lane_wavefronts(offsets, active, Access("global", "ldgsts", width, bypasses=True))
    assert (past == -1).all()


def test_banks_of_lanes() -> None:
    """Bytes 0, 4, 127, 128 lie in banks 0, 1, 31 and 0."""
    offsets, active = np.zeros((1, 32), np.int64), np.zeros((1, 32), bool)
    offsets[0, :4], active[0, :4] = (0, 4, 127, 128), True
    assert lane_banks(offsets, active)[0].tolist() == [0, 1, 31, 0, *[-1] * 28]
