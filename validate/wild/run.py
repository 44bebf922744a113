"""Runs cases: compiles each for its architectures, executes and predicts it, and compares its results with NumPy's."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from gemmsim import api
from gemmsim.gpu.load import load_gpu
from gemmsim.launch.arrays import with_arrays
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError

from .kernels import Prepared, prepared
from .manifest import Case
from .outcomes import NOT_COMPILED, REFUSED, RIGHT, WRONG, Outcome
from .reference import Before
from .references import compare, expected

# The GPU that stands for each architecture. Results are the same on all GPUs of one.
GPUS = {"sm_80": "a100", "sm_86": "rtxa6000", "sm_89": "rtx4090", "sm_90": "h200", "sm_120": "rtx5070ti"}
MAX_INSTRUCTIONS = 200_000_000  # of all blocks; sizes in the manifest keep far below
SEED = 15


def run_case(case: Case, arch: str, root: Path) -> Outcome:
    """Run one case on one architecture."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        found = _outcome(case, arch, root, Path(name))
    return replace(found, seconds=round(time.perf_counter() - begin, 2))


def _outcome(case: Case, arch: str, root: Path, folder: Path) -> Outcome:
    try:
        made = prepared(case, arch, root, folder)
    except GemmsimError as error:
        return Outcome(case.id, arch, NOT_COMPILED, one_line(error))
    try:
        spec = _spec(case, arch, made)
        counted = api.count(spec)
        instructions = int(counted.execution.trace.executed.sum())
        wrong = _difference(case, made, spec, counted)
        if wrong:
            return Outcome(case.id, arch, WRONG, f"{wrong}{_race(spec)}", instructions)
        api.conclude(counted, spec, accesses=False)
    except GemmsimError as error:
        return Outcome(case.id, arch, REFUSED, one_line(error))
    except Exception as error:  # a defect of gemmsim's, which is to be in the table and not to end the run
        return Outcome(case.id, arch, REFUSED, f"defect: {type(error).__name__}: {one_line(error)}")
    return Outcome(case.id, arch, RIGHT, "", instructions)


def _spec(case: Case, arch: str, made: Prepared) -> LaunchSpec:
    settings = Settings(full=True, max_instructions=MAX_INSTRUCTIONS)
    spec = LaunchSpec(made.source, made.launch, load_gpu(GPUS[arch]), Labels(case.name), settings=settings, seed=SEED)
    return replace(spec, launch=with_arrays(spec.launch, SEED))


def _difference(case: Case, made: Prepared, spec: LaunchSpec, counted: api.Counted) -> str:
    """Return "" where all that the kernel stored is as the reference says, else one line."""
    args = [one if at is None else spec.launch.args[at] for one, at in zip(made.given, made.positions, strict=True)]
    before = Before(args, case.check, case.sizes)
    for wanted in expected(before):
        at = made.positions[wanted.position]
        assert at is not None
        after = counted.execution.outputs[at]
        assert after is not None
        if text := compare(wanted, np.asarray(after)):
            return text
    return ""


def _race(spec: LaunchSpec) -> str:
    """Say for a wrong result whether the kernel has a race, so that the result depends on which warp comes first."""
    try:
        found = api.sanitize(spec)
    except GemmsimError:
        return ""
    return "" if found.clean else f"; the kernel itself is at fault, by the sanitizer: {found.findings[0].sentence}"


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
