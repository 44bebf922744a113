"""Defines `Report`, which has everything that a renderer of one launch needs. Renderers read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmsim.analysis.accesses.tile_maps import TileMap
from gemmsim.analysis.accesses.types import AccessSample, BlockView
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice, Bottleneck, Verification
from gemmsim.launch.spec import Labels
from gemmsim.report.former import Former
from gemmsim.trace.sanitizer.findings import Sanitized

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class SamplingReport:
    """How much of the launch was executed functionally.

    executed_instructions  warp instructions of the blocks that were executed
    notes                  `Execution.notes` of that execution
    """

    blocks_executed: int
    blocks_total: int
    executed_instructions: int
    notes: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        return self.blocks_executed == self.blocks_total


@dataclass(frozen=True, repr=False)
class Report:
    """The report of one launch: what ran (`labels`, `evidence`), and what was concluded from it.

    arguments       a text for each argument of the launch: "f32[256,256]", "f32=1.0"
    findings        problems that the executor met (out of bounds, races, ...), one line each
    notes           what this run assumed
    not_modelled    effects that no model here covers
    versions        {"gemmsim": "0.1.0", "numba-cuda": ..., "cuda": ...}
    access_samples  accesses of each memory instruction that was executed, lane by lane
    block_view      one block, thread by thread and iteration by iteration; None where that was not asked for
    tile_maps       how TMA lays out the tiles of arrays; none where the kernel copies none, or where not asked for
    sanitized       all that is known of the findings; None where the sanitizer did not run
    former          a prediction to stand beside this one; None where none was asked for
    printed         what the executed blocks printed by printf; no part of what is rendered
    """

    labels: Labels
    evidence: Evidence
    arguments: tuple[str, ...]
    verified: Verification
    sampling: SamplingReport
    bottleneck: Bottleneck
    advice: tuple[Advice, ...]
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    access_samples: tuple[AccessSample, ...] = ()
    block_view: BlockView | None = None
    sanitized: Sanitized | None = None
    former: Former | None = None
    printed: str = ""
    tile_maps: tuple[TileMap, ...] = ()

    @property
    def tflops(self) -> float | None:
        """Operations a second in units of 10**12, by `Labels.operations`; None where the launch has none."""
        flops = self.labels.operations(self.evidence.roofline.flops)
        return flops / self.evidence.timing.duration_us / 1e6 if flops else None

    def __repr__(self) -> str:
        return f"<Report: {self.labels.kernel} on {self.evidence.gpu.name}, {self.evidence.timing.duration_us:,.1f} us>"

    def _repr_html_(self) -> str:
        """The HTML that Jupyter shows."""
        from gemmsim.report.notebook import summary  # only a notebook needs it

        return summary(self.labels, self.evidence, self.bottleneck, self.verified, self.findings, self.advice)
