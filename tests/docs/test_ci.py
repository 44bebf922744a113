"""docs/howto/ci.md: its files, put where it says; its workflow's commands; and the failure that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
WORKFLOW = ".github/workflows/kernels.yml"
WRONG = ("B[(k0 + ty) * N + col]", "B[col * K + k0 + ty]")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def bash(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a step of a job runs it: bash, stopping at the first error; `gemmsim` and `python` are those of this test."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder, env={**os.environ, "PATH": tools}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_page_has_the_files_that_it_needs() -> None:
    assert set(FILES) == {"kernels/my_gemm.cu", "tests/test_my_gemm.py", WORKFLOW}


def test_the_commands_of_the_workflow_run(project: Path) -> None:
    """All but the installation, which is what this test runs in. Before the first run the page makes a baseline."""
    assert "\n```\npytest --gemmsim-update\n```\n" in PAGE
    update = bash("python -m pytest -q --gemmsim-update", project)
    assert update.returncode == 0, update.stdout
    steps = yaml.safe_load(FILES[WORKFLOW])["jobs"]["kernels"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    install, *rest = commands
    assert install == "python -m pip install gemmsim pytest"
    assert len(rest) == 2
    for command in rest:
        done = bash(command, project)
        assert done.returncode == 0, done.stdout + done.stderr
    (upload,) = [step["with"]["sarif_file"] for step in steps if "upload-sarif" in step.get("uses", "")]
    assert (project / upload).is_file()


def test_the_failure_is_as_shown(project: Path) -> None:
    kernel = project / "kernels" / "my_gemm.cu"
    assert kernel.read_text().count(WRONG[0]) == 1
    kernel.write_text(kernel.read_text().replace(*WRONG))
    run = bash("python -m pytest -q tests -k test_memory", project)
    assert run.returncode == 1
    (shown,) = re.findall(r"## What a failure looks like\n.*?```\n(.*?)```\n", PAGE, re.DOTALL)
    assert shown.strip()
    printed = [line.removeprefix("E").strip() for line in run.stdout.splitlines()]
    for line in shown.splitlines():
        assert line.strip() in printed
    check = yaml.safe_load(FILES[WORKFLOW])["jobs"]["kernels"]["steps"][4]["run"]
    assert bash(check, project).returncode == 1
