"""Works out what each execution in a warp's stream does at mbarriers and moves in bulk: rows of `Sync`.

Phases of a block's mbarriers are its gates. An arrival at another block of the cluster counts for the block's own
mbarrier at the same place: the others are taken to do to it what it does to them, at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.opcodes import Kind, row_of
from gemmsim.isa.program import Program
from gemmsim.memory.types import RecordCost
from gemmsim.sm.instructions import InstructionTable
from gemmsim.support.sorting import numbered
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import WarpTrace
from gemmsim.trace.words import RANK_SHIFT


class SyncFields(NamedTuple):
    """The fields of `units.execution.Sync`, as columns."""

    gate: int
    counts: int = 0
    more: int = 0
    amount: int = 0
    l2_sectors: int = 0
    dram_sectors: int = 0
    remote: int = 0
    merged_sectors: int = 0
    dram_shared: int = 0
    tensor_map: int = 0
    lines: int = 0
    requests: int = 0


NOTHING = SyncFields(-1)
NO_SYNCS = np.zeros((0, len(NOTHING)), np.int64)
_NUMBER_BITS = RANK_SHIFT - 3
OWN_NUMBER = (1 << _NUMBER_BITS) - 1  # of an mbarrier's number, what tells it from others of its own block


class SyncRows:
    """The rows of all warps of a trace; `of_block` takes pieces out of those of one block."""

    def __init__(self, program: Program, table: InstructionTable, trace: WarpTrace, cost: RecordCost) -> None:
        self._trace, self._syncs = trace, trace.syncs
        self._has = table.rows["syncs"] > 0
        kinds = [row_of(i).kind for i in program.instructions]
        self._barrier = np.array([kind is Kind.BARRIER for kind in kinds], bool)
        self._copy = np.array([kind is Kind.BULK_COPY for kind in kinds], bool)
        self._fence = np.array([kind is Kind.MEMORY_FENCE for kind in kinds], bool)
        self._wait = np.array(["PHASECHK" in i.modifiers for i in program.instructions], bool)
        self._initialises = np.array(["EXCH" in i.modifiers for i in program.instructions], bool) & ~self._copy
        if self._syncs is None:
            return
        of_warp = np.repeat(np.arange(len(self._syncs.start) - 1), np.diff(self._syncs.start))
        self._pc = trace.pc[trace.pc_start[of_warp] + self._syncs.at]
        self._sectors = self._moved(cost)
        self._map = np.searchsorted(np.unique(np.append(0, self._syncs.tensor_map)), self._syncs.tensor_map)

    def _moved(self, cost: RecordCost) -> NDArray[np.int64]:
        """Return for each row the sectors that go to L2, those that DRAM reads, those of L2's that may come with
        another SM's request, whether some are on their way from DRAM for another SM, and the lines that they are in:
        int64 [rows, 5].
        """
        assert self._syncs is not None
        bulk = np.flatnonzero(self._copy[self._trace.record_pc])
        sent = cost.l2_sectors[bulk]
        merged = sent * cost.merged_share[bulk]
        columns = (sent, cost.dram_sectors[bulk], merged, cost.dram_shared[bulk], cost.lines[bulk])
        sums = [np.concatenate([[0.0], np.cumsum(column)]) for column in columns]
        ends = np.cumsum(np.where(self._copy[self._pc], self._syncs.records, 0))
        starts = ends - np.where(self._copy[self._pc], self._syncs.records, 0)
        return np.stack([np.rint(s[ends] - s[starts]) for s in sums], axis=1).astype(np.int64)

    def of_block(
        self, warps: Sequence[int], pcs: Sequence[NDArray[np.integer]], pieces: Sequence[NDArray[np.int64]]
    ) -> list[NDArray[np.int64]]:
        """Return the rows of each warp of a block: int64 [rows, fields of SyncFields].

        pcs     for each warp, what is left of its stream
        pieces  for each warp, the ascending positions in its whole stream of what is left
        """
        if self._syncs is None:
            return [self._empty(len(positions)) for positions in (np.flatnonzero(self._has[pc]) for pc in pcs)]
        chosen, of_position, kept = [], [], []
        for warp, pc, piece in zip(warps, pcs, pieces, strict=True):
            positions = piece[self._has[pc]]  # of what has rows, or might have
            rows, place = self._left(warp, positions)
            chosen.append(rows)
            of_position.append(place)
            kept.append(len(positions))
        gates, _ = self._gates(warps, chosen)
        return [
            self._rows(rows, gate, place, count)
            for rows, gate, place, count in zip(chosen, gates, of_position, kept, strict=True)
        ]

    def mbarriers(
        self, warps: Sequence[int], pcs: Sequence[NDArray[np.integer]], pieces: Sequence[NDArray[np.int64]]
    ) -> NDArray[np.int64]:
        """Return the number of the mbarrier of which each gate of a block is a phase; arguments as of `of_block`."""
        if self._syncs is None:
            return np.zeros(0, np.int64)
        lefts = (piece[self._has[pc]] for pc, piece in zip(pcs, pieces, strict=True))
        return self._gates(warps, [self._left(warp, left)[0] for warp, left in zip(warps, lefts, strict=True)])[1]

    def _left(self, warp: int, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of a warp that are at any of the ascending positions of its stream, and at which of them."""
        s = self._syncs
        assert s is not None
        rows = np.arange(s.start[warp], s.start[warp + 1])
        place = np.searchsorted(positions, s.at[rows])
        inside = place < len(positions)
        inside[inside] = positions[place[inside]] == s.at[rows[inside]]
        return rows[inside], place[inside]

    def _empty(self, count: int) -> NDArray[np.int64]:
        return np.tile(np.array(NOTHING, np.int64), (count, 1))

    def _gates(
        self, warps: Sequence[int], chosen: list[NDArray[np.int64]]
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """Return the gate of each chosen row, -1 where it has none: it is of a phase that nothing here completes. And
        return the number of the mbarrier of which each gate is a phase.
        """
        s = self._syncs
        assert s is not None
        every = np.concatenate([np.arange(s.start[warp], s.start[warp + 1]) for warp in warps])
        number = s.barrier[every] & OWN_NUMBER
        # An mbarrier that is initialised again begins with phase 0 again, as another one.
        order = np.lexsort((s.order[every], number))
        begins = np.cumsum(self._initialises[self._pc[every[order]]])
        life = np.empty(len(every), np.int64)
        life[order] = begins
        rows = np.concatenate(chosen)
        place = np.searchsorted(every, rows)  # the warps of a block are in order
        (_, of_key, _), key = numbered(life[place], number[place], s.phase[rows])
        completes = self._completes(rows)
        gate_of_key = np.full(int(key.max(initial=0)) + 1, -1)
        used = np.unique(key[completes])
        gate_of_key[used] = np.arange(len(used))
        gate = np.where(completes | self._wait[self._pc[rows]], gate_of_key[key] if len(key) else -1, -1)
        gate = np.where(self._barrier[self._pc[rows]], s.barrier[rows], gate)
        return np.split(gate, np.cumsum([len(one) for one in chosen])[:-1]), of_key[used]

    def _completes(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each row is an arrival at an mbarrier, or a copy to one."""
        assert self._syncs is not None
        pc = self._pc[rows]
        return (self._syncs.barrier[rows] >= 0) & ~self._barrier[pc] & ~self._wait[pc] & ~self._initialises[pc]

    def _rows(
        self, rows: NDArray[np.int64], gate: NDArray[np.int64], place: NDArray[np.int64], count: int
    ) -> NDArray[np.int64]:
        """Return the rows of one warp, with one that does nothing for each execution that has none.

        rows, gate  the warp's rows of the trace, and their gates
        place       which execution each belongs to, of `count`
        """
        s = self._syncs
        assert s is not None
        numbers = np.bincount(place, minlength=count)
        made = self._empty(int(np.maximum(numbers, 1).sum()))
        first = np.cumsum(np.maximum(numbers, 1)) - np.maximum(numbers, 1)
        begins = np.cumsum(numbers) - numbers
        within = np.arange(len(rows)) - begins[place]
        at, pc = first[place] + within, self._pc[rows]
        threads = -(-s.phase[rows] // WARP_LANES)
        own = s.barrier[rows[self._wait[pc]]] >> _NUMBER_BITS
        rank = int(own[0]) if len(own) else -1
        columns: dict[str, NDArray] = {
            "gate": gate,
            "counts": self._completes(rows),
            "more": numbers[place] - 1 - within,
            "amount": np.where(self._barrier[pc], threads, np.where(self._fence[pc], 1, s.bytes[rows])),
            "l2_sectors": self._sectors[rows, 0],
            "dram_sectors": self._sectors[rows, 1],
            "merged_sectors": self._sectors[rows, 2],
            "dram_shared": self._sectors[rows, 3] > 0,
            "tensor_map": self._map[rows],
            "lines": self._sectors[rows, 4],
            "requests": s.requests[rows],
            "remote": (s.barrier[rows] >= 0) & (rank >= 0) & (s.barrier[rows] >> _NUMBER_BITS != rank),
        }
        for column, name in enumerate(SyncFields._fields):
            made[at, column] = columns[name]
        return made
