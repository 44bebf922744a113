"""The SM driven natively: the functions of `units` in one compiled loop, from the first cycle to the last."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmsim.native.function import NativeFunction
from gemmsim.sm.state import State
from gemmsim.sm.units.blocks import start_block
from gemmsim.sm.units.gates import release_one
from gemmsim.sm.units.machine import NEVER, Sm
from gemmsim.sm.units.scheduler import turn


def run(state: State) -> None:
    """Simulate all blocks of `state`, of which nothing may have been simulated yet."""
    loop = native("native_drive", "run_blocks")
    while loop(state.sm) == 0:
        state.grow()


def run_interpreted(state: State) -> None:
    """Do what `run` does, but by Python and a thousand times as slowly: for tests and debuggers."""
    while run_blocks(state.sm) == 0:
        state.grow()


@cache
def native(module: str, function: str) -> NativeFunction:
    """Return `function` of `module`, a module of this package, compiled with all of `units` that it calls.

    The function takes an `Sm` first. `module` is named from here, as "units.scheduler".
    """
    here = Path(__file__).resolve().parent
    sources = [here / "spec.py", here / "types.py", here / f"{module.replace('.', '/')}.py"]
    sources += sorted((here / "units").glob("*.py"))
    return NativeFunction(f"gemmsim.sm.{module}", function, sources)


def run_blocks(sm: Sm) -> int:
    """Simulate until all blocks have left, and return 1. Where lists become too short before that, return 0: they must
    grow (`State.grow`) before the next call, which goes on from there.
    """
    while sm.begun < min(sm.resident, sm.grid_blocks):
        start_block(sm, sm.begun, 0)
    last = 0
    while sm.room.short == 0:
        now = NEVER
        for p in range(sm.spec.sub_partitions):
            now = min(now, sm.sub_partitions[p].wakes)
        for slot in range(sm.resident):
            now = min(now, sm.blocks[slot].leaves)
        if now == NEVER and release_one(sm, last) == 0:
            return 1
        if now == NEVER:
            continue
        last = now
        slot = _leaving(sm, now)
        while slot >= 0:
            sm.blocks[slot].leaves = NEVER
            if sm.begun < sm.grid_blocks:
                start_block(sm, slot, now)
            slot = _leaving(sm, now)
        for p in range(sm.spec.sub_partitions):
            if sm.sub_partitions[p].wakes == now:
                turn(sm, p, now)
    return 0


def _leaving(sm: Sm, now: int) -> int:
    """Return the index in `sm.blocks` of the block that leaves in cycle `now`, -1 if none does. Where several leave, it
    is the one that ended first."""
    first = -1
    for slot in range(sm.resident):
        block = sm.blocks[slot]
        if block.leaves == now and (first < 0 or block.left < sm.blocks[first].left):
            first = slot
    return first
