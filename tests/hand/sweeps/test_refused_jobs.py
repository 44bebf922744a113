"""Which refused jobs can never be launched: their blocks need more than the GPU has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sweep_jobs import fake_job

import gemmsim.compile
from gemmsim.launch.spec import LaunchSpec
from gemmsim.sweeps.work import _cannot_launch


@pytest.mark.parametrize(("static", "dynamic", "cannot"), [(96, 96, True), (96, 64, False), (96, 68, True)])
def test_static_and_dynamic_shared_memory_are_added(
    static: int, dynamic: int, cannot: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block of an A100 may have 163 KiB: 96 and 64 KiB fit, 96 and 68, or twice 96, do not."""
    job = fake_job(1)
    spec = job.task.spec
    assert isinstance(spec, LaunchSpec)
    program = gemmsim.compile.compile_kernel(spec.kernel, "sm_80", None)
    larger = replace(program, static_shared_bytes=static << 10)
    monkeypatch.setattr(gemmsim.compile, "compile_kernel", lambda *_: larger)
    launch = replace(spec.launch, dynamic_shared_bytes=dynamic << 10)
    job = replace(job, task=replace(job.task, spec=replace(spec, launch=launch)))
    assert _cannot_launch(job) is cannot
