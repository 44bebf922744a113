"""L1's data stage, which L1 and shared memory have in common: requests take it as they arrive, and so does what comes.

What a load misses comes from L2 and takes the stage as the load would have if it had hit. Until then the stage serves
other requests, of which some issue later than the load and are booked before it: so what comes is booked when all that
arrives before it is known, and the load may be done later than was expected when it issued. Where both wait, requests
and what comes take the stage in turn: after a request, what comes has it for `Spec.fill_turn` times as long.

Found on an H200 (own microbenchmark, tests/records/h200_load_bursts.json): matrix loads behind loads that miss go on at
once, and later get a part of the stage, half of it beside loads of eight wavefronts and a quarter beside those of 32.
"""

from __future__ import annotations

from math import ceil, floor

from gemmsim.sm.spec import Spec
from gemmsim.sm.units.execution import AccessCost
from gemmsim.sm.units.fills import Fill
from gemmsim.sm.units.instruction import Instruction
from gemmsim.sm.units.machine import GONE, MemoryPath, Sm, Warp
from gemmsim.sm.units.server import book


def pass_data_stage(sm: Sm, arrival: float, cycles: float, now: int) -> float:
    """Book a request that issues in cycle `now` and arrives at the data stage at `arrival`. Return when it begins."""
    settle(sm, arrival, now)
    sm.memory.fills.turn = sm.spec.fill_turn * cycles
    return _take_banks(sm, now, book(sm.memory.data, now, arrival, cycles), cycles)


def behind_returns(spec: Spec, memory: MemoryPath, row: Instruction, cost: AccessCost, arrival: float) -> float:
    """Return for how many cycles a request that arrives at the data stage at `arrival` waits there for what loads
    before it have returned, and could not write into registers at once.

    A load of 128 bits a lane that takes two wavefronts, because lanes share words, returns two registers with each, as
    many as a sub-partition writes in a cycle. Where instructions write their results, it waits, and what others return
    waits behind it. Wavefronts that return no register of their own, of conflicts or of stores, make up for that (own
    microbenchmark on an H200, tests/records/h200_shared_loads.json).
    """
    spare = cost.wavefronts - row.even_returns - row.odd_returns - 2 * row.pair_returns
    memory.owed = max(memory.owed - max(spare, 0), -spec.load_write_spare_wavefronts)
    if memory.owed <= 0:
        return 0.0
    waits = memory.owed if memory.data.next_free > arrival else 0.0
    memory.owed = 0.0
    return waits


def settle(sm: Sm, until: float, now: int) -> None:
    """Let all that comes from L2 up to cycle `until` take the data stage, and hold the scoreboards of its loads until
    they are done. `now` is the cycle in which that is asked for.
    """
    fills = sm.memory.fills
    while fills.count > 0:
        fill = fills.rows[fills.first]
        at = max(fill.at, fills.free)
        if at > until:
            return
        cycles = min(fill.cycles, max(fills.turn, 1.0)) if fills.turn > 0 else fill.cycles
        asked = min(now, floor(at))
        fills.free = _take_banks(sm, asked, book(sm.memory.data, asked, at, cycles), cycles) + cycles
        fill.cycles -= cycles
        if fill.cycles <= 0:
            _expect(sm, fill, fills.free + fill.until_use)
            fills.first = (fills.first + 1) % fills.room.entries
            fills.count -= 1


def settle_for_waiting(sm: Sm, now: int) -> None:
    """Settle what has come up to cycle `now`, and let all loads whose data has come, but not yet passed, wait at least
    for as long as it will take if nothing else does.
    """
    settle(sm, float(now), now)
    fills = sm.memory.fills
    free = fills.free
    for i in range(fills.count):
        fill = fills.rows[(fills.first + i) % fills.room.entries]
        if fill.at > now:
            return
        free = max(free, fill.at) + fill.cycles
        _expect(sm, fill, free + fill.until_use)


def _take_banks(sm: Sm, now: int, arrival: float, cycles: float) -> float:
    """Return when what has the data stage from cycle `arrival` on finds the banks free of operands of wgmma."""
    if sm.memory.operand_cycles == 0:
        return arrival
    return book(sm.memory.banks, now, arrival, cycles)


def _expect(sm: Sm, fill: Fill, done: float) -> None:
    """Hold the scoreboard of the load at least until `done`."""
    cycle = ceil(done)
    warp = sm.warps[fill.warp]
    if cycle > fill.expected:
        if warp.state != GONE and warp.rank == fill.rank:
            _hold_longer(sm, warp, fill, cycle)
        fill.expected = cycle


def _hold_longer(sm: Sm, warp: Warp, fill: Fill, done: int) -> None:
    """Hold the scoreboard of a load until `done` instead of the cycle that was expected."""
    s = fill.scoreboard
    if s < 0:
        return
    if done > warp.scoreboards[s]:
        warp.scoreboards[s] = done
        warp.reasons[s] = fill.reason
    warp.moved = 1
    if sm.counted >> s & 1 == 0:
        return
    first, count = s * sm.room.entries, warp.outstanding_counts[s]
    i = first
    while i < first + count and warp.outstanding[i] != fill.expected:
        i += 1
    while i + 1 < first + count and warp.outstanding[i + 1] < done:
        warp.outstanding[i] = warp.outstanding[i + 1]
        i += 1
    if i < first + count:
        warp.outstanding[i] = done
