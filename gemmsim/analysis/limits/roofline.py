"""Computes the roofline of a launch: the rate that its arithmetic and its traffic at DRAM, L2 and L1 allow.

S. Williams, A. Waterman, D. Patterson, Roofline, CACM 52(4), 2009; hierarchical as in C. Yang et al., 2020
(arXiv:2009.02449). At each level, attainable = min(peak, intensity * bandwidth); the smallest of these rates is the
bound.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.gpu.spec import GpuSpec
from gemmsim.memory.types import Traffic
from gemmsim.support.errors import GemmsimError, nearest

# Precision -> field of `GpuSpec.peak`, and how many times as high its peak is. Vendors give twice the peak of fp16 for
# fp8, and twice that of int8 for int4 (ada-wp, blackwell-wp); for single bits eight times that of int8 (a100-wp).
PRECISIONS = {
    "fp32": ("fp32_flops", 1),
    "fp64": ("fp64_flops", 1),
    "fp16": ("fp16_flops", 1),
    "tensor_fp16": ("tensor_fp16_flops", 1),
    "tensor_bf16": ("tensor_bf16_flops", 1),
    "tensor_tf32": ("tensor_tf32_flops", 1),
    "tensor_fp64": ("tensor_fp64_flops", 1),
    "tensor_int8": ("tensor_int8_ops", 1),
    "tensor_fp8": ("tensor_fp16_flops", 2),
    "tensor_int4": ("tensor_int8_ops", 2),
    "tensor_b1": ("tensor_int8_ops", 8),
}
COMPUTE = "compute"


@dataclass(frozen=True, slots=True)
class Level:
    """What one memory level allows a launch.

    name                        "dram", "l2" or "l1"
    bytes_moved                 bytes that the launch moved at this level
    peak_bytes_per_s            bandwidth, see `bandwidths`
    intensity_flops_per_byte    FLOPs / bytes_moved; infinite where nothing moved
    ridge_flops_per_byte        intensity above which the arithmetic peak is the limit, not this level
    attainable_flops            min(arithmetic peak, intensity * bandwidth), operations a second
    """

    name: str
    bytes_moved: float
    peak_bytes_per_s: float
    intensity_flops_per_byte: float
    ridge_flops_per_byte: float
    attainable_flops: float


@dataclass(frozen=True, slots=True)
class Roofline:
    """The roofs of a GPU, and where a launch stands below them.

    precision              one of PRECISIONS
    flops                  operations of the launch
    peak_flops             arithmetic peak at `GpuSpec.clock.sm_boost_hz`, operations a second
    levels                 DRAM, L2, L1
    attainable_flops       the smallest of what arithmetic and levels allow, operations a second
    bound                  what sets `attainable_flops`: "compute", "dram", "l2" or "l1"
    achieved_flops         operations a second, None where no time is known
    percent_of_attainable  achieved_flops in percent of attainable_flops, None where no time is known
    """

    precision: str
    flops: float
    peak_flops: float
    levels: tuple[Level, ...]
    attainable_flops: float
    bound: str
    achieved_flops: float | None
    percent_of_attainable: float | None

    def level(self, name: str) -> Level:
        return next(level for level in self.levels if level.name == name)


def roofline(
    flops: float,
    dram_bytes: float,
    l2_bytes: float,
    l1_bytes: float,
    time_s: float | None,
    gpu: GpuSpec,
    precision: str = "fp32",
) -> Roofline:
    """Compute the roofline of a launch that executed `flops` operations.

    dram_bytes, l2_bytes  bytes that it moved at DRAM and at L2
    l1_bytes              bytes that L1 and shared memory handed to the SMs' registers
    time_s                time that it took, None where that is not known
    precision             of the operations, one of PRECISIONS

    Raises GemmsimError for an unknown precision, and for one for which the GPU has no unit.
    """
    if precision not in PRECISIONS:
        raise GemmsimError(f"unknown precision '{precision}'{nearest(precision, PRECISIONS)}")
    field, times = PRECISIONS[precision]
    peak = float(getattr(gpu.peak, field)) * times
    if not peak:
        raise GemmsimError(f"{gpu.name} has no {precision} unit")
    moved = {"dram": dram_bytes, "l2": l2_bytes, "l1": l1_bytes}
    levels = tuple(_level(name, moved[name], bandwidth, flops, peak) for name, bandwidth in bandwidths(gpu).items())
    tightest = min(levels, key=lambda level: level.attainable_flops)
    attainable = min(peak, tightest.attainable_flops)
    achieved = flops / time_s if time_s else None
    return Roofline(
        precision=precision,
        flops=flops,
        peak_flops=peak,
        levels=levels,
        attainable_flops=attainable,
        bound=COMPUTE if tightest.attainable_flops >= peak else tightest.name,
        achieved_flops=achieved,
        percent_of_attainable=100 * achieved / attainable if achieved is not None and attainable else None,
    )


def roofline_of(traffic: Traffic, time_us: float, gpu: GpuSpec, flops: float, precision: str) -> Roofline:
    """Compute the roofline of a launch that executed `flops` operations in `time_us` and moved what `traffic` says."""
    counters, rows, sector_bytes = traffic.counters, traffic.instructions, gpu.l1.sector_bytes
    dram = counters["dram__sectors_read.sum"] + counters["dram__sectors_write.sum"]
    l2 = sum(row.l2_sectors for row in rows)
    # The data stage moves up to 128 bytes a wavefront, whether or not the lanes use them.
    l1_bytes = sum(row.wavefronts for row in rows) * gpu.l1.line_bytes
    return roofline(flops, dram * sector_bytes, l2 * sector_bytes, l1_bytes, time_us * 1e-6, gpu, precision)


def bandwidths(gpu: GpuSpec) -> dict[str, float]:
    """Return {name of a memory level: its peak bytes a second}.

    The rate of DRAM is that of the data sheet, the rate of L2 is the measured plateau, and the rate of L1 is one
    128-byte wavefront a cycle in every L1.
    """
    wavefront_bytes = gpu.shared.banks * gpu.shared.bank_bytes
    return {
        "dram": gpu.dram.peak_bytes_per_s,
        "l2": gpu.l2.read_bytes_per_s,
        "l1": gpu.sm.count * gpu.clock.sm_boost_hz * gpu.shared.wavefronts_per_cycle * wavefront_bytes,
    }


def _level(name: str, bytes_moved: float, bandwidth: float, flops: float, peak: float) -> Level:
    intensity = flops / bytes_moved if bytes_moved else float("inf")
    attainable = min(peak, intensity * bandwidth)
    return Level(name, bytes_moved, bandwidth, intensity, peak / bandwidth, attainable)
