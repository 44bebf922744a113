"""How the blocks that fit an SM change with one resource, the others as they are: the stairs of occupancy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gemmsim.analysis.limits.occupancy import Occupancy
from gemmsim.gpu.limits import blocks_by_registers, blocks_by_shared, blocks_by_warps, warps_per_block
from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.caches.carveout import choose_carveout
from gemmsim.support.warp import WARP_LANES


@dataclass(frozen=True, slots=True)
class Step:
    """From `first` to `last`, both included, `blocks` blocks and `warps` warps fit an SM; 0 where none does."""

    first: int
    last: int
    blocks: int
    warps: int


@dataclass(frozen=True, slots=True)
class Stairs:
    """resource: "registers" (a thread), "shared_bytes" (a block) or "threads" (a block); value: the launch's own."""

    resource: str
    value: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Cliffs:
    """sentences: what to save for one more block, and what would cost one; stairs: one for each resource."""

    stairs: tuple[Stairs, ...]
    sentences: tuple[str, ...]


def cliffs(occupancy: Occupancy, registers: int, shared_bytes: int, threads: int, gpu: GpuSpec) -> Cliffs:
    """The stairs around a launch with this occupancy.

    registers     a thread; shared_bytes: static and dynamic, of a block; threads: of a block

    The driver's choice of the carve-out is made anew at every point, as a launch of that shape would have it made.
    """
    sm, unit = gpu.sm, gpu.shared.allocation_unit_bytes
    stairs = (
        _stairs(
            "registers",
            registers,
            range(1, sm.max_registers_per_thread + 1),
            1,
            lambda r: _resident(r, shared_bytes, threads, gpu),
        ),
        _stairs(
            "shared_bytes",
            shared_bytes,
            range(0, gpu.shared.max_bytes_per_block + 1, unit),
            unit,
            lambda s: _resident(registers, s, threads, gpu),
        ),
        _stairs(
            "threads",
            threads,
            range(WARP_LANES, sm.max_threads_per_block + 1, WARP_LANES),
            WARP_LANES,
            lambda t: _resident(registers, shared_bytes, t, gpu),
        ),
    )
    return Cliffs(stairs, _sentences(occupancy, stairs, min(blocks_by_warps(threads, gpu), sm.max_blocks)))


def _resident(registers: int, shared_bytes: int, threads: int, gpu: GpuSpec) -> tuple[int, int]:
    """Blocks and warps an SM, as in `occupancy.theoretical_occupancy`."""
    limits = [gpu.sm.max_blocks, blocks_by_warps(threads, gpu), blocks_by_registers(registers, threads, gpu)]
    if not min(limits):
        return 0, 0
    carveout_bytes = choose_carveout(gpu, registers, threads, shared_bytes)
    blocks = min(*limits, blocks_by_shared(shared_bytes, carveout_bytes, gpu))
    return blocks, blocks * warps_per_block(threads)


def _stairs(resource: str, value: int, points: range, unit: int, resident: Callable[[int], tuple[int, int]]) -> Stairs:
    """Values between two points take as much as the next one: allocation goes in units."""
    steps: list[Step] = []
    for point in points:
        blocks, warps = resident(point)
        first = max(point - unit + 1, points.start if unit == 1 else 0)
        if steps and (steps[-1].blocks, steps[-1].warps) == (blocks, warps):
            steps[-1] = Step(steps[-1].first, point, blocks, warps)
        else:
            steps.append(Step(first, point, blocks, warps))
    return Stairs(resource, value, tuple(steps))


def _sentences(occupancy: Occupancy, stairs: tuple[Stairs, ...], most: int) -> tuple[str, ...]:
    found = []
    more = f"one more block on each SM: {occupancy.blocks_per_sm + 1} instead of {occupancy.blocks_per_sm}"
    if occupancy.registers_cliff:
        found.append(f"{occupancy.registers_cliff} registers a thread fewer give {more}.")
    if occupancy.shared_cliff_bytes:
        found.append(f"{occupancy.shared_cliff_bytes:,} bytes of shared memory a block less give {more}.")
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
    """The next step with fewer blocks; None where there is none."""
    here = next((step for step in stairs.steps if step.first <= stairs.value <= step.last), None)
    if here is None:
        return None
    return next((step for step in stairs.steps if step.first > stairs.value and step.blocks < here.blocks), None)
