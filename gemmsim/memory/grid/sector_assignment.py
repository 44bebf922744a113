"""Gives single requests of a sample whole sectors, where only sums or shares of each instruction are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.grid.l1_requests import L1Requests
from gemmsim.memory.grid.slots import slots_for
from gemmsim.memory.native_loops import native_loop
from gemmsim.memory.requests.cache_operations import WRITE, WRITE_PAST_L1
from gemmsim.memory.requests.coalescer import Coalesced

_COUNTED_BLOCKS = 4  # blocks whose stores are looked at one by one, to see how many of them meet the same sectors
_round_sums, _find_earliest, _count_new = (
    native_loop("grid/sector_assignment_loop", function, "grid/slots")
    for function in ("round_sums", "find_earliest", "count_new")
)
_ROUNDING = 1e-9  # makes sums that are halves but for rounding errors count as halves


def round_to_sectors(amount: NDArray[np.float64], pc: NDArray[np.int32]) -> NDArray[np.uint16]:
    """Round amounts to whole numbers whose running sum follows that of the amounts, for each instruction by itself.

    amount  float64 [n] sectors of each request
    pc      int32 [n] static instruction index of each request

    No number is further than one from its amount; amounts that are whole numbers stay as they are.
    """
    whole = np.empty(len(pc), np.uint16)
    if len(pc):
        _round_sums(amount, pc, np.zeros(int(pc.max()) + 1), whole)
    return whole


def sectors_new_to_block(
    sectors: NDArray[np.int32], requests: L1Requests, coalesced: Coalesced, fetch_sectors: int
) -> NDArray[np.int32]:
    """Return the sectors that DRAM would deliver for each request, if L2 held only what the block has asked for before.

    DRAM reads `fetch_sectors` neighbouring sectors, a piece, at once. So where a piece has two sectors, a block that
    goes through memory in steps of one sector finds every other sector in L2. A request counts as one that goes on in a
    piece if its first piece was asked for before.

    sectors        int32 [requests] sectors that each request asks L2 for
    fetch_sectors  how many sectors DRAM reads at once
    """
    if fetch_sectors == 1 or not len(sectors):
        return sectors
    offset = coalesced.sector_offset
    shapes = len(coalesced.sectors)
    rows = np.repeat(np.arange(shapes), coalesced.sectors)
    # How many pieces a shape touches, for each place of its base in a piece.
    pieces = [
        np.bincount(rows, np.diff(piece + rows * (1 << 40), prepend=-1) != 0, shapes)
        for piece in ((offset + place) // fetch_sectors for place in range(fetch_sectors))
    ]
    first = (requests.base_sector + offset[coalesced.sector_start[requests.shape]]) // fetch_sectors
    slots = slots_for(int(np.diff(requests.start[:: requests.warps_per_block]).max()))
    earliest = np.empty(len(sectors), np.bool_)
    _find_earliest(first, requests.start, requests.warps_per_block, slots, np.empty_like(slots), earliest)
    more = np.stack(pieces) * fetch_sectors / np.maximum(coalesced.sectors, 1)
    delivered = np.rint(sectors * more[requests.base_sector % fetch_sectors, requests.shape])
    return np.where(earliest, delivered, 0).astype(np.int32)


def stored_once(requests: L1Requests, coalesced: Coalesced) -> NDArray[np.uint16]:
    """Return for each request how many of the sectors that it stores DRAM writes in the end: uint16 [requests], 0 for
    those that do not store.

    What blocks store several times, 32 threads each an element of the same sectors, is written once. How much of what
    an instruction stores that is, is counted on the first blocks.
    """
    stores = np.isin(requests.operation, (WRITE, WRITE_PAST_L1))
    sectors = np.where(stores, coalesced.sectors[requests.shape], 0)
    if not stores.any():
        return sectors.astype(np.uint16)
    ends = requests.start[requests.warps_per_block :: requests.warps_per_block]
    begin = int(stores.argmax())  # in the first block that stores
    stored, new = np.zeros((2, int(requests.pc.max()) + 1), np.int64)
    for end in ends[ends > begin][:_COUNTED_BLOCKS].tolist():
        some, begin = begin + np.flatnonzero(stores[begin:end]), end
        stored += np.bincount(requests.pc[some], sectors[some], len(stored)).astype(np.int64)
        _count_new(requests, some, coalesced, slots_for(int(sectors[some].sum())), new)
    share = np.divide(new, stored, out=np.ones(len(new)), where=stored > 0)
    written, at = np.zeros(len(sectors), np.uint16), np.flatnonzero(stores)
    written[at] = round_to_sectors(sectors[at] * share[requests.pc[at]], requests.pc[at])
    return written


class Tiles:
    """What the warps of a block read when they execute an instruction for the n-th time, neighbouring parts of a tile.

    of_request  int64 [requests] the tile of each, in the order of instructions, then of blocks, then of n
    pc          int64 [tiles] the instruction
    """

    def __init__(self, requests: L1Requests) -> None:
        blocks = (len(requests.start) - 1) // requests.warps_per_block
        instructions, number = int(requests.pc.max(initial=-1)) + 1, requests.execution_number()
        place = requests.pc * np.int64(blocks) + requests.of_blocks(np.arange(blocks))
        times = np.zeros(instructions * blocks, np.int64)  # that a block executes an instruction
        np.maximum.at(times, place, number + 1)
        self.of_request = number
        self.of_request += (np.cumsum(times) - times)[place]
        self.pc = np.repeat(np.arange(instructions), times.reshape(instructions, blocks).sum(axis=1))

    def assign(self, sectors: NDArray[np.int32], share: NDArray[np.float64]) -> NDArray[np.uint16]:
        """Return how many of its sectors each request brings to L2 from DRAM: uint16 [requests].

        The first block that reads a tile brings it to L2 for the others. So either all requests of a tile wait for
        DRAM, or none.

        sectors  int32 [requests] sectors that each request may bring
        share    float64 [requests] share of the sectors that come from DRAM, one for all of a tile
        """
        size, of_tile = np.bincount(self.of_request, sectors, len(self.pc)), np.empty(len(self.pc))
        of_tile[self.of_request] = share
        wanted = size * of_tile
        total = np.cumsum(wanted)
        first = np.flatnonzero(np.diff(self.pc, prepend=-1))
        # The sum of each instruction starts at 0.
        total -= np.repeat(total[first] - wanted[first], np.diff(first, append=len(self.pc)))
        size = np.maximum(size, 1.0)
        chosen = np.floor(total / size + 0.5 + _ROUNDING) > np.floor((total - wanted) / size + 0.5 + _ROUNDING)
        return np.where(chosen[self.of_request], sectors, 0).astype(np.uint16)
