"""Allocates and fills the memory of one simulation: the records that the functions of `units` work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.native.records import Record, address_of, allocate, row_addresses, size_of
from gemmsim.sm.instructions import InstructionTable
from gemmsim.sm.pipes import NEEDS_ALL, port_pipes
from gemmsim.sm.spec import USUAL, WARPGROUPS, Conditions, Rates, spec_of
from gemmsim.sm.streams import WarpStream
from gemmsim.sm.sync_rows import SyncFields
from gemmsim.sm.totals import Totals
from gemmsim.sm.units.events import MOST_EVENTS
from gemmsim.sm.units.execution import AccessCost, Sync
from gemmsim.sm.units.fills import Fill, Fills
from gemmsim.sm.units.instruction import ALL_SCOREBOARDS, REASONS, Reason
from gemmsim.sm.units.instruction_cache import InstructionCache, stamps_of
from gemmsim.sm.units.issue_queue import IssueQueue
from gemmsim.sm.units.machine import NEVER, Block, Event, MemoryPath, Sm, Snapshot, Stream, SubPartition, Warp
from gemmsim.sm.units.pipes import Pipe, Pipes, Port
from gemmsim.sm.units.register_ports import CACHED_OPERANDS, RegisterPorts
from gemmsim.sm.units.server import RESERVE, Room, Server
from gemmsim.sm.units.share import Share
from gemmsim.sm.units.slowest_line import deviations
from gemmsim.sm.units.tma import LOADS_REMEMBERED
from gemmsim.sm.units.write_ports import LoadReturn, WritePorts

FIRST_ENTRIES = 256  # of the lists that have no bound of their own; `grow` makes them longer
SERVERS = ("entrance", "tags", "data", "banks", "out", "link", "l2_stores", "tma_loads", "tma_stores")
_GATE, _COUNTS, _MAP = (SyncFields._fields.index(name) for name in ("gate", "counts", "tensor_map"))
_FETCH = list(allocate(AccessCost).dtype.names or ()).index("fetch")


class State:
    """The memory of one SM, filled for its first cycle; and what has been counted, after any cycle.

    blocks    for each block, the stream of each of its warps
    resident  how many blocks are on the SM at once
    marks     ascending numbers of issued instructions at which a snapshot of the totals is kept
    watched   whether events are kept for an observer
    """

    def __init__(
        self,
        table: InstructionTable,
        gpu: GpuSpec,
        rates: Rates,
        blocks: Sequence[Sequence[WarpStream]],
        resident: int,
        *,
        marks: Sequence[int] = (),
        conditions: Conditions = USUAL,
        watched: bool = False,
    ) -> None:
        self._gpu, self._table, self._rows = gpu, table, table.rows
        self._intervals = np.array([pipe.issue_interval_cycles for pipe in gpu.pipes.values()], np.float64)
        self._slowest = deviations()
        self._spec = spec_of(
            gpu, rates, conditions.oldest_block_first, address_of(self._intervals), address_of(self._slowest)
        )
        self._room = allocate(Room)
        self._room["entries"] = max(FIRST_ENTRIES, 2 * RESERVE)
        self._sm = allocate(Sm)
        self._fill_streams(blocks)
        self._fill_blocks(resident)
        self._fill_warps(resident * self._grid.shape[1])
        self._fill_parts(table.ports)
        self._fill_memory_path()
        self._fill_cache(conditions.warm_code)
        self._fill_counters(marks)
        self._lay_out_lists()
        self._events = allocate(Event, MOST_EVENTS if watched else 1)
        self._set(
            spec=self._spec,
            room=self._room,
            instructions=self._rows,
            instruction_count=len(table),
            blocks_take_turns=table.blocks_take_turns,
            makes_maps=table.makes_maps,
            counted=sum(1 << s for s in set(table.rows["drain_scoreboard"].tolist()) if s >= 0),
            watched=watched,
            events=self._events,
        )
        self.sm = Sm(address_of(self._sm))

    def _set(self, **values: NDArray | float) -> None:
        for name, value in values.items():
            self._sm[name] = address_of(value) if isinstance(value, np.ndarray) else value

    def _fill_streams(self, blocks: Sequence[Sequence[WarpStream]]) -> None:
        unique = list({id(stream): stream for block in blocks for stream in block}.values())
        number = {id(stream): i for i, stream in enumerate(unique)}
        self._grid = np.array([[number[id(stream)] for stream in block] for block in blocks], np.int64)
        self._pcs = np.concatenate([stream.pcs for stream in unique]).astype(np.int32)
        self._costs = np.concatenate([stream.costs for stream in unique])
        # The fetches are numbered anew, without gaps, because `Block.arriving` has an element for each; 0 stays 0.
        values, place = np.unique(np.append(self._costs[:, _FETCH], 0), return_inverse=True)
        self._costs[:, _FETCH], self._fetches = place[:-1], len(values)
        self._streams = allocate(Stream, len(unique))
        self._streams["length"] = [len(stream.pcs) for stream in unique]
        before = np.cumsum([0, *self._streams["length"]])[:-1]
        accesses = np.cumsum([0, *(len(stream.costs) for stream in unique)])[:-1]
        self._streams["pcs"] = address_of(self._pcs) + before * self._pcs.itemsize
        self._streams["costs"] = address_of(self._costs) + accesses * size_of(AccessCost)
        self._syncs = np.concatenate([stream.syncs for stream in unique])
        syncs = np.cumsum([0, *(len(stream.syncs) for stream in unique)])[:-1]
        self._streams["syncs"] = address_of(self._syncs) + syncs * size_of(Sync)
        self._fill_gates([stream.syncs for stream in unique])
        self._set(
            streams=self._streams,
            grid=self._grid,
            grid_blocks=len(self._grid),
            warps_per_block=self._grid.shape[1],
            fetches=self._fetches,
        )

    def _fill_gates(self, syncs: Sequence[NDArray[np.int64]]) -> None:
        """Count for each block how much completes each of its gates. Blocks with the same streams share the numbers."""
        numbers: dict[tuple[int, ...], tuple[int, int]] = {}
        needed: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]  # one more, so that there is an address
        for block in map(tuple, self._grid.tolist()):
            if block not in numbers:
                counted = np.concatenate([syncs[stream][syncs[stream][:, _COUNTS] > 0, _GATE] for stream in block])
                first = sum(map(len, needed))
                needed.append(np.bincount(counted) if len(counted) else np.zeros(0, np.int64))
                numbers[block] = first, len(needed[-1])
        self._gates = np.array([numbers[tuple(block)] for block in self._grid.tolist()], np.int64)
        self._needed = np.concatenate(needed).astype(np.int64)
        self._set(gates=self._gates, needed=self._needed)

    def _fill_blocks(self, resident: int) -> None:
        self._arrived = np.zeros((resident, self._gpu.sm.max_barriers_per_block + WARPGROUPS + 1), np.int64)
        self._arriving = np.zeros((resident, self._fetches), np.int64)
        most, maps = max(1, int(self._gates[:, 1].max())), max(1, int(self._syncs[:, _MAP].max(initial=0)))
        self._missing, self._opens = np.zeros((2, resident, most), np.int64)
        self._blocks = allocate(Block, resident)
        self._blocks["leaves"] = NEVER
        self._maps_there = np.zeros((resident + 1, maps), np.int64)  # those that are given, then of each block
        self._blocks["maps"] = row_addresses(self._maps_there[1:])
        self._blocks["arrived"], self._blocks["arriving"] = row_addresses(self._arrived), row_addresses(self._arriving)
        self._blocks["missing"], self._blocks["opens"] = row_addresses(self._missing), row_addresses(self._opens)
        self._set(blocks=self._blocks, resident=resident, maps=maps)

    def _fill_warps(self, places: int) -> None:
        self._scoreboards = np.zeros((3, places, ALL_SCOREBOARDS), np.int64)
        self._warps = allocate(Warp, places)
        for field, values in zip(("scoreboards", "reasons", "outstanding_counts"), self._scoreboards, strict=True):
            self._warps[field] = row_addresses(values)
        self._set(warps=self._warps, places=places)

    def _fill_parts(self, names: Sequence[str]) -> None:
        parts, pipes = self._gpu.sm.sub_partitions, list(self._gpu.pipes)
        self._pipes = allocate(Pipe, parts * len(pipes)).reshape(parts, -1)
        self._ports = allocate(Port, parts * len(names)).reshape(parts, -1)
        self._ports["first"] = self._ports["second"] = -1
        for number, name in enumerate(names[1:], start=1):  # the memory queue has no pipe
            users = [pipes.index(pipe) for pipe in port_pipes(name, pipes)]
            self._ports["pipes"][:, number], self._ports["all"][:, number] = len(users), name in NEEDS_ALL
            for field, user in zip(("first", "second"), users, strict=False):
                self._ports[field][:, number] = user
        self._releases = np.zeros((parts, self._gpu.mio.queue_entries + 1), np.int64)
        self._begins = np.zeros((parts, self._gpu.warpgroup.queue_entries + 1), np.int64)
        self._reused = np.tile(np.array([0, -1], np.int64), (parts, CACHED_OPERANDS))
        units: dict[str, tuple[type[Record], dict[str, NDArray[np.int64] | int]]] = {
            "pipes": (
                Pipes,
                {"pipes": row_addresses(self._pipes), "ports": row_addresses(self._ports), "port_count": len(names)},
            ),
            "queue": (IssueQueue, {"releases": row_addresses(self._releases)}),
            "multiplications": (IssueQueue, {"releases": row_addresses(self._begins)}),
            "read_ports": (RegisterPorts, {"reused": row_addresses(self._reused)}),
            "write_ports": (WritePorts, {"room": address_of(self._room)}),
        }
        self._parts = allocate(SubPartition, parts)
        self._units: dict[str, NDArray[np.void]] = {}
        for field, (record, values) in units.items():
            self._units[field] = unit = allocate(record, parts)
            for name, value in values.items():
                unit[name] = value
            self._parts[field] = row_addresses(unit)
        self._parts["wakes"] = NEVER
        self._parts["last_issue"] = -1
        self._set(sub_partitions=self._parts)

    def _fill_memory_path(self) -> None:
        self._servers = allocate(Server, len(SERVERS) + 1 + len(self._parts))
        self._servers["room"] = address_of(self._room)
        places = row_addresses(self._servers)
        self._memory = allocate(MemoryPath)
        self._memory[list(SERVERS)] = tuple(places[: len(SERVERS)])
        self._parts["returns"] = places[len(SERVERS) + 1 :]
        self._fills = allocate(Fills)
        self._fills["room"], self._memory["fills"] = address_of(self._room), address_of(self._fills)
        self._shares = allocate(Share, 3)
        self._memory[["l2_share", "slice_share", "dram_share"]] = tuple(row_addresses(self._shares))
        self._memory["maps"], mio, tma = address_of(self._maps_there), self._gpu.mio, self._gpu.tma
        entries = {"handed_over": mio.shared_entries, "loads_begun": mio.load_entries, "stores_begun": tma.stores_held}
        entries["tile_ends"] = LOADS_REMEMBERED
        self._rings = {name: np.zeros(max(1, count)) for name, count in entries.items()}
        for name, ring in self._rings.items():
            self._memory[name] = address_of(ring)
        self._memory["after_shared"] = self._gpu.l1.tagged_after_shared_requests
        self._memory[["unflushed", "load_gate"]] = -1, -1
        competing = min(len(self._blocks), -(-len(self._warps) // self._gpu.sm.sub_partitions))
        self._memory["companions"] = competing if self._table.blocks_take_turns else 1
        self._memory[["flushed", "question"]] = -self._gpu.barrier.flush_interval_cycles, -np.inf
        self._set(memory=self._memory, arrivals=places[len(SERVERS)])

    def _fill_cache(self, warm: bool) -> None:
        lines = -(-len(self._rows) // int(self._spec["line_instructions"][0])) + 1 + self._gpu.fetch.ahead_lines
        self._line_stamps = np.zeros((2, lines), np.int64)
        self._lines_ready = np.zeros(lines)
        self._cache = allocate(InstructionCache)
        self._cache["lines"] = lines
        self._cache["first_stamps"], self._cache["second_stamps"] = row_addresses(self._line_stamps)
        self._cache["ready"] = address_of(self._lines_ready)
        brought = min(lines, self._gpu.fetch.launch_bytes // self._gpu.fetch.line_bytes)
        held = (lines, lines) if warm else (0, brought)
        for stamps, level, count in zip(self._line_stamps, ("first", "second"), held, strict=True):
            sets, ways = (int(self._spec[f"{level}_level_{what}"][0]) for what in ("sets", "ways"))
            stamps[:] = stamps_of(lines, count, sets, ways)
        self._cache["stamp"] = max(held)
        self._set(cache=self._cache)

    def _fill_counters(self, marks: Sequence[int]) -> None:
        count = len(self._rows)
        self._stall_cycles, self._executed = np.zeros((count, REASONS)), np.zeros(count, np.int64)
        self._block_ends, self._ended_slots = np.zeros((2, len(self._grid)), np.int64)
        taken = len(marks) + 1  # one more, whose mark of -1 is never reached
        self._stalls_then, self._executed_then = np.zeros((taken, count, REASONS)), np.zeros((taken, count), np.int64)
        self._pipes_then = allocate(Pipe, taken * self._pipes.size).reshape(taken, *self._pipes.shape)
        self._snapshots = allocate(Snapshot, taken)
        self._snapshots["at"] = [*marks, -1]
        for field, values in (
            ("stall_cycles", self._stalls_then),
            ("executed", self._executed_then),
            ("pipes", self._pipes_then),
        ):
            self._snapshots[field] = row_addresses(values)
        self._set(
            stall_cycles=self._stall_cycles,
            executed=self._executed,
            tensor_began=-1,
            block_ends=self._block_ends,
            ended_slots=self._ended_slots,
            snapshots=self._snapshots,
            next_snapshot=int(self._snapshots["at"][0]),
        )

    def _lay_out_lists(self) -> None:
        """Allocate the lists whose length nothing bounds, with room for `room.entries` entries each."""
        entries = int(self._room["entries"][0])
        self._gaps = np.zeros((len(self._servers), entries, 2))
        self._outstanding = np.zeros((len(self._warps), ALL_SCOREBOARDS, entries), np.int64)
        self._returns = allocate(LoadReturn, len(self._parts) * entries).reshape(len(self._parts), entries)
        self._fill_rows = allocate(Fill, entries)
        self._fills["rows"] = address_of(self._fill_rows)
        self._servers["bounds"] = row_addresses(self._gaps)
        self._warps["outstanding"] = row_addresses(self._outstanding)
        self._units["write_ports"]["returns"] = row_addresses(self._returns)

    def grow(self) -> None:
        """Make the lists that `_lay_out_lists` allocates four times as long if `room.short` says so. Entries stay."""
        if not self._room["short"][0]:
            return
        gaps, outstanding, returns, fills = self._gaps, self._outstanding, self._returns, self._fill_rows
        before = gaps.shape[1]
        self._room["entries"], self._room["short"] = 4 * before, 0
        self._lay_out_lists()
        self._gaps[:, :before], self._outstanding[:, :, :before] = gaps, outstanding
        ports = self._units["write_ports"]
        for part, first in enumerate(ports["first"].tolist()):  # a ring: its oldest entry comes to the front
            self._returns[part, :before] = np.roll(returns[part], -first)
        ports["first"] = 0
        self._fill_rows[:before] = np.roll(fills, -int(self._fills["first"][0]))
        self._fills["first"] = 0

    def bytes_of_spec(self) -> bytes:
        """Return a copy of the bytes of the `Spec`. Simulations must not change these: later copies are equal."""
        return self._spec.tobytes() + self._intervals.tobytes()

    @property
    def wakes(self) -> memoryview:
        """The memory of the sub-partitions as int64: element n * `wakes_stride` is `wakes` of sub-partition n."""
        return self._parts.view(np.int64).data

    wakes_stride = size_of(SubPartition) // 8

    @property
    def lists_short(self) -> memoryview:
        """The memory of the field `Room.short`, as an array int64 [1]."""
        return self._room["short"].data

    def take_events(self) -> list[tuple[int, ...]]:
        """Return the events since the last call, each as the fields of `Event`, and forget them."""
        count = int(self._sm["event_count"][0])
        self._sm["event_count"] = 0
        events: list[tuple[int, ...]] = self._events[:count].tolist()
        return events

    @property
    def totals(self) -> Totals:
        """Return what has been counted so far; `cycles` is when the last of the blocks that have ended left."""
        ends = np.sort(self._block_ends[: self.sm.ended]).astype(np.float64)
        data = float(self._servers["busy_cycles"][SERVERS.index("data")]) + float(self._memory["operand_cycles"][0])
        cycles = float(ends[-1])
        totals = self._totals(cycles, ends, self._stall_cycles, self._executed, self._pipes["issued"], data)
        if self.sm.tensor_began < 0:
            return totals
        after = max(0.0, cycles - self.sm.tensor_ended)
        return replace(totals, before_tensor=float(self.sm.tensor_began), after_tensor=after)

    @property
    def snapshots(self) -> list[Totals]:
        """Return the totals at each of `marks` that was reached, in order."""
        return [
            self._totals(
                float(snapshot["cycles"]),
                np.zeros(0),
                self._stalls_then[i],
                self._executed_then[i],
                self._pipes_then["issued"][i],
                float(snapshot["data_busy_cycles"]),
            )
            for i, snapshot in enumerate(self._snapshots[: self.sm.snapshots_taken])
        ]

    def _totals(
        self,
        cycles: float,
        block_ends: NDArray[np.float64],
        stall_cycles: NDArray[np.float64],
        executed: NDArray[np.int64],
        pipe_issued: NDArray[np.float64],
        data_cycles: float,
    ) -> Totals:
        stalls = stall_cycles.copy()
        stalls[:, Reason["SELECTED"]] = executed
        busy = {
            name: float(pipe_issued[:, i].sum()) * pipe.issue_interval_cycles / len(pipe_issued)
            for i, (name, pipe) in enumerate(self._gpu.pipes.items())
        }
        busy["lsu"] = data_cycles
        return Totals(cycles, stalls, executed.astype(np.float64), busy, block_ends)
