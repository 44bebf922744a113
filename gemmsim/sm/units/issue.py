"""The issue of one warp instruction: where it goes, what it holds, and when its warp can issue the next."""

from __future__ import annotations

from math import ceil

from gemmsim.sm.units.barriers import arrive, wait_for_barrier
from gemmsim.sm.units.blocks import end_warp, fetch_for
from gemmsim.sm.units.events import ACCESSED, ISSUED, TENSOR, level_of, stall, take_snapshot, tell
from gemmsim.sm.units.fences import fence, wait_for_fence
from gemmsim.sm.units.gates import meet_gates
from gemmsim.sm.units.instruction import MEMORY_PORT, Instruction, Kind, Reason
from gemmsim.sm.units.issue_queue import hold_entry
from gemmsim.sm.units.machine import AT_BARRIER, AT_GATE, WAITING, Sm, SubPartition, Warp
from gemmsim.sm.units.memory_path import request
from gemmsim.sm.units.pipes import take_pipe
from gemmsim.sm.units.register_ports import hold_issue, read_later, read_registers
from gemmsim.sm.units.request_queue import behind_requests
from gemmsim.sm.units.scoreboards import hold_scoreboard, wait_for_scoreboards
from gemmsim.sm.units.tma import copy_in_bulk
from gemmsim.sm.units.warpgroup import multiply
from gemmsim.sm.units.write_ports import expect_return, write_results

_MEMORY, _BARRIER_KIND, _COPY_FENCE = int(Kind.MEMORY), int(Kind.BARRIER), int(Kind.COPY_FENCE)
_MULTIPLY, _BULK, _SPECIAL = int(Kind.MULTIPLY), int(Kind.BULK), int(Kind.SPECIAL)
_WAIT, _NOT_SELECTED = int(Reason["WAIT"]), int(Reason["NOT_SELECTED"])
_BRANCH_RESOLVE, _DRAIN = int(Reason["BRANCH_RESOLVE"]), int(Reason["DRAIN"])
_DISPATCH_STALL = int(Reason["DISPATCH_STALL"])


def issue(sm: Sm, part: SubPartition, number: int, warp: Warp, now: int) -> None:
    """The warp of sub-partition `number` issues its next instruction in cycle `now`."""
    row = sm.instructions[warp.pc]
    sm.executed[warp.pc] += 1
    sm.issued += 1
    if sm.issued == sm.next_snapshot:
        take_snapshot(sm, now)
    if now > warp.ready:
        _explain_delay(sm, part, warp, row, now)
    if row.takes_turns or sm.spec.oldest_block_first == 0 or _was_throttled(part, warp, row):
        warp.issued = now
    tell(sm, ISSUED, now, now + 1, warp.slot, warp.pc, number)
    _execute(sm, part, warp, row, now)
    if row.lowers_clock:
        if sm.tensor_began < 0:
            sm.tensor_began = now
        sm.tensor_ended = max(sm.tensor_ended, warp.done)
    held = write_results(sm.spec, part.write_ports, row, now)
    if held > 0:
        hold_issue(part.read_ports, held, now)
    if part.write_ports.waited > 0:
        if sm.memory.data.next_free > now:
            sm.memory.owed += part.write_ports.waited * sm.spec.load_write_blocking
        part.write_ports.waited = 0
    if row.write_scoreboard >= 0 and warp.gate < 0:
        hold_scoreboard(sm, warp, row.write_scoreboard, warp.done, row.result_reason)
    if row.read_scoreboard >= 0:
        hold_scoreboard(sm, warp, row.read_scoreboard, warp.sources_read, row.result_reason)
    warp.position += 1
    if warp.position == sm.streams[warp.stream].length:
        end = max(now + 1, warp.stores_done)
        stall(sm, warp, warp.pc, _DRAIN, now + 1, end)
        end_warp(sm, warp, now, end)
    else:
        _advance(sm, warp, row, now)


def _was_throttled(part: SubPartition, warp: Warp, row: Instruction) -> bool:
    """Return whether the warp, which issues `row`, has waited for room in the queue of memory instructions."""
    return row.kind == _MEMORY and part.pipes.ports[row.port].blocked_cycles > warp.blocked_before


