"""What a sweep asks of each combination, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import gemmsim
from gemmsim.analysis.studies.ranking import Point
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import PythonKernel
from gemmsim.compile.toolchain import tool_versions
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.cases import FROM_A_SAMPLE, LadderCase, ladder_request
from gemmsim.launch.ladder import kernel_info, kernel_path
from gemmsim.launch.request import AnalyzeRequest, Sampling
from gemmsim.support.version import MODEL_VERSION

# Parts of gemmsim that say how something is asked or shown: a change there leaves predictions as they are.
_NO_MODEL = ("cli", "report", "testing")


class Job(Protocol):
    """A combination that can be sent to another process or machine: picklable, and small.

    asked        all that decides the answer beside source, GPU and model: {name: text or number}
    source_name  what `source_hash` is of: jobs with the same one have the same
    """

    @property
    def point(self) -> Point: ...

    @property
    def gpu(self) -> GpuSpec: ...

    @property
    def asked(self) -> dict[str, object]: ...

    @property
    def source_name(self) -> str: ...

    def source_hash(self) -> str:
        """Of the kernel's files and the tools that compile them. Raises GemmsimError where they cannot be read."""
        ...

    def request(self) -> AnalyzeRequest:
        """Raises GemmsimError, one line."""
        ...


@dataclass(frozen=True)
class LadderJob:
    """A rung of the ladder; `case` has all of its tunables."""

    case: LadderCase
    gpu: GpuSpec
    sampling: Sampling = FROM_A_SAMPLE
    use_cache: bool = True

    @property
    def point(self) -> Point:
        case = self.case
        dtype = case.dtype or kernel_info(case.kernel).dtypes[0]
        return Point(case.kernel, case.tunables, case.m, case.n, case.k, dtype, self.gpu.name)

    @property
    def asked(self) -> dict[str, object]:
        return {"case": asdict(self.case) | {"dtype": self.point.dtype}, "sampling": asdict(self.sampling)}

    @property
    def source_name(self) -> str:
        return f"{self.case.kernel} {self.gpu.arch}"

    def source_hash(self) -> str:
        info = kernel_info(self.case.kernel)
        # The types of the arguments follow from the dtype, and tunables and dtype are in `asked`
        source = PythonKernel(kernel_path(info), info.build.__name__, (), (), info.build.__module__)
        return cache_key(source, self.gpu.arch, tool_versions())

    def request(self) -> AnalyzeRequest:
        return ladder_request(self.case, self.gpu, self.sampling, self.use_cache)


def keys_of(jobs: Iterable[Job]) -> list[str]:
    """The key of each job; the files of each kernel are read once."""
    hashes: dict[str, str] = {}
    found = []
    for job in jobs:
        if job.source_name not in hashes:
            hashes[job.source_name] = job.source_hash()
        found.append(_key(job, hashes[job.source_name]))
    return found


def key_of(job: Job) -> str:
    """64 hexadecimal digits of the request, the kernel's source, the GPU's numbers and the models.

    Whatever changes one of them makes another key, so that a result that is out of date is never found.
    """
    return _key(job, job.source_hash())


def _key(job: Job, source: str) -> str:
    parts = [job.point.kernel, job.asked, source, job.gpu.sha256, MODEL_VERSION, model_hash()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@cache
def model_hash() -> str:
    """Of the modules that make a prediction: a change there without a new MODEL_VERSION meets no older result."""
    folder = Path(gemmsim.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder)
        if name.parts[0] not in _NO_MODEL:
            digest.update(name.as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
