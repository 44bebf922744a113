"""Predicts launches of the corpus that are too large to execute in full, and holds them to what is known of them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from gemmsim import api
from gemmsim.compile import compile_kernel, default_cache
from gemmsim.gpu.improve import with_values
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.spec import LaunchSpec, Settings
from gemmsim.support.provenance import Provenance

from .closed_forms import closed_forms, compulsory_sectors
from .compare import wavefronts_a_step, why
from .corpus import Case, launch_spec
from .extrapolate import extrapolated
from .limits import limits

GOAL_SECONDS, LIMIT_SECONDS = 5.0, 40
FOOTPRINT_SHARE = 0.01  # how far the sectors that all blocks read together may be from those that they read by hand
READ, L2_READ = "dram__sectors_read.sum", "lts__t_sectors_op_read.sum"
_L2_OTHER = ("l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum")


@dataclass(frozen=True)
class Prediction:
    """What was predicted of one large launch, and what of it cannot be.

    refused        why there is no prediction, "" where there is one
    seconds        CPU time of the prediction on this machine, the compiler not included
    time_us        the predicted time
    dram_sectors   sectors read from DRAM
    roomy_sectors  sectors read from DRAM with an L2 that holds all arrays, so that each comes once
    compulsory     sectors of the arguments that the kernel reads at least once
    wrong_forms    counters marked exact that differ from those worked out by hand: name -> (predicted, by hand)
    inexact        counters worked out by hand that are not marked exact: name -> (predicted, by hand)
    impossible     what cannot be, a few words each
    """

    name: str
    tile: int
    size: str
    refused: str = ""
    seconds: float = 0.0
    time_us: float = 0.0
    blocks: int = 0
    grid_blocks: int = 0
    dram_sectors: float = 0.0
    roomy_sectors: float = 0.0
    compulsory: int = 0
    wrong_forms: dict[str, tuple[float, float]] = field(default_factory=dict)
    inexact: dict[str, tuple[float, float]] = field(default_factory=dict)
    impossible: tuple[str, ...] = ()

    @property
    def failures(self) -> list[str]:
        """Return what is out of bounds, a few words each."""
        if self.refused:
            return [f"refused: {self.refused}"]
        found = [f"{len(self.wrong_forms)} counters are not as worked out by hand"] if self.wrong_forms else []
        late = [f"{self.seconds:.1f} s"] if self.seconds > GOAL_SECONDS else []
        return [*found, *self.impossible, *late]


def predict(case: Case, gpu: GpuSpec) -> Prediction:
    """Predict a launch of the corpus from a sample; hold it to closed forms, short full executions and bounds."""
    forms = extrapolated(case, gpu) | closed_forms(case, gpu.sm.count, wavefronts_a_step(case, gpu))
    compulsory = compulsory_sectors(case, gpu.sm.count)
    return held_to(case.kernel.name, case.tile, case.size, launch_spec(case, gpu, Settings()), forms, compulsory)


def held_to(name: str, tile: int, size: str, spec: LaunchSpec, forms: dict[str, float], compulsory: int) -> Prediction:
    """Predict `spec`, and hold its counters to `forms` and its DRAM reads to `compulsory` sectors and what L2 is asked.

    The kernel is compiled before the clock starts.
    """
    program = compile_kernel(spec.kernel, spec.gpu.arch, default_cache())
    begin = time.process_time()
    try:
        with limits(LIMIT_SECONDS):
            counted = api.count(spec, program)
            timing = api.time(counted, spec)
    except Exception as error:
        seconds = time.process_time() - begin
        return Prediction(name, tile, size, why(error), seconds, grid_blocks=spec.launch.blocks)
    seconds, found = time.process_time() - begin, counted.traffic.counters
    impossible = []
    roomy = _with_a_roomy_l2(counted, spec)
    if abs(roomy / compulsory - 1) > FOOTPRINT_SHARE:
        impossible.append(f"{roomy / compulsory:.2f} times the sectors that the kernel reads")
    if found[READ] < compulsory * (1 - FOOTPRINT_SHARE):
        impossible.append(f"DRAM is read for {found[READ] / compulsory:.2f} of the sectors that the kernel reads")
    asked = found[L2_READ] + sum(found[name] for name in _L2_OTHER)
    if found[READ] > asked:
        impossible.append(f"DRAM reads are {found[READ] / asked:.2f} of what L2 is asked for")
    both = {name: (found[name], value) for name, value in forms.items()}
    exact = {name for name, how in counted.traffic.provenance.items() if how is Provenance.EXACT}
    return Prediction(
        name,
        tile,
        size,
        seconds=seconds,
        time_us=timing.duration_us,
        blocks=len(counted.execution.trace.blocks),
        grid_blocks=counted.launch.blocks,
        dram_sectors=found[READ],
        roomy_sectors=roomy,
        compulsory=compulsory,
        wrong_forms={name: pair for name, pair in both.items() if name in exact and pair[0] != pair[1]},
        inexact={name: pair for name, pair in both.items() if name not in exact},
        impossible=tuple(impossible),
    )


def _with_a_roomy_l2(counted: api.Counted, spec: LaunchSpec) -> float:
    """Return how many sectors DRAM would be read for if L2 held all that the launch accesses."""
    array_bytes = sum(4 * math.prod(argument.shape) for argument in spec.launch.args if argument.shape)
    l2_bytes = 1 << (4 * array_bytes).bit_length()  # each of two partitions may hold a copy of what both read
    gpu = with_values(spec.gpu, {"l2.size_bytes": max(l2_bytes, spec.gpu.l2.size_bytes)})
    return api.recount(counted, replace(spec, gpu=gpu)).traffic.counters[READ]
