"""What an atomic operation sends to L2: lanes that want the same word go one after another, in packets.

A packet holds lanes of one line that want distinct words. Lanes are taken in order; one that wants a word which the
packet of its line has already begins a new one. So 32 lanes with one word make 32 packets of a sector, with 16 words
two packets of two, and with a line one packet of four (own microbenchmark on an H200, tests/records/h200_atomics.json:
`lts__t_sectors_op_red` of 47 patterns). Of 32 random lanes on 256 words, 22.64 sectors a request are expected so, and
were counted 22.62; packets 9.64 for 10.11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.memory.requests.coalescer import LINE_SHIFT, SECTOR_SHIFT
from gemmsim.support.sorting import distinct, new_rows
from gemmsim.support.warp import WARP_LANES


@dataclass(frozen=True)
class Packets:
    """The packets of atomic requests of each shape, by line. A shape that is not an atomic has no lines here.

    start    int64 [shapes + 1] shape s has the lines start[s]:start[s + 1]
    first    int64 [lines] the first sector that they touch, counted from that of the record's base
    packets  int64 [lines]
    sectors  int64 [lines] sectors that these packets touch, each as often as it is touched
    """

    start: NDArray[np.int64]
    first: NDArray[np.int64]
    packets: NDArray[np.int64]
    sectors: NDArray[np.int64]

    def by_shape(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sums of `values` [lines] over the lines of each shape: int64 [shapes]."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
        return before[self.start[1:]] - before[self.start[:-1]]


def packets_of(offsets_bytes: NDArray[np.int64], active: NDArray[np.bool_], atomic: NDArray[np.bool_]) -> Packets:
    """Return the packets of requests of each shape to global memory.

    offsets_bytes  int64 [shapes, 32] as in `trace.types.Patterns`
    active         bool [shapes, 32]
    atomic         bool [shapes] whether a shape is an atomic operation on global memory
    """
    shape = np.flatnonzero(atomic)
    offsets, wants = offsets_bytes[shape], active[shape]
    line, packet = offsets >> LINE_SHIFT, np.zeros(offsets.shape, np.int64)
    for lane in range(1, WARP_LANES):
        same_line = wants[:, :lane] & (line[:, :lane] == line[:, lane : lane + 1])
        current = np.where(same_line, packet[:, :lane], 0).max(axis=1)
        taken = same_line & (offsets[:, :lane] == offsets[:, lane : lane + 1]) & (packet[:, :lane] == current[:, None])
        packet[:, lane] = current + taken.any(axis=1)
    row = np.repeat(shape, wants.sum(axis=1))
    of_shape, of_line, of_packet, sector = distinct(row, line[wants], packet[wants], offsets[wants] >> SECTOR_SHIFT)
    new_line, new_packet = new_rows(of_shape, of_line), new_rows(of_shape, of_line, of_packet)
    number = np.cumsum(new_line) - 1
    return Packets(
        start=np.searchsorted(of_shape[new_line], np.arange(len(atomic) + 1)),
        first=sector[new_line],
        packets=np.bincount(number, new_packet).astype(np.int64),
        sectors=np.bincount(number).astype(np.int64),
    )
