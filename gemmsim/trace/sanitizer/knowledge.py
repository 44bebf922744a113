"""What a warp knows to have happened before what it does now: vectors of clocks, which barriers join.

Each warp has a clock of its own. Of every other warp's clock, in all blocks of the cluster, it knows the value up to
which it has seen that warp pass a barrier (vector clocks; Flanagan and Freund, PLDI 2009, use them the same way). What
goes on beside the warps has clocks in the same vector, so that whatever joins vectors orders it too:

- a warp's asynchronous copies: the clock is how many are complete. Its own wait for a group advances it.
- a warpgroup's wgmma: groups that are complete. Any of its four warps advances it by waiting, as the group is the
  warpgroup's (PTX ISA, wgmma.commit_group).
- bulk copies to shared memory: the agent is their mbarrier, whose clock is its complete phases. Whoever sees a phase
  end advances it.
- the asynchronous proxy: of each warp, the clock up to which its writes to shared memory are visible to TMA and wgmma.
  fence.proxy.async advances it, for all that the warp knows, wherever on the way from write to reader it stands (PTX
  ISA, "causality order").

An access is before what a warp does now if the warp's vector has reached the value that the access bears.

What is kept of a block is its own, and the other blocks of the cluster write to it, too, even when it has ended.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, TRUTH, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import get_i64, get_u64, moved, set_i64
from gemmsim.trace.sanitizer import shadow

# mypy: disable-error-code="no-untyped-def"


_SHARED, _GATES, _WARP_SHADOWS, _GRANULES, _MBARRIERS = (
    words.STATE_WORDS + words.STATE_CONTEXT.index(slot)
    for slot in (words.SHARED_AT, words.GATES_AT, words.WARP_SHADOWS_AT, words.SHADOW_AT, words.MBARRIERS_AT)
)


@subroutine(INDEX, ADDRESS)
def vector_words(context):
    """Return how many words a vector has."""
    return shadow.PART_WORDS * get_i64(context, words.CLUSTER_BLOCKS)


@subroutine(INDEX, ADDRESS)
def rank_of(context):
    """Return the rank in its cluster of the block that runs."""
    return get_i64(context, words.SHARED_BASE) >> words.RANK_SHIFT


@subroutine(INDEX, ADDRESS, INDEX)
def number_of(context, warp):
    """Return the number in the cluster of a warp of the block that runs."""
    return rank_of(context) << shadow.RANK_OF_WARP | warp


@subroutine(INDEX, INDEX, INDEX)
def clock_word(kind, number):
    """Return which word of a vector is the clock of a kind (CLOCK, FENCED, COPIES, FENCED_COPIES) of a warp, which is
    given by its number in the cluster."""
    return shadow.PART_WORDS * (number >> shadow.RANK_OF_WARP) + kind + (number & 31)


@subroutine(INDEX, INDEX)
def products_word(number):
    """Return which word of a vector is the clock of the wgmma of a warp's warpgroup."""
    return shadow.PART_WORDS * (number >> shadow.RANK_OF_WARP) + shadow.MATRICES + ((number & 31) >> 2)


@subroutine(INDEX, INDEX)
def phases_word(mbarrier):
    """Return which word of a vector is the clock of an mbarrier, given by its number in the cluster from 0 on."""
    within = mbarrier & (shadow.MAX_MBARRIERS - 1)
    return shadow.PART_WORDS * (mbarrier >> shadow.RANK_OF_MBARRIER) + shadow.PHASES + within


@subroutine(ADDRESS, ADDRESS, INDEX, INDEX)
def _of_block(context, rank, word):
    """Return a word of a resident block of the cluster, also of one that has ended."""
    current = get_i64(context, words.CURRENT)
    first = current - current % get_i64(context, words.CLUSTER_BLOCKS)
    return get_u64(moved(get_u64(context, words.RESIDENTS_AT), 8 * words.RESIDENT_WORDS * (first + rank)), word)


@subroutine(TRUTH, ADDRESS, INDEX)
def is_own(context, rank):
    """Whether a rank is that of the block that runs. Blocks that run one by one reach no other's shared memory."""
    return get_u64(context, words.CLUSTER_AT) == np.uint64(0) or rank == rank_of(context)


@subroutine(TRUTH, ADDRESS, INDEX)
def has_ended(context, rank):
    """Whether a block of the cluster has ended."""
    if is_own(context, rank):
        return False
    return get_u64(get_u64(context, words.CLUSTER_AT), rank) == np.uint64(0)


@subroutine(ADDRESS, ADDRESS, INDEX)
def shared_of(context, rank):
    """Return where the content of the shared memory of a block of the cluster is."""
    return get_u64(context, words.SHARED_AT) if is_own(context, rank) else _of_block(context, rank, _SHARED)


@subroutine(ADDRESS, ADDRESS, INDEX)
def granules_of(context, rank):
    """Return where the granules of a block of the cluster are."""
    return get_u64(context, words.SHADOW_AT) if is_own(context, rank) else _of_block(context, rank, _GRANULES)


