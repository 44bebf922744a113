"""Executes launches of the corpus in full and from a sample, and says how far apart the counters are."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from gemmsim import api
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance

from .closed_forms import LOAD_WAVEFRONTS, closed_forms, expected_c
from .corpus import Case, launch_spec
from .mapping import TILE_STEPS

SECTORS_PCT, TIME_PCT = 3.0, 1.5  # how far a sample may be from the full execution: sectors of caches and DRAM, time
_SMALL = 0.01  # a counter below this share of its group is compared with the group: reads and writes of DRAM are one
_MODELLED = {
    "L1 hits": (
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    ),
    "L2": ("lts__t_sectors.sum", "lts__t_sectors.sum"),
    "L2 hits": ("lts__t_sectors_srcunit_tex_lookup_hit.sum", "lts__t_sectors.sum"),
}


@dataclass(frozen=True)
class Comparison:
    """How a sample differs from the full execution of one launch.

    refused      why there is no prediction from a sample, "" where there is one
    sampled      whether the sample is only a part of the grid
    blocks       blocks executed for the sample, of `grid_blocks`
    seconds      CPU time of the sampled prediction on this machine, the compiler not included
    full_seconds the same of the full execution
    exact        counters of the sample marked exact, of `full_exact` in the full execution
    wrong_exact  those of them that differ: name -> (sampled, full)
    wrong_forms  counters of the full execution that differ from those worked out by hand: name -> (full, by hand)
    wrong_c      largest error of C in the full execution, in roundoffs allowed; above 1 is wrong
    errors_pct   "L1 hits", "L2", "L2 hits", "DRAM read", "DRAM write", "time" -> 100 * (sampled - full) / full
    """

    case: Case
    refused: str = ""
    sampled: bool = False
    blocks: int = 0
    grid_blocks: int = 0
    seconds: float = 0.0
    full_seconds: float = 0.0
    exact: int = 0
    full_exact: int = 0
    wrong_exact: dict[str, tuple[float, float]] | None = None
    wrong_forms: dict[str, tuple[float, float]] | None = None
    wrong_c: float = 0.0
    errors_pct: dict[str, float] | None = None

    @property
    def failures(self) -> list[str]:
        """Return what is out of bounds, a few words each."""
        if self.refused:
            return [f"refused: {self.refused}"]
        found = [f"{len(self.wrong_exact)} exact counters differ"] if self.wrong_exact else []
        found += [f"{len(self.wrong_forms)} counters are not as worked out by hand"] if self.wrong_forms else []
        found += ["C is wrong"] if self.wrong_c > 1 else []
        for name, error in (self.errors_pct or {}).items():
            if abs(error) > limit_pct(name):
                found.append(f"{name} {error:+.1f} %")
        return found


def limit_pct(name: str) -> float:
    """Return how many percent an entry of `Comparison.errors_pct` may be from 0."""
    return TIME_PCT if name == "time" else SECTORS_PCT


def compare(case: Case, gpu: GpuSpec) -> Comparison:
    """Execute `case` in full and from a sample, however small it is, and compare."""
    spec = launch_spec(case, gpu, Settings(full=True))
    program = compile_kernel(spec.kernel, gpu.arch, default_cache())
    full, full_us, full_seconds = _predicted(spec, program)
    sampled_spec = replace(spec, settings=Settings(full_below=0))
    try:
        sample, sample_us, seconds = _predicted(sampled_spec, program)
    except Exception as error:
        return Comparison(case, refused=why(error), grid_blocks=full.launch.blocks, full_seconds=full_seconds)
    ours, theirs = sample.traffic.counters, full.traffic.counters
    exact = [name for name, how in sample.traffic.provenance.items() if how is Provenance.EXACT]
    forms = closed_forms(case, gpu.sm.count, wavefronts_a_step(case, gpu))
    return Comparison(
        case,
        sampled=sample.execution.sampled,
        blocks=len(sample.execution.trace.blocks),
        grid_blocks=full.launch.blocks,
        seconds=seconds,
        full_seconds=full_seconds,
        exact=len(exact),
        full_exact=sum(how is Provenance.EXACT for how in full.traffic.provenance.values()),
        wrong_exact={name: (ours[name], theirs[name]) for name in exact if ours[name] != theirs[name]},
        wrong_forms={name: (theirs[name], value) for name, value in forms.items() if theirs[name] != value},
        wrong_c=_error_of_c(case, gpu, full),
        errors_pct=_errors(ours, theirs) | {"time": 100 * (sample_us / full_us - 1)},
    )


def wavefronts_a_step(case: Case, gpu: GpuSpec) -> float:
    """Return the wavefronts of shared loads of one block in a step of K, from a launch of one tile and two steps."""
    if case.kernel.scheme == "per_thread":
        return 0.0
    one = replace(case, m=case.tile, n=case.tile, k=2 * TILE_STEPS[case.tile], pad=0)
    first = replace(one, kernel=replace(case.kernel, scheme="by_tile", order="RowMajor2D", adds=None))
    found = api.count(launch_spec(first, gpu, Settings(full=True)))
    return found.traffic.counters[LOAD_WAVEFRONTS] / 2


def why(error: Exception) -> str:
    """Return why a prediction failed: the message of GemmsimError; the name of any other error, which is a defect."""
    return str(error) if isinstance(error, GemmsimError) else f"defect, {type(error).__name__}: {error}"


def _predicted(spec: LaunchSpec, program: Program) -> tuple[api.Counted, float, float]:
    """Return what was counted, the predicted time in microseconds, and the CPU seconds that both took."""
    begin = time.process_time()
    counted = api.count(spec, program)
    timing = api.time(counted, spec)
    return counted, timing.duration_us, time.process_time() - begin


def _errors(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    found = {}
    for label, (name, of) in _MODELLED.items():
        found[label] = 100 * (ours[name] - theirs[name]) / theirs[of] if theirs[of] else 0.0
    reads, writes = "dram__sectors_read.sum", "dram__sectors_write.sum"
    both = theirs[reads] + theirs[writes]
    for label, name in (("DRAM read", reads), ("DRAM write", writes)):
        found[label] = 100 * (ours[name] - theirs[name]) / max(theirs[name], _SMALL * both, 1.0)
    return found


def _error_of_c(case: Case, gpu: GpuSpec, full: api.Counted) -> float:
    """Return the largest error of C as a multiple of what any order of summation allows: (K + 3) u sum|a b|.

    Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    a, b = (np.asarray(argument.value) for argument in full.launch.args[:2])
    c = np.asarray(full.execution.outputs[2])[:, : case.n]
    expected = expected_c(case, gpu.sm.count, a, b)
    allowed = (case.k + 3) * 2.0**-24 * expected_c(case, gpu.sm.count, np.abs(a), np.abs(b))
    return float((np.abs(c - expected) / np.maximum(allowed, 1e-30)).max())
