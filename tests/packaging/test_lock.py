"""constraints.txt, which `make` installs from, pins every dependency, in a version that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# Only `gemmsim-validate import-ncu` of a .ncu-rep file wants the first, `--compiler nvcc` the second, and
# `gemmsim-validate wild` of Triton's kernels the third.
NOT_INSTALLED = {"ncu-report", "nvidia-cuda-nvcc", "triton"}
LINES = [
    line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def dependencies() -> list[Requirement]:
    groups = [entry for group in PROJECT["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    extras = [entry for extra in PROJECT["project"]["optional-dependencies"].values() for entry in extra]
    named = PROJECT["project"]["dependencies"] + PROJECT["build-system"]["requires"] + extras + groups
    return [requirement for requirement in map(Requirement, named) if requirement.name not in NOT_INSTALLED]


def test_each_line_is_a_name_and_a_version() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []


@pytest.mark.parametrize("requirement", dependencies(), ids=str)
def test_a_dependency_is_pinned_within_its_range(requirement: Requirement) -> None:
    pins = {canonical(name): Version(version) for name, version in (line.split("==") for line in LINES)}
    assert pins[canonical(requirement.name)] in requirement.specifier
