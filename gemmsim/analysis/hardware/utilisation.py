"""Works out how busy each unit of the GPU was over the launch, in percent of what it can do."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.analysis.evidence import Evidence
from gemmsim.support.plurals import plural

DATA_STAGE = "L1/shared data stage"
ISSUE = "issue slots"
L2 = "L2 bandwidth"
DRAM = "DRAM bandwidth"
ATOMICS = "L2 atomics"


@dataclass(frozen=True, slots=True)
class Utilisation:
    """How busy one unit was.

    unit       its name: ISSUE, DATA_STAGE, L2, DRAM or ATOMICS, or that of a pipe, such as "fmaheavy pipe"
    share_pct  what it did, in percent of its peak
    detail     the amount of work that kept it busy, "" where none is said
    """

    unit: str
    share_pct: float
    detail: str


def utilisations(evidence: Evidence) -> tuple[Utilisation, ...]:
    """Return how busy each unit was whose use is known, the busiest first.

    The time over which a unit could have been busy is that of the kernel, without launch overhead. Units that each SM
    has count on the SMs that have blocks; L2 and DRAM are the whole GPU's.
    """
    return tuple(sorted(_all(evidence), key=lambda use: -use.share_pct))


def _all(evidence: Evidence) -> list[Utilisation]:
    timing, gpu, counters = evidence.timing, evidence.gpu, evidence.counters
    seconds = _seconds(evidence)
    uses = [Utilisation(ISSUE, timing.issue_active_pct, plural(evidence.warp_instructions, "warp instruction"))]
    wavefronts = counters.get("l1tex__data_pipe_lsu_wavefronts.sum")
    if wavefronts is not None:
        uses.append(Utilisation(DATA_STAGE, data_stage_pct(evidence, wavefronts), plural(wavefronts, "wavefront")))
    merged = sum(row.merged_sectors for row in evidence.traffic)  # L2 moves them with another SM's request
    if l2_bytes := (evidence.l2_sectors - merged) * gpu.l2.sector_bytes:
        uses.append(_bandwidth(L2, l2_bytes, seconds, gpu.l2.read_bytes_per_s))
    if atomic_us := sum(row.atomic_us for row in evidence.traffic):
        uses.append(Utilisation(ATOMICS, 1e-4 * atomic_us / seconds, f"the busiest slice for {atomic_us:,.1f} us"))
    if dram_bytes := evidence.dram_sectors * gpu.l2.sector_bytes:
        uses.append(_bandwidth(DRAM, dram_bytes, seconds, _dram_peak(evidence)))
    uses += [Utilisation(f"{pipe} pipe", share, "") for pipe, share in timing.pipe_utilisation_pct.items()]
    return uses


def data_stage_pct(evidence: Evidence, wavefronts: float) -> float:
    """Return what wavefronts take of the data stages of the SMs that have blocks, in percent."""
    sms = min(evidence.gpu.sm.count, evidence.blocks)
    return 100 * wavefronts / (evidence.timing.cycles * sms * evidence.gpu.shared.wavefronts_per_cycle)


def l2_pct(evidence: Evidence, size_bytes: float) -> float:
    """Return what moving so many bytes takes of L2's bandwidth over the kernel's time, in percent."""
    return 100 * size_bytes / (_seconds(evidence) * evidence.gpu.l2.read_bytes_per_s)


def dram_pct(evidence: Evidence, size_bytes: float) -> float:
    """Return what moving so many bytes takes of what DRAM can reach over the kernel's time, in percent."""
    return 100 * size_bytes / (_seconds(evidence) * _dram_peak(evidence))


def _seconds(evidence: Evidence) -> float:
    return evidence.timing.cycles / evidence.timing.sm_clock_hz


def _dram_peak(evidence: Evidence) -> float:
    return evidence.gpu.dram.peak_bytes_per_s * evidence.gpu.dram.achievable_fraction


def _bandwidth(unit: str, size_bytes: float, seconds: float, peak_bytes_per_s: float) -> Utilisation:
    rate = size_bytes / seconds
    detail = f"{size_bytes / 1e6:,.1f} MB at {rate / 1e9:,.0f} of {peak_bytes_per_s / 1e9:,.0f} GB/s"
    return Utilisation(unit, 100 * rate / peak_bytes_per_s, detail)
