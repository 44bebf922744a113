"""Defines one combination of a sweep (`Job`), and the key under which its result is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import gemmsim
from gemmsim.analysis.studies.ranking import Point
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import KernelSource, PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.launch.spec import LaunchSpec
from gemmsim.studies.compare import Outcome, Task, run_task
from gemmsim.support.version import MODEL_VERSION

# Folders that `model_hash` leaves out. No prediction depends on those that read requests and show results, and the
# numbers in `presets` have a hash of their own.
_NO_MODEL = ("cli", "report", "testing", "presets")


@dataclass(frozen=True)
class Job:
    """One combination of a sweep. It is small and can be sent to another process or machine.

    point  what the combination is: kernel, tunables, size and GPU
    task   the launch to predict, or a reason why there is none
    """

    point: Point
    task: Task

    def run(self) -> Outcome:
        return run_task(self.task)


def keys_of(jobs: Iterable[Job]) -> list[str]:
    """Return the key of each job: a hash of the launch, the kernel's source, the GPU's numbers and the models.

    The hash is a SHA-256, written as 64 hexadecimal digits. Where one of the four changes, the key changes, so that a
    result that is out of date is never found. The files of a kernel are read once, however many jobs it has. Raises
    GemmsimError where they cannot be read.
    """
    hashes: dict[tuple[KernelSource, str], str] = {}
    found = []
    for job in jobs:
        parts: list[object] = [asdict(job.point), MODEL_VERSION, model_hash()]
        spec = job.task.spec
        if isinstance(spec, LaunchSpec):
            source = _common_source(spec.kernel), spec.gpu.arch
            if source not in hashes:
                hashes[source] = cache_key(*source, tool_versions())
            parts += [hashes[source], spec.gpu.sha256, _asked(spec)]
        found.append(hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest())
    return found


def key_of(job: Job) -> str:
    """Return the key of one job, see `keys_of`."""
    return keys_of([job])[0]


def _common_source(kernel: KernelSource) -> KernelSource:
    """Return the kernel without types, tunables and entry, which may differ between combinations of a sweep.

    The key of a job has them nevertheless, from `_asked` and `Point`.
    """
    if isinstance(kernel, PythonKernel):
        return replace(kernel, signature=(), tunables=None)
    return replace(kernel, entry=None)


def _asked(spec: LaunchSpec) -> dict[str, object]:
    """Return the launch's part of a job's key: {name: text, number or list} of grid, arguments, settings and so on."""
    launch, settings = spec.launch, asdict(spec.settings)
    del settings["use_cache"]
    return {
        "entry": "" if isinstance(spec.kernel, PythonKernel) else spec.kernel.entry,
        "grid": launch.grid,
        "block": launch.block,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "args": [repr(one) for one in launch.args],
        "parameters": repr(launch.parameters),
        "verify": asdict(spec.verify) if spec.verify else None,
        "checks": repr(spec.checks),
        "seed": spec.seed,
        "warm_caches": spec.warm_caches,
        "settings": settings,
    }


@cache
def model_hash() -> str:
    """Return the SHA-256 of the code and the tables that predictions depend on, as 64 hexadecimal digits.

    This hash is part of a job's key. A result that was stored before a change of the code or tables is therefore not
    found, even where MODEL_VERSION is the same.
    """
    folder = Path(gemmsim.__file__).parent
    digest = hashlib.sha256()
    for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.toml")]):
        name = file.relative_to(folder)
        if not set(name.parts) & set(_NO_MODEL):
            digest.update(name.as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
