"""The scheduler of a sub-partition, which issues one warp instruction a cycle.

It looks only in cycles in which something can issue. What holds each warp, and from when to when, is known without
looking at the cycles in between, so stall reasons are intervals, attributed when they end.

Scheduling policy: the warp that issued last goes on if it can at once, that is when the next instruction may be issued;
else, where blocks meet at barriers and the pause was short, another warp of its block; else a warp of the oldest block
that has one that can. Of a block, the youngest goes ("greedy, then youngest": Huerta et al., "Dissecting and Modeling
the Architecture of Modern GPU Cores", MICRO'25). Warps of a block take turns with the pipes whose `warps_take_turns`
says so: the ones whose last such instruction is longest ago go first. So do those that have waited for room in the
queue of memory instructions: of eight warps that fill it, each gets the next free place in turn (own microbenchmark on
an H100, tests/records/h200_load_bursts.json).

Found on an H200 (own microbenchmarks, tests/records): of two to four blocks on an SM that never wait the oldest ends
first, in the time that it takes alone, and a later block comes after those that were there. But of blocks that load,
meet at a barrier and multiply-add, the one that computes keeps the others from issuing until it is done, the older ones
too, and all advance alike; where they mostly read shared memory, so that nothing can issue in many cycles, the oldest
goes first again (h200_turns.json, h200_block_tiles.json). Within a block, eight warps of a sub-partition that issue
independent multiplies advance unevenly, two by two, the youngest first. Eight that wait for MUFU advance alike, so that
this pipe takes turns. Those that wait for dependent results or for a full integer pipe do so, too, within 10 %, which
is not modelled: in a trial, blocks of 32 warps that wait for L2 then moved in step, and the coalesced kernel took twice
as long on an RTX A6000 as it does (see the known deviations).
"""

from __future__ import annotations

from gemmsim.sm.units.data_stage import settle_for_waiting
from gemmsim.sm.units.issue import issue
from gemmsim.sm.units.machine import ELIGIBLE, NEVER, WAITING, Sm, SubPartition, Warp
from gemmsim.sm.units.pipes import blocked_before
from gemmsim.sm.units.register_ports import dispatch_blocked_before
from gemmsim.sm.units.scoreboards import wait_for_scoreboards

_NOBODY = 1  # no warp has this rank: ranks are below 0
_NO_BLOCK = -1  # no block has this order


def turn(sm: Sm, number: int, now: int) -> int:
    """Let sub-partition `number` issue one instruction in cycle `now`, if it can, and return `sm.attention`."""
    part = sm.sub_partitions[number]
    sm.attention = 0
    chosen = _choose(sm, part, number, now)
    if chosen >= 0:
        warp = sm.warps[chosen]
        part.last_rank = warp.rank
        part.last_issue = now
        part.last_order = sm.blocks[warp.block].order
        issue(sm, part, number, warp, now)
    part.wakes = _next_look(sm, part, number, now)
    return sm.attention


def _choose(sm: Sm, part: SubPartition, number: int, now: int) -> int:
    """Return the index in `sm.warps` of the warp that issues in cycle `now`, -1 where none can."""
    chosen = -1
    next_free = part.read_ports.next_free
    pause = now - max(part.last_issue + 1, next_free)
    greedy = part.last_rank if pause == 0 else _NOBODY
    last = part.last_order if sm.blocks_take_turns and pause <= sm.spec.block_turn_cycles else _NO_BLOCK
    for w in range(number, sm.places, sm.spec.sub_partitions):
        warp = sm.warps[w]
        if warp.state == WAITING and warp.ready <= now:
            if _waits_longer(sm, warp, now):
                continue
            warp.state = ELIGIBLE
            warp.port = sm.instructions[warp.pc].port
            warp.blocked_before = blocked_before(part.pipes.ports[warp.port], warp.ready)
            warp.dispatch_blocked_before = dispatch_blocked_before(part.read_ports, warp.ready)
        if warp.state != ELIGIBLE or next_free > now or part.pipes.ports[warp.port].free_at > now:
            continue
        if chosen < 0 or _goes_before(sm, warp, sm.warps[chosen], greedy, last):
            chosen = w
    return chosen


def _waits_longer(sm: Sm, warp: Warp, now: int) -> bool:
    """Return whether the warp, which could issue in cycle `now` as far as was known, waits on, because others had the
    data stage when what one of its loads waits for came.
    """
    if sm.memory.fills.count > 0:
        settle_for_waiting(sm, now)
    if warp.moved == 0:
        return False
    warp.moved = 0
    row = sm.instructions[warp.pc]
    if row.reads_scoreboards:
        wait_for_scoreboards(sm, warp, row)
    return warp.ready > now


def _goes_before(sm: Sm, warp: Warp, other: Warp, greedy: int, last: int) -> bool:
    """Return whether `warp` issues before `other`, where both can.

    greedy  `Warp.rank` of the warp that goes on because it issued last, or _NOBODY
    last    `Block.order` of the block that issued last, or one that no block has
    """
    if warp.rank == greedy or other.rank == greedy:
        return warp.rank == greedy
    order, others = sm.blocks[warp.block].order, sm.blocks[other.block].order
    if order != others:
        return order == last or (others != last and order < others)
    return warp.issued < other.issued or (warp.issued == other.issued and warp.rank < other.rank)


def _next_look(sm: Sm, part: SubPartition, number: int, now: int) -> int:
    """Return the next cycle in which something can issue, as far as is known now; NEVER where nothing can."""
    wakes = NEVER
    for w in range(number, sm.places, sm.spec.sub_partitions):
        warp = sm.warps[w]
        if warp.state == WAITING:
            wakes = min(wakes, warp.ready)
        elif warp.state == ELIGIBLE:
            wakes = min(wakes, part.pipes.ports[warp.port].free_at)
    return max(wakes, max(part.read_ports.next_free, now + 1))