def _explain_delay(sm: Sm, part: SubPartition, warp: Warp, row: Instruction, now: int) -> None:
    """Tell the observer, as stall intervals, why the warp, ready since `warp.ready`, issues only in cycle `now`.

    What held it (its pipe, the register ports, another warp that was chosen) can alternate from cycle to cycle; such a
    stretch is told as one interval a reason, in that order.
    """
    blocked = part.pipes.ports[row.port].blocked_cycles - warp.blocked_before
    waited = now - warp.ready
    dispatch = min(part.read_ports.blocked_cycles - warp.dispatch_blocked_before, waited - blocked)
    free = warp.ready + blocked
    stall(sm, warp, warp.pc, row.throttle_reason, warp.ready, free)
    stall(sm, warp, warp.pc, _DISPATCH_STALL, free, free + dispatch)
    stall(sm, warp, warp.pc, _NOT_SELECTED, free + dispatch, now)


def _execute(sm: Sm, part: SubPartition, warp: Warp, row: Instruction, now: int) -> None:
    """Let the instruction take its pipe, or a place in the memory queue; set `done` and `sources_read` of the warp."""
    spec = sm.spec
    if row.late_reads > 0:
        read_later(part.read_ports, row, now)
    if row.kind == _MULTIPLY:
        warp.done = multiply(sm, part, row, now)
        end = part.pipes.pipes[part.pipes.ports[row.port].first].free
        tell(sm, ACCESSED, ceil(end - row.multiply_cycles), ceil(end), warp.slot, warp.pc, TENSOR)
        return
    if row.kind != _MEMORY:
        beside = row.math > 0 and now >= part.multiplies_from and now < part.multiplies_until
        take_pipe(spec, part.pipes, row.port, row.pipe_slots, spec.math_interval if beside else 1.0, now)
        if row.reads_registers:
            read_registers(part.read_ports, row, warp.rank, spec.late_read_wait_cycles, now)
        warp.sources_read = now + (spec.map_drop_cycles if row.drops_map else spec.other_sources_read_cycles)
        warp.done = now + row.latency_cycles
        if row.kind == _SPECIAL:
            warp.done = ceil(behind_requests(spec, sm.memory, now)) + row.latency_cycles
        if row.kind == _COPY_FENCE:
            warp.done = max(warp.done, warp.copies_done)
        if row.kind == _BULK:
            copy_in_bulk(sm, part, warp, row, now)
        return
    cost = sm.streams[warp.stream].costs[warp.accesses]
    warp.accesses += 1
    request(sm, part, warp, row, cost, now)
    hold_entry(part.queue, spec.queue_entries, part.pipes.ports[MEMORY_PORT], warp.release, now)
    tell(sm, ACCESSED, now, warp.done, warp.slot, warp.pc, level_of(cost))
    expect_return(spec, part.write_ports, row, cost.wavefronts, warp.done)
    if row.copies:
        warp.copies_done = max(warp.copies_done, warp.done)
    elif row.writes_registers == 0:
        warp.stores_done = max(warp.stores_done, warp.done)
    elif row.fence == 0:
        warp.loads_done = max(warp.loads_done, warp.done)
    if row.fence > 0:
        fence(sm, warp, row, now)
    elif row.syncs:
        meet_gates(sm, warp, row, now)


def _advance(sm: Sm, warp: Warp, row: Instruction, now: int) -> None:
    """Move the warp on to its next instruction: set when it is ready to issue that, or leave it at a barrier."""
    below = warp.pc + 1
    warp.pc = sm.streams[warp.stream].pcs[warp.position]
    delayed = now + row.delay
    stall(sm, warp, warp.pc, _WAIT, now + 1, delayed)
    warp.ready = delayed
    if warp.pc != below:
        warp.ready = now + row.taken_delay
        stall(sm, warp, warp.pc, _BRANCH_RESOLVE, delayed, warp.ready)
    warp.state = WAITING
    if warp.gate >= 0:
        warp.state = AT_GATE
        return
    if row.fence > 0:
        wait_for_fence(sm, warp, row)
    if row.kind == _BARRIER_KIND:
        arrive(sm, warp, row, now)
    following = sm.instructions[warp.pc]
    if following.passes_barrier == 0:
        if warp.behind:
            warp.state = AT_BARRIER
            return
        wait_for_barrier(sm, warp)
    if following.reads_scoreboards:
        wait_for_scoreboards(sm, warp, following)
    line = warp.pc // sm.spec.line_instructions
    if line != warp.line:
        fetch_for(sm, warp, line, now)
