"""Makes switches: functions that change some inputs of the timing model so that one mechanism has no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.api import Counted
from gemmsim.gpu.improve import value_of, with_values
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Control, Program
from gemmsim.launch.spec import LaunchSpec
from gemmsim.memory.requests.coalescer import LINE_SHIFT
from gemmsim.memory.requests.shapes import Shapes
from gemmsim.memory.types import RecordCost
from gemmsim.sm.schedule import TimingOptions, schedule
from gemmsim.trace.types import Launch, WarpTrace


@dataclass(frozen=True)
class Inputs:
    """The inputs of the timing model for one launch that was counted.

    A memory record is one access of one warp. `shapes` describes the access patterns of the launch's memory records;
    `cost`, what each record costs, was computed from it. Only switches use `shapes`.
    """

    program: Program
    launch: Launch
    trace: WarpTrace
    shapes: Shapes
    cost: RecordCost
    gpu: GpuSpec
    resident_blocks_per_sm: int
    options: TimingOptions = field(default_factory=TimingOptions)

    @classmethod
    def of(cls, counted: Counted, request: LaunchSpec) -> Inputs:
        """Return the inputs that `api.analyze` gives to the timing model for the launch `request`."""
        traffic, trace = counted.traffic, counted.execution.trace
        resident = counted.occupancy.blocks_per_sm
        program, options = counted.program, TimingOptions(warm_code=request.warm_code)
        return cls(program, request.launch, trace, traffic.shapes, traffic.cost, request.gpu, resident, options)

    def time_us(self) -> float:
        """Return the predicted time in microseconds. Raises GemmsimError as `schedule` does."""
        timing = schedule(
            self.program, self.launch, self.trace, self.cost, self.gpu, self.resident_blocks_per_sm, self.options
        )
        return timing.duration_us


Switch = Callable[[Inputs], Inputs]


def gpu_numbers(values: Mapping[str, float | str]) -> Switch:
    """Return a switch that sets numbers of the GPU, named by keys such as "l2.hit_latency_cycles", to `values`.

    Where a value is a string, it is the key of another number of the GPU, and that number is taken. The rules that
    values of GPU files must obey are not checked here.
    """

    def switch(given: Inputs) -> Inputs:
        gpu = given.gpu
        found = {key: value_of(gpu, value) if isinstance(value, str) else value for key, value in values.items()}
        return replace(given, gpu=with_values(gpu, found))

    return switch


def options(change: Callable[[TimingOptions], TimingOptions]) -> Switch:
    """Return a switch that changes the timing model's options."""
    return lambda given: replace(given, options=change(given.options))


def control_bits(change: Callable[[Control], Control]) -> Switch:
    """Return a switch that applies `change` to the control bits of all instructions.

    The instructions have been executed before the switch acts, so only their timing changes.
    """

    def switch(given: Inputs) -> Inputs:
        program = given.program
        instructions = tuple(replace(one, control=change(one.control)) for one in program.instructions)
        return replace(given, program=replace(program, instructions=instructions))

    return switch


def costs(change: Callable[[Inputs], RecordCost]) -> Switch:
    """Return a switch that replaces the costs of the memory records by the costs that `change` returns."""
    return lambda given: replace(given, cost=change(given))


def _u16(array: NDArray[np.int64]) -> NDArray[np.uint16]:
    return array.astype(np.uint16)


def one_tag_cycle(given: Inputs) -> RecordCost:
    """Return costs with which no memory request occupies the tag stage of L1 for more than one cycle."""
    return replace(given.cost, tag_cycles=given.cost.tag_cycles.clip(max=1))


def even_tag_banks(given: Inputs) -> RecordCost:
    """Return costs with which the cache lines of a request are spread evenly over the tag banks of L1.

    What asks L2 for its lines one after another takes as long as before.
    """
    shapes, cost, l1 = given.shapes, given.cost, given.gpu.l1
    lines = shapes.coalesced.lines[shapes.of_record]
    asks = (cost.l2_sectors > 0) & (cost.tag_cycles >= -(-lines // l1.miss_lines_per_cycle))
    evenly = np.where(asks, cost.tag_cycles, -(-lines // l1.tag_lines_per_cycle))
    return replace(cost, tag_cycles=_u16(np.where(cost.tag_cycles > 0, evenly, 0)))


def no_bank_conflicts(given: Inputs) -> RecordCost:
    """Return costs with which a shared-memory access takes no more wavefronts than its width needs."""
    shapes, cost = given.shapes, given.cost
    least = shapes.least[shapes.of_record]
    fewer = np.where(shapes.shared[shapes.of_record], np.minimum(cost.wavefronts, least), cost.wavefronts)
    return replace(cost, wavefronts=_u16(fewer))


def no_l1_hits(given: Inputs) -> RecordCost:
    """Return costs with which L1 never hits: L2 serves all sectors of global accesses.

    The sectors that DRAM serves stay as they are.
    """
    shapes, cost = given.shapes, given.cost
    sectors = np.where(shapes.shared, 0, shapes.coalesced.sectors)[shapes.of_record]
    return replace(cost, l2_sectors=_u16(np.maximum(cost.l2_sectors, sectors)))


def none_in_flight(given: Inputs) -> RecordCost:
    """Return costs with which no hit in L2 waits for a sector that another SM has just asked DRAM for."""
    return replace(given.cost, dram_shared=np.zeros_like(given.cost.dram_shared))


def none_merged(given: Inputs) -> RecordCost:
    """Return costs with which L2 is asked for each sector, also for those that another SM asks for at the same time."""
    return replace(given.cost, merged_share=np.zeros_like(given.cost.merged_share))


def no_dram(given: Inputs) -> RecordCost:
    """Return costs with which L2 holds everything, so that no sector comes from DRAM."""
    return replace(none_in_flight(given), dram_sectors=np.zeros_like(given.cost.dram_sectors))


def lines_apart(given: Inputs) -> Inputs:
    """Return inputs in which every memory record has a cache line of its own.

    No hit then finds its line still on the way. The timing model uses the addresses for nothing else, as the costs
    already say which accesses hit and which conflict.
    """
    numbers = np.arange(len(given.trace.record_base), dtype=np.uint64)
    return replace(given, trace=replace(given.trace, record_base=numbers << np.uint64(LINE_SHIFT)))
