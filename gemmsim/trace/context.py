"""Makes the context of an executor, an array of words for its compiled code (`gemmsim.trace.words`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gemmsim.trace import words
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.lower import MicroProgram


def context_of(
    memory: DeviceMemory,
    micro: MicroProgram,
    arrays: Mapping[int, NDArray],
    numbers: Mapping[int, int],
) -> NDArray[np.uint64]:
    """Return a context in which the words that are the same for all blocks are filled in.

    arrays   further words that hold addresses, and the arrays there; the caller keeps these alive
    numbers  further words that hold numbers
    """
    context = np.zeros(words.CONTEXT_SLOTS, np.uint64)
    named = {
        words.WRITTEN_AT: memory.written,
        words.TOUCHED_AT: memory.touched,
        words.ALLOCATION_START: memory.starts,
        words.ALLOCATION_SIZE: memory.sizes,
        words.ALLOCATION_POSITION: memory.positions,
        words.ALLOCATION_PLACE: memory.places,
        words.ALLOCATION_LENT: memory.lent,
        words.START_AT: micro.start,
    }
    counts = {
        words.ALLOCATIONS: len(memory.starts),
        words.ACCESSES: micro.accesses,
        words.ENTRIES: len(micro.start) - 1,
    }
    for slot, array in (named | dict(arrays)).items():
        context[slot] = array.ctypes.data
    for slot, number in (counts | dict(numbers)).items():
        context[slot] = number
    return context
