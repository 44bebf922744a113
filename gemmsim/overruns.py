"""Looks for accesses from one shared array into the next, and says where that is not possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gemmsim.compile import CudaKernel, default_cache
from gemmsim.compile.apart import program_apart
from gemmsim.compile.shared_structs import shared_structs
from gemmsim.isa.program import Program
from gemmsim.launch.spec import LaunchSpec
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.beyond_arrays import beyond_arrays, with_overruns
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitizer.findings import Finding, Sanitized

_LOOKED = "sanitizer: accesses from one shared array into the next were"
_DYNAMIC = "dynamic shared memory"


def look_beyond(
    found: Sanitized,
    spec: LaunchSpec,
    program: Program,
    executing: Callable[[Program], Executor],
    blocks: Sequence[int],
) -> Sanitized:
    """Return what was found in a launch with its overruns, and a note where not everything was looked at.

    program    the kernel as it is
    executing  makes the sanitizing executor of a program for the launch
    """
    try:
        overruns, why = _overruns(spec, program, executing, blocks)
    except GemmsimError as error:
        overruns, why = [], str(error)
    if found.stopped:  # by what is a finding already
        return with_overruns(found, overruns)
    dynamic = _DYNAMIC if spec.launch.dynamic_shared_bytes else ""
    structs = shared_structs(spec.kernel) if isinstance(spec.kernel, CudaKernel) else ()
    inside = [name for name in (dynamic, *(f"the struct {one}" for one in structs)) if name]
    if not why and inside and not program.static_shared_bytes:
        why = f"to the compiler {_DYNAMIC} is one array"
    if why:
        note = f"{_LOOKED} not looked for: {why}"
    else:
        note = f"{_LOOKED} not looked for within {' and '.join(inside)}, to the compiler one array" if inside else ""
    return replace(with_overruns(found, overruns), notes=(*found.notes, *([note] if note else [])))


def _overruns(
    spec: LaunchSpec, program: Program, executing: Callable[[Program], Executor], blocks: Sequence[int]
) -> tuple[list[Finding], str]:
    """Return the overruns, and why they were not looked for. Raises GemmsimError as `program_apart` does."""
    apart = program_apart(spec.kernel, program, default_cache() if spec.settings.use_cache else None)
    if apart is None:
        return [], ""
    found = beyond_arrays(executing(apart.program), blocks, apart.arrays)
    return found or [], "a block of the code with gaps did not come to its end" if found is None else ""
