"""Sums up one predicted launch for a comparison: its time, and how long each unit of the GPU worked for it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gemmsim.analysis.code.instruction_mix import by_class
from gemmsim.analysis.code.k_loop import k_loop
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Bottleneck, Verification
from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, ISSUE, L2, utilisations
from gemmsim.launch.spec import Labels
from gemmsim.sm.pipes import port_of, port_pipes

UNCOUNTED = "integer"  # `precision` where the roofline does not count the operations
SPACES = ("global", "shared", "local")
_SHORT_NAMES = {DATA_STAGE: "L1/shared", L2: "L2", DRAM: "DRAM"}


@dataclass(frozen=True, slots=True)
class Use:
    """How a launch used one unit of the GPU.

    unit       its name, as in `Utilisation`
    share_pct  work of the unit, in percent of its peak
    busy_us    time that this work takes the unit at its peak
    work       how much the unit did: warp instructions, wavefronts or sectors, see `summarise`
    """

    unit: str
    share_pct: float
    busy_us: float
    work: float

    @property
    def rate_per_us(self) -> float:
        """How much work the unit can do in a microsecond at its peak."""
        return self.work / self.busy_us if self.busy_us else 0.0


@dataclass(frozen=True, slots=True)
class SpaceTraffic:
    """All accesses of a launch to one memory space; sectors and l2_sectors are 0 for shared memory."""

    requests: float = 0.0
    sectors: float = 0.0
    wavefronts: float = 0.0
    conflicts: float = 0.0
    l2_sectors: float = 0.0


@dataclass(frozen=True)
class LaunchSummary:
    """The prediction of one kernel at one size on one GPU.

    name           what the comparison calls it
    labels         kernel, size and tunables
    dtype          of A and B
    precision      of the arithmetic: one of `roofline.PRECISIONS`; UNCOUNTED where `flops` is 0
    time_us        with the launch overhead; kernel_us: without it
    flops          operations of the launch
    peak_flops     operations a second of the GPU at this precision
    shared_bytes   of a block
    local_bytes    of a thread
    product_share  share of multiply-adds among the warp instructions of the loop over K, 0 to 1; None where unknown
    blocks         of the grid
    waves          generations of resident blocks
    warps          active warps on a busy SM, mean over its cycles
    uses           every unit that did anything, busiest first
    spaces         "global", "shared", "local" -> its traffic
    kinds          kind of instruction -> warp instructions executed
    waits_us       stall reason -> part of kernel_us that warps spent in it; the parts add up to kernel_us
    engine         what ran the model of the SM: "simpy" or "native"
    """

    name: str
    labels: Labels
    dtype: str
    gpu: str
    gpu_title: str
    arch: str
    precision: str
    time_us: float
    kernel_us: float
    clock_hz: float
    flops: float
    peak_flops: float
    bottleneck: Bottleneck
    verified: Verification
    registers: int
    shared_bytes: int
    local_bytes: int
    theoretical_occupancy_pct: float
    achieved_occupancy_pct: float
    product_share: float | None
    blocks: int
    sm_count: int
    waves: float
    warps: float
    warp_instructions: float
    dram_sectors: float
    uses: tuple[Use, ...]
    spaces: dict[str, SpaceTraffic]
    kinds: dict[str, float]
    waits_us: dict[str, float]
    engine: str

    @property
    def achieved_flops(self) -> float | None:
        """Operations a second, by `Labels.operations`."""
        return self.labels.operations(self.flops) / self.time_us * 1e6 if self.flops else None

    @property
    def percent_of_peak(self) -> float | None:
        return 100 * self.achieved_flops / self.peak_flops if self.achieved_flops else None

    def use(self, unit: str) -> Use | None:
        return next((use for use in self.uses if use.unit == unit), None)

    def work(self, unit: str) -> float:
        use = self.use(unit)
        return use.work if use else 0.0

    @property
    def busiest(self) -> Use:
        return self.uses[0]

    @property
    def limited_by(self) -> str:
        """The bottleneck in a few words, for a column of a table: "L2 72%", "40/100 SMs idle", "long_scoreboard"."""
        kind, share = self.bottleneck.kind, self.bottleneck.share_pct
        if kind == "launch":
            return f"launch overhead {share:.0f}%"
        if kind == "small_grid":
            return f"{self.sm_count - self.blocks}/{self.sm_count} SMs idle"
        if kind == "latency":
            waits = {reason: held for reason, held in self.waits_us.items() if reason != "selected"}
            return max(waits, key=lambda reason: waits[reason], default=kind)
        unit = self.bottleneck.sentence.partition(":")[0]
        return f"{_SHORT_NAMES.get(unit, unit.removesuffix(' pipe'))} {share:.0f}%"


def summarise(
    name: str, labels: Labels, dtype: str, evidence: Evidence, bottleneck: Bottleneck, verified: Verification
) -> LaunchSummary:
    """Sum up a launch.

    The work of issue slots and pipes is counted in warp instructions, that of the data stage in wavefronts, that of L2
    and DRAM in sectors.
    """
    timing, gpu, program = evidence.timing, evidence.gpu, evidence.program
    kernel_us = timing.cycles / timing.sm_clock_hz * 1e6
    work = _work(evidence)
    uses = tuple(
        Use(use.unit, use.share_pct, use.share_pct / 100 * kernel_us, work.get(use.unit, 0.0))
        for use in utilisations(evidence)
        if use.share_pct > 0
    )
    stalls = sum(timing.stalls.values())
    loop = k_loop(program, evidence.executed)
    return LaunchSummary(
        name=name,
        labels=labels,
        dtype=dtype,
        gpu=gpu.name,
        gpu_title=gpu.title,
        arch=gpu.arch,
        precision=evidence.roofline.precision if evidence.roofline.flops else UNCOUNTED,
        time_us=timing.duration_us,
        kernel_us=kernel_us,
        clock_hz=timing.sm_clock_hz,
        flops=evidence.roofline.flops,
        peak_flops=evidence.roofline.peak_flops,
        bottleneck=bottleneck,
        verified=verified,
        registers=program.registers,
        shared_bytes=evidence.shared_bytes,
        local_bytes=program.local_bytes,
        theoretical_occupancy_pct=evidence.occupancy.theoretical_pct,
        achieved_occupancy_pct=timing.achieved_occupancy_pct,
        product_share=loop.product_share if loop else None,
        blocks=evidence.blocks,
        sm_count=gpu.sm.count,
        waves=timing.waves,
        warps=timing.achieved_occupancy_pct / 100 * gpu.sm.max_warps,
        warp_instructions=evidence.warp_instructions,
        dram_sectors=work[DRAM],
        uses=uses,
        spaces={space: space_traffic(evidence, space) for space in SPACES},
        kinds={str(kind): count for kind, count in by_class(evidence).items()},
        engine=timing.engine,
        waits_us={reason: kernel_us * held / stalls for reason, held in timing.stalls.items() if held and stalls},
    )


def _work(evidence: Evidence) -> dict[str, float]:
    found = {
        ISSUE: evidence.warp_instructions,
        DATA_STAGE: evidence.counters.get("l1tex__data_pipe_lsu_wavefronts.sum", 0.0),
        L2: evidence.l2_sectors,
        DRAM: evidence.dram_sectors,
    }
    pipes = evidence.gpu.pipes
    for instruction, executed in zip(evidence.program.instructions, evidence.executed, strict=True):
        if executed:
            port = port_of(instruction.opcode, evidence.program.arch, instruction.modifiers)
            for pipe in port_pipes(port, pipes):
                found[f"{pipe} pipe"] = found.get(f"{pipe} pipe", 0.0) + executed
    return found


def space_traffic(evidence: Evidence, space: str) -> SpaceTraffic:
    """Sum up requests, sectors, wavefronts, conflicts and L2 sectors of all instructions that access a memory space."""
    rows = [row for row in evidence.traffic if row.space == space]
    return SpaceTraffic(*(float(sum(getattr(row, one.name) for row in rows)) for one in fields(SpaceTraffic)))
