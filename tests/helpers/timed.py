"""How long a launch takes, as `gemmsim.analyze` predicts it, without the rest of the report: advice, for which launches
are timed again, and samples of accesses. A launch is executed once for both states of the caches, and timed by the
native loop, which says the same as SimPy and is quicker."""

from __future__ import annotations

from typing import Any

from programs import cuda_program

from gemmsim import api
from gemmsim.calls.launches import launch_spec
from gemmsim.gpu import GpuSpec
from gemmsim.launch.spec import LaunchSpec
from gemmsim.sm.types import Timing

_LAST: list[tuple[object, LaunchSpec, api.Counted]] = []  # the last launch, without its caches


def timing(
    kernel: str,
    gpu: GpuSpec | str,
    caches: str = "cold",
    file: str = "",
    instances: tuple[str, ...] = (),
    **launch: Any,
) -> Timing:
    """What `gemmsim.analyze` predicts of the same launch.

    file       the file of tests/sources that `kernel` is the text of: all of its kernels are compiled and disassembled
               together. "" for an instance of a template that is compiled alone
    instances  of templates, all that the caller will ask for, as `cuda_program` takes them
    """
    spec = launch_spec(kernel, gpu, {**launch, "caches": caches, "engine": "native"})
    asked = (kernel, gpu, launch)
    if not _LAST or _LAST[0][0] != asked:
        program = cuda_program(file, launch["entry"], spec.gpu.arch, instances) if file else None
        _LAST[:] = [(asked, spec, api.count(spec, program))]
    _, before, counted = _LAST[0]
    return api.time(counted if before.warm_caches == spec.warm_caches else api.recount(counted, spec), spec)
