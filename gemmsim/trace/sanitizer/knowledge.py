"""What a warp knows to have happened before what it does now: vectors of clocks, which barriers join.

Each warp has a clock of its own. Of every other warp's clock it knows the value up to which it has seen that warp pass
a barrier (vector clocks; Flanagan and Freund, PLDI 2009, use them the same way). What goes on beside the warps has
clocks in the same vector, so that whatever joins vectors orders it too:

- a warp's asynchronous copies: the clock is how many are complete. Its own wait for a group advances it.
- a warpgroup's wgmma: groups that are complete. Any of its four warps advances it by waiting, as the group is the
  warpgroup's (PTX ISA, wgmma.commit_group).
- bulk copies to shared memory: the agent is their mbarrier, whose clock is its complete phases. Whoever sees a phase
  end advances it.
- the asynchronous proxy: of each warp, the clock up to which its writes to shared memory are visible to TMA and wgmma.
  fence.proxy.async advances it, for all that the warp knows, wherever on the way from write to reader it stands (PTX
  ISA, "causality order").

An access is before what a warp does now if the warp's vector has reached the value that the access bears.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64
from gemmsim.trace.sanitizer import shadow

# mypy: disable-error-code="no-untyped-def"


@subroutine(ADDRESS, ADDRESS, INDEX)
def clocks_of(context, warp):
    """Return the address of the vector that a warp knows (`shadow.VECTOR_WORDS` words)."""
    return moved(get_u64(context, words.CLOCKS_AT), 8 * shadow.VECTOR_WORDS * warp)


@subroutine(ADDRESS, ADDRESS, INDEX)
def shadow_of(context, warp):
    """Return the address of the words that the sanitizer keeps of a warp (`shadow` names them)."""
    return moved(get_u64(context, words.WARP_SHADOWS_AT), 8 * shadow.WARP_SHADOW_WORDS * warp)


@subroutine(INDEX, ADDRESS, INDEX)
def clock_of(context, warp):
    """Return a warp's own clock."""
    return get_i64(clocks_of(context, warp), shadow.CLOCK + warp)


@subroutine(NOTHING, ADDRESS, ADDRESS)
def join(known, more):
    """Let a vector know what another one knows, too."""
    for word in range(shadow.VECTOR_WORDS):
        set_i64(known, word, max(get_i64(known, word), get_i64(more, word)))


@subroutine(NOTHING, ADDRESS, INDEX)
def tick(context, warp):
    """Advance a warp's clock, after it has told others what it knows."""
    known = clocks_of(context, warp)
    set_i64(known, shadow.CLOCK + warp, get_i64(known, shadow.CLOCK + warp) + 1)


@subroutine(NOTHING, ADDRESS, INDEX)
def fence(context, warp):
    """Execute fence.proxy.async: what the warp knows of becomes visible to the asynchronous proxy."""
    known = clocks_of(context, warp)
    for u in range(shadow.MAX_WARPS):
        set_i64(known, shadow.FENCED + u, get_i64(known, shadow.CLOCK + u))
        set_i64(known, shadow.FENCED_COPIES + u, get_i64(known, shadow.COPIES + u))
    tick(context, warp)


@subroutine(INDEX, INDEX, INDEX)
def agent_of(stamp, stamp_with):
    """Return which word of a vector tells whether an asynchronous access is complete; -1 for one that is not."""
    owner, kind = (stamp >> shadow.WARP_SHIFT) & 31, (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    if kind == shadow.MATRIX_READ:
        return shadow.MATRICES + (owner >> 2)
    if kind == shadow.COPY or kind == shadow.BULK_READ:
        return shadow.COPIES + owner
    if kind == shadow.BULK_WRITE:
        return shadow.PHASES + ((stamp_with >> shadow.WITH_NUMBER_SHIFT) & 255)
    return np.int64(-1)
