"""Finds what belongs to another block of the cluster: its shared memory, and what is kept beside it."""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, subroutine
from gemmsim.trace import words
from gemmsim.trace.llvm.primitives import get_i64, get_u64

# mypy: disable-error-code="no-untyped-def"

# Where a resident block's words hold these words of its context
SHARED, BARRIERS, PHASES = (
    words.STATE_WORDS + words.STATE_CONTEXT.index(slot)
    for slot in (words.SHARED_AT, words.BARRIERS_AT, words.PHASES_AT)
)


@subroutine(ADDRESS, ADDRESS, ADDRESS, INDEX)
def of_block(context, base, slot):
    """Return a word, SHARED, BARRIERS or PHASES, of the block whose shared memory begins at `base` in the window.

    It is 0 where no such block of the cluster runs.
    """
    cluster, rank = get_u64(context, words.CLUSTER_AT), np.int64(base >> np.uint64(words.RANK_SHIFT))
    if cluster == np.uint64(0) or rank >= get_i64(context, words.CLUSTER_BLOCKS):
        return np.uint64(0)
    block = get_u64(cluster, rank)
    return np.uint64(0) if block == np.uint64(0) else get_u64(block, slot)


@subroutine(INDEX, ADDRESS, ADDRESS)
def is_elsewhere(context, base):
    """Return 1 where the shared memory that begins at `base` in the window is another block's than the one that runs.

    Where the blocks of a cluster run one by one, each stands for all: what it does to another, the others do to it.
    """
    alone = get_u64(context, words.CLUSTER_AT) == np.uint64(0)
    return np.int64(0 if alone or base == get_u64(context, words.SHARED_BASE) else 1)
