"""The records that the compiled loop works on, and how they are filled from what the SimPy model takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.spec import GpuSpec
from gemmsim.sm.code import SCOREBOARDS, Issue
from gemmsim.sm.fetch import INSTRUCTION_BYTES
from gemmsim.sm.memory_path import BESIDE_SHARED, FLUSH_SHARED_CYCLES, Rates, RecordCycles
from gemmsim.sm.pipes import port_pipes
from gemmsim.sm.registers import NO_OPERANDS
from gemmsim.sm.streams import WarpStream
from gemmsim.sm.types import STALL_REASONS
from gemmsim.support.identity_cache import cached_by_identity

NEVER = 1 << 62
BARRIERS = 16  # named barriers of a block: CUDA programming guide
SERVERS = ENTRANCE, TAGS, DATA, L2, DRAM, ARRIVALS, OUT = range(7)


def _record(integers: str, reals: str = "") -> np.dtype[np.void]:
    """64-bit fields; those that end in `_at` are addresses."""
    return np.dtype([(name, np.int64) for name in integers.split()] + [(name, np.float64) for name in reals.split()])


# One static instruction: see `code.Issue`; -1 stands for None.
ROW = _record(
    """port kind delay taken_delay waits drain_scoreboard drain_most write read latency result_reason throttle_reason
    load copy sources_read base_wavefronts shared_load barrier expected blocks holds reads first second third
    reuse wide uniform window uniform_window rotates passes_barrier
    even_result odd_result pair_result even_return odd_return pair_return executed stalls_at""",
    "access_latency narrow_latency slots",
)
COST = _record(" ".join(RecordCycles._fields))
STREAM = _record("length pcs_at costs_at")
# A place for a warp: see `warp.Warp`; the last three are of the instruction that it issued last.
WARP = _record(
    """state position length pcs_at cost_at pc line port ready rank issued blocked_before dispatch_before stores_done
    copies_done block barrier behind opens scoreboards_at reasons_at outstanding_at outstanding_count_at release
    read_done done"""
)
# What a load still has to write: see `write_ports.WritePorts`.
RETURN = _record("ready even odd pairs")
BLOCK = _record("live end order leaves leaves_order arrived_at arriving_at")
PIPE = _record("", "interval")
PORT = _record("pipes first second")
# A sub-partition: register ports, its memory queue, its pipes and ports, what issued last, when it looks again.
PART = _record(
    """wakes last_rank last_issue kept_at even_free odd_free uniform_free next_free blocked_cycles queue_head
    queue_length queue_at last_write returns_head returns_count returns_at port_free_at port_blocked_at pipe_free_at
    pipe_issued_at""",
    "address_free",
)
SERVER = _record("head gaps gaps_at", "next_free busy")
MARK = _record("at cycles stalls_at executed_at pipes_at", "data")
# What the SM has one of: sizes and addresses, constants, state.
SM = _record(
    """parts ports pipes places resident warps_per_block instructions code_lines fetches grid_blocks room cost_bytes
    table_at warps_at parts_at blocks_at ports_at pipes_at servers_at streams_at grid_at marks_at shared_queue_at
    first_ready_at first_stamp_at second_stamp_at block_ends_at
    queue_entries shared_entries line_instructions most_first most_second block_start_cycles oldest_block_first counted
    data_server
    launched issued next_mark marks_taken ended shared_head unflushed since_shared stamp first_lines second_lines
    full""",
    """issue_to_address address_cycles shared_address_cycles cycles_per_wavefront wavefront_latency request_cycles
    sector_l2_cycles sector_dram_cycles sector_fill_cycles l2_latency dram_latency near_cycles far_cycles
    arrival_cycles release_cycles flush_cycles flush_store_cycles flush_most_store_cycles tagged_cycles
    sector_out_cycles partial_line_cycles
    flushed fetch_free""",
)


def _address(array: NDArray) -> int:
    return int(array.ctypes.data)


def _each(array: NDArray) -> NDArray[np.int64]:
    """Address of each row."""
    return _address(array) + np.arange(len(array)) * array.strides[0]


def _number(column: NDArray[np.int64]) -> int:
    """Number the different values of `column` in place, 0 stays 0; returns how many there are."""
    values, place = np.unique(np.append(column, 0), return_inverse=True)
    column[:] = place[:-1]
    return len(values)


class State:
    """All memory of one simulation, at its beginning; `room` bounds the lists that have no bound of their own."""

    def __init__(
        self,
        table: Sequence[Issue],
        gpu: GpuSpec,
        rates: Rates,
        oldest_block_first: bool,
        blocks: Sequence[Sequence[WarpStream]],
        resident: int,
        marks: Sequence[int],
        room: int,
    ) -> None:
        parts, pipes = gpu.sm.sub_partitions, list(gpu.pipes)
        ports = _port_names(table)
        line_instructions = gpu.fetch.line_bytes // INSTRUCTION_BYTES
        code_lines = -(-len(table) // line_instructions) + 2
        self.stalls = np.zeros((len(table), len(STALL_REASONS)))
        self.rows = _rows(table).copy()
        self.rows["stalls_at"] = _each(self.stalls)
        self._pipes = np.zeros(len(pipes), PIPE)
        self._pipes["interval"] = [gpu.pipes[name].issue_interval_cycles for name in pipes]
        self._ports = _ports(ports, pipes)
        self._fill_streams(blocks)
        self._fill_blocks(resident)
        self._fill_warps(resident * self._grid.shape[1], room)
        self._fill_parts(parts, len(ports), len(pipes), gpu.mio.queue_entries, room)
        self._gaps = np.zeros((len(SERVERS), room, 2))
        self.servers = np.zeros(len(SERVERS), SERVER)
        self.servers["gaps_at"] = _each(self._gaps)
        self._fill_marks(marks, parts, len(pipes))
        self._shared_queue = np.zeros(max(1, gpu.mio.shared_entries))
        self._first_ready = np.zeros(code_lines)
        self._stamps = np.zeros((2, code_lines), np.int64)
        self.block_ends = np.zeros(len(self._grid), np.int64)
        drains = {row.drain_to[0] for row in table if row.drain_to is not None}
        self.sm = np.zeros(1, SM)
        values: dict[str, float] = {
            "parts": parts,
            "ports": len(ports),
            "pipes": len(pipes),
            "places": len(self._warps),
            "resident": resident,
            "warps_per_block": self._grid.shape[1],
            "instructions": len(table),
            "code_lines": code_lines,
            "fetches": self._fetches,
            "grid_blocks": len(self._grid),
            "room": room,
            "cost_bytes": COST.itemsize,
            "counted": sum(1 << scoreboard for scoreboard in drains),
            "data_server": DATA,
            "next_mark": self.marks["at"][0],
            "oldest_block_first": oldest_block_first,
            "table_at": _address(self.rows),
            "warps_at": _address(self._warps),
            "parts_at": _address(self._parts),
            "blocks_at": _address(self._blocks),
            "ports_at": _address(self._ports),
            "pipes_at": _address(self._pipes),
            "servers_at": _address(self.servers),
            "streams_at": _address(self._streams),
            "grid_at": _address(self._grid),
            "marks_at": _address(self.marks),
            "shared_queue_at": _address(self._shared_queue),
            "first_ready_at": _address(self._first_ready),
            "first_stamp_at": _address(self._stamps[0]),
            "second_stamp_at": _address(self._stamps[1]),
            "block_ends_at": _address(self.block_ends),
            **_constants(gpu, rates),
        }
        for name, value in values.items():
            self.sm[name] = value
        self.address = _address(self.sm)

    def _fill_streams(self, blocks: Sequence[Sequence[WarpStream]]) -> None:
        unique = list({id(stream): stream for block in blocks for stream in block}.values())
        number = {id(stream): i for i, stream in enumerate(unique)}
        self._grid = np.array([[number[id(stream)] for stream in block] for block in blocks], np.int64)
        self._pcs = np.concatenate([stream.pcs for stream in unique]).astype(np.int32)
        self._costs = np.concatenate([stream.costs for stream in unique])
        self._fetches = _number(self._costs[:, RecordCycles._fields.index("fetch")])
        self._streams = np.zeros(len(unique), STREAM)
        self._streams["length"] = [len(stream.pcs) for stream in unique]
        before = np.cumsum([0, *self._streams["length"]])[:-1]
        self._streams["pcs_at"] = _address(self._pcs) + before * self._pcs.itemsize
        accesses = np.cumsum([0, *(len(stream.costs) for stream in unique)])[:-1]
        self._streams["costs_at"] = _address(self._costs) + accesses * COST.itemsize

    def _fill_blocks(self, resident: int) -> None:
        self._arrived = np.zeros((resident, BARRIERS), np.int64)
        self._arriving = np.zeros((resident, self._fetches), np.int64)
        self._blocks = np.zeros(resident, BLOCK)
        self._blocks["leaves"] = NEVER
        self._blocks["arrived_at"], self._blocks["arriving_at"] = _each(self._arrived), _each(self._arriving)

    def _fill_warps(self, places: int, room: int) -> None:
        self._boards = np.zeros((3, places, SCOREBOARDS), np.int64)
        self._outstanding = np.zeros((places, SCOREBOARDS, room), np.int64)
        self._warps = np.zeros(places, WARP)
        for name, array in zip(("scoreboards_at", "reasons_at", "outstanding_count_at"), self._boards, strict=True):
            self._warps[name] = _each(array)
        self._warps["outstanding_at"] = _each(self._outstanding)

    def _fill_parts(self, parts: int, ports: int, pipes: int, queue_entries: int, room: int) -> None:
        self._queue = np.zeros((parts, queue_entries + 1), np.int64)
        self._port_state = np.zeros((2, parts, ports), np.int64)
        self._pipe_free, self.pipe_issued = np.zeros((parts, pipes)), np.zeros((parts, pipes))
        self._parts = np.zeros(parts, PART)
        self._parts["wakes"] = NEVER
        self._kept = np.zeros((parts, 6, 2), np.int64)  # by slot and bank: rank of the warp (0: none), register
        self._parts["kept_at"] = _each(self._kept)
        self._parts["queue_at"] = _each(self._queue)
        self._returns = np.zeros((parts, room), RETURN)
        self._parts["returns_at"] = _each(self._returns)
        self._parts["port_free_at"], self._parts["port_blocked_at"] = map(_each, self._port_state)
        self._parts["pipe_free_at"], self._parts["pipe_issued_at"] = _each(self._pipe_free), _each(self.pipe_issued)

    def _fill_marks(self, marks: Sequence[int], parts: int, pipes: int) -> None:
        count = len(marks) + 1  # the last is never reached
        self.mark_stalls = np.zeros((count, *self.stalls.shape))
        self.mark_executed = np.zeros((count, len(self.stalls)), np.int64)
        self.mark_pipes = np.zeros((count, parts, pipes))
        self.marks = np.zeros(count, MARK)
        self.marks["at"] = [*marks, -1]
        self.marks["stalls_at"], self.marks["executed_at"] = _each(self.mark_stalls), _each(self.mark_executed)
        self.marks["pipes_at"] = _each(self.mark_pipes)


def _port_names(table: Sequence[Issue]) -> list[str]:
    return ["lsu", *sorted({row.port for row in table} - {"lsu"})]


@cached_by_identity(4)
def _rows(table: Sequence[Issue]) -> NDArray[np.void]:
    """Kept: one table is simulated several times."""
    number = {port: i for i, port in enumerate(_port_names(table))}
    return np.array([_row(issue, number) for issue in table], ROW)


def _row(issue: Issue, port: dict[str, int]) -> tuple[float, ...]:
    access = issue.access
    return (
        port[issue.port],
        issue.kind,
        issue.delay,
        issue.taken_delay,
        sum(1 << scoreboard for scoreboard in issue.waits),
        *(issue.drain_to or (-1, 0)),
        -1 if issue.write is None else issue.write,
        -1 if issue.read is None else issue.read,
        round(issue.latency),
        issue.result_reason,
        issue.throttle_reason,
        access.load,
        access.copy,
        access.sources_read,
        access.base_wavefronts,
        access.shared_load,
        *issue.barrier,
        bool(issue.waits) or issue.drain_to is not None,
        issue.operands is not NO_OPERANDS,
        *issue.operands,
        *issue.windows,
        issue.rotates,
        issue.passes_barrier,
        *issue.results,
        *issue.returns,
        0,
        0,
        access.latency,
        access.narrow_latency,
        issue.slots,
    )


def _ports(names: Sequence[str], pipes: Sequence[str]) -> NDArray[np.void]:
    ports = np.zeros(len(names), PORT)
    ports["first"] = ports["second"] = -1
    for port, name in zip(ports[1:], names[1:], strict=True):
        users = [pipes.index(pipe) for pipe in port_pipes(name, pipes)]
        port["pipes"] = len(users)
        port["first"], port["second"] = [*users, -1, -1][:2]
    return ports


def _constants(gpu: GpuSpec, rates: Rates) -> dict[str, float]:
    fetch, l1, shared, mio = gpu.fetch, gpu.l1, gpu.shared, gpu.mio
    return {
        "queue_entries": mio.queue_entries,
        "shared_entries": mio.shared_entries,
        "line_instructions": fetch.line_bytes // INSTRUCTION_BYTES,
        "most_first": fetch.first_level_bytes // fetch.line_bytes,
        "most_second": fetch.second_level_bytes // fetch.line_bytes,
        "block_start_cycles": max(1, round(gpu.launch.block_start_cycles)),
        "issue_to_address": mio.issue_to_address_cycles,
        "address_cycles": gpu.pipes["lsu"].issue_interval_cycles,
        "shared_address_cycles": mio.shared_load_interval_cycles,
        "cycles_per_wavefront": 1 / shared.wavefronts_per_cycle,
        "wavefront_latency": shared.wavefront_latency_cycles,
        "request_cycles": shared.request_interval_cycles,
        "sector_l2_cycles": l1.sector_bytes / rates.l2_bytes_per_cycle,
        "sector_dram_cycles": l1.sector_bytes / rates.dram_bytes_per_cycle,
        "sector_fill_cycles": l1.sector_bytes / l1.fill_bytes_per_cycle,
        "tagged_cycles": l1.tagged_request_cycles,
        "sector_out_cycles": l1.sector_bytes / l1.store_bytes_per_cycle,
        "partial_line_cycles": l1.partial_line_cycles,
        "l2_latency": rates.l2_latency_cycles,
        "dram_latency": rates.dram_latency_cycles,
        "near_cycles": fetch.near_line_cycles,
        "far_cycles": fetch.far_line_cycles,
        "arrival_cycles": gpu.barrier.arrival_cycles,
        "release_cycles": max(1.0, gpu.barrier.release_cycles),
        "flush_cycles": gpu.barrier.flush_cycles,
        "flush_store_cycles": gpu.barrier.flush_store_cycles,
        "flush_most_store_cycles": gpu.barrier.flush_most_store_cycles,
        "unflushed": -1,
        "since_shared": BESIDE_SHARED,
        "flushed": -FLUSH_SHARED_CYCLES,
    }
