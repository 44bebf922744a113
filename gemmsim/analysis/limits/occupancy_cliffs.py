"""Computes how many blocks fit an SM as one resource varies and the others stay. At a cliff that number changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmsim.analysis.limits.occupancy import Occupancy
from gemmsim.gpu.limits import blocks_by_registers, blocks_by_shared, blocks_by_warps, warps_per_block
from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.caches.carveout import choose_carveout
from gemmsim.support.plurals import plural, verb
from gemmsim.support.warp import WARP_LANES


@dataclass(frozen=True, slots=True)
class Step:
    """Amounts of a resource, `first` to `last` (included), with which an SM holds `blocks` blocks and `warps` warps."""

    first: int
    last: int
    blocks: int
    warps: int


@dataclass(frozen=True, slots=True)
class Stairs:
    """How many blocks an SM holds for each amount of one resource.

    resource  "registers" (of a thread), "shared_bytes" or "threads" (of a block)
    value     how much of the resource the launch uses
    steps     by ascending amount of the resource; the numbers of blocks and warps are 0 where no block fits
    """

    resource: str
    value: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Cliffs:
    """The changes of a launch that would change the number of blocks on an SM.

    stairs     one `Stairs` for each resource
    sentences  what to save for one more block, and what would cost a block
    """

    stairs: tuple[Stairs, ...]
    sentences: tuple[str, ...]


def cliffs(occupancy: Occupancy, registers: int, shared_bytes: int, threads: int, gpu: GpuSpec) -> Cliffs:
    """Compute how the number of blocks on an SM changes with each resource of a launch while its others stay.

    occupancy     of the launch
    registers     of a thread
    shared_bytes  of a block, static and dynamic
    threads       of a block

    At every point the carve-out is chosen anew, as the driver would choose it for a launch with these resources.
    """
    sm = gpu.sm
    register_counts = range(1, sm.max_registers_per_thread + 1)
    byte_counts = range(0, gpu.shared.max_bytes_per_block + 1, gpu.shared.allocation_unit_bytes)
    thread_counts = range(WARP_LANES, sm.max_threads_per_block + 1, WARP_LANES)
    stairs = (
        _stairs("registers", registers, register_counts, lambda r: _resident(r, shared_bytes, threads, gpu)),
        _stairs("shared_bytes", shared_bytes, byte_counts, lambda s: _resident(registers, s, threads, gpu)),
        _stairs("threads", threads, thread_counts, lambda t: _resident(registers, shared_bytes, t, gpu)),
    )
    return Cliffs(stairs, _sentences(occupancy, stairs, min(blocks_by_warps(threads, gpu), sm.max_blocks)))


def _resident(registers: int, shared_bytes: int, threads: int, gpu: GpuSpec) -> tuple[int, int]:
    """Return (blocks, warps) that an SM holds, computed as by `theoretical_occupancy`; (0, 0) where no block fits."""
    limits = [gpu.sm.max_blocks, blocks_by_warps(threads, gpu), blocks_by_registers(registers, threads, gpu)]
    if not min(limits):
        return 0, 0
    carveout_bytes = choose_carveout(gpu, registers, threads, shared_bytes)
    blocks = min(*limits, blocks_by_shared(shared_bytes, carveout_bytes, gpu))
    return blocks, blocks * warps_per_block(threads)


def _stairs(resource: str, value: int, points: range, resident: Callable[[int], tuple[int, int]]) -> Stairs:
    """Build the stairs of a resource from the number of blocks at each of the amounts `points`.

    `resident` returns the (blocks, warps) that an SM holds at an amount. An amount between two points takes as much of
    the resource as the point above it, because resources are allocated in units.
    """
    steps: list[Step] = []
    for point in points:
        blocks, warps = resident(point)
        first = max(point - points.step + 1, points.start if points.step == 1 else 0)
        if steps and (steps[-1].blocks, steps[-1].warps) == (blocks, warps):
            steps[-1] = Step(steps[-1].first, point, blocks, warps)
        else:
            steps.append(Step(first, point, blocks, warps))
    return Stairs(resource, value, tuple(steps))


def _sentences(occupancy: Occupancy, stairs: tuple[Stairs, ...], most: int) -> tuple[str, ...]:
    found = []
    more = f"one more block on each SM: {occupancy.blocks_per_sm + 1} instead of {occupancy.blocks_per_sm}"
    if occupancy.registers_cliff:
        saved = f"{plural(occupancy.registers_cliff, 'register')} a thread fewer"
        found.append(f"{saved} {verb(occupancy.registers_cliff, 'gives', 'give')} {more}.")
    if occupancy.shared_cliff_bytes:
        saved = f"{plural(occupancy.shared_cliff_bytes, 'byte')} of shared memory a block less"
        found.append(f"{saved} {verb(occupancy.shared_cliff_bytes, 'gives', 'give')} {more}.")
    if not found and occupancy.blocks_per_sm >= most:
        found.append("The SM has no slots for more blocks of this size: nothing saved gives one more.")
    elif not found:
        found.append("Neither fewer registers nor less shared memory alone gives one more block on an SM.")
    for one, what in ((stairs[0], "registers a thread"), (stairs[1], "bytes of shared memory a block")):
        if fall := _next_down(one):
            left = (
                f"an SM holds {fall.blocks} instead of {occupancy.blocks_per_sm}"
                if fall.blocks
                else "no block fits an SM"
            )
            found.append(f"From {fall.first:,} {what} on ({fall.first - one.value:,} more than now) {left}.")
    return tuple(found)


def _next_down(stairs: Stairs) -> Step | None:
    """Return the first step above the launch's amount that has fewer blocks, None where there is no such step."""
    here = next((step for step in stairs.steps if step.first <= stairs.value <= step.last), None)
    if here is None:
        return None
    return next((step for step in stairs.steps if step.first > stairs.value and step.blocks < here.blocks), None)