@subroutine(ADDRESS, ADDRESS, INDEX)
def mbarriers_of(context, rank):
    """Return where the table of mbarriers of a block of the cluster is."""
    return get_u64(context, words.MBARRIERS_AT) if is_own(context, rank) else _of_block(context, rank, _MBARRIERS)


@subroutine(ADDRESS, ADDRESS, INDEX, INDEX)
def gate_of(context, rank, number):
    """Return where the words of a barrier of a block of the cluster are."""
    gates = get_u64(context, words.GATES_AT) if is_own(context, rank) else _of_block(context, rank, _GATES)
    return moved(gates, 8 * (shadow.GATE_VECTOR + vector_words(context)) * number)


@subroutine(INDEX, ADDRESS, INDEX)
def exit_of(context, rank):
    """Return the stamp of a thread with which a block of the cluster has ended."""
    own, found = get_u64(context, words.WARP_SHADOWS_AT), np.int64(0)
    warps = own if is_own(context, rank) else _of_block(context, rank, _WARP_SHADOWS)
    for w in range(get_i64(context, words.WARPS)):
        stamp = get_i64(moved(warps, 8 * shadow.WARP_SHADOW_WORDS * w), shadow.EXIT)
        found = stamp if stamp != 0 else found
    return found


@subroutine(ADDRESS, ADDRESS, INDEX)
def clocks_of(context, warp):
    """Return the address of the vector that a warp knows."""
    return moved(get_u64(context, words.CLOCKS_AT), 8 * vector_words(context) * warp)


@subroutine(ADDRESS, ADDRESS, INDEX)
def shadow_of(context, warp):
    """Return the address of the words that the sanitizer keeps of a warp (`shadow` names them)."""
    return moved(get_u64(context, words.WARP_SHADOWS_AT), 8 * shadow.WARP_SHADOW_WORDS * warp)


@subroutine(INDEX, ADDRESS, INDEX)
def clock_of(context, warp):
    """Return a warp's own clock."""
    return get_i64(clocks_of(context, warp), clock_word(shadow.CLOCK, number_of(context, warp)))


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS)
def join(context, known, more):
    """Let a vector know what another one knows, too."""
    for word in range(vector_words(context)):
        set_i64(known, word, max(get_i64(known, word), get_i64(more, word)))


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS)
def join_phases(context, known, more):
    """Let a vector know which phases of mbarriers another one knows to be complete."""
    for rank in range(get_i64(context, words.CLUSTER_BLOCKS)):
        for word in range(phases_word(rank << shadow.RANK_OF_MBARRIER), shadow.PART_WORDS * (rank + 1)):
            set_i64(known, word, max(get_i64(known, word), get_i64(more, word)))


@subroutine(NOTHING, ADDRESS, INDEX)
def tick(context, warp):
    """Advance a warp's clock, after it has told others what it knows."""
    known, word = clocks_of(context, warp), clock_word(shadow.CLOCK, number_of(context, warp))
    set_i64(known, word, get_i64(known, word) + 1)


@subroutine(NOTHING, ADDRESS, INDEX)
def fence(context, warp):
    """Execute fence.proxy.async: what the warp knows of becomes visible to the asynchronous proxy."""
    known = clocks_of(context, warp)
    for u in range(shadow.MAX_WARPS * get_i64(context, words.CLUSTER_BLOCKS)):
        set_i64(known, clock_word(shadow.FENCED, u), get_i64(known, clock_word(shadow.CLOCK, u)))
        set_i64(known, clock_word(shadow.FENCED_COPIES, u), get_i64(known, clock_word(shadow.COPIES, u)))
    tick(context, warp)


@subroutine(INDEX, INDEX, INDEX)
def agent_of(stamp, stamp_with):
    """Return which word of a vector tells whether an asynchronous access is complete; -1 for one that is not."""
    owner, kind = (stamp >> shadow.WARP_SHIFT) & shadow.WARP_MASK, (stamp >> shadow.KIND_SHIFT) & shadow.KIND_MASK
    if kind == shadow.MATRIX_READ:
        return products_word(owner)
    if kind == shadow.COPY or kind == shadow.BULK_READ:
        return clock_word(shadow.COPIES, owner)
    if kind == shadow.BULK_WRITE:
        return phases_word((stamp_with >> shadow.WITH_NUMBER_SHIFT) & shadow.WITH_NUMBER_MASK)
    return np.int64(-1)


@subroutine(TRUTH, ADDRESS, INDEX, INDEX)
def known_to(known, stamp, stamp_with):
    """Whether a vector knows of an access."""
    agent = agent_of(stamp, stamp_with)
    if agent >= 0:
        return stamp_with & shadow.WITH_MASK <= get_i64(known, agent)
    owner = (stamp >> shadow.WARP_SHIFT) & shadow.WARP_MASK
    return stamp >> shadow.CLOCK_SHIFT <= get_i64(known, clock_word(shadow.CLOCK, owner))
