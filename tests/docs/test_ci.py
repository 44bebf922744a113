"""docs/howto/ci.md: its files, put where it says; its workflow's commands; and the failure that it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "ci.md").read_text(encoding="utf-8")
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


def bash(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """As a step of a job runs it: bash, stopping at the first error; `gemmsim` and `python` are those of this test."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder, env={**os.environ, "PATH": tools, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_page_has_the_files_that_it_needs() -> None:
    assert set(FILES) == {"kernels/my_gemm.cu", "tests/test_my_gemm.py", WORKFLOW, ".pre-commit-config.yaml"}


def test_the_commands_of_the_workflow_run(project: Path) -> None:
    """All but the installation, which is what this test runs in. Before the first run the page makes a baseline."""
    assert "\n```\npytest --gemmsim-update\n```\n" in PAGE
    update = bash("python -m pytest -q --gemmsim-update", project)
    assert update.returncode == 0, update.stdout
    steps = yaml.safe_load(FILES[WORKFLOW])["jobs"]["kernels"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    install, *rest = commands
    assert install == 'python -m pip install "gemmsim @ git+https://github.com/OWNER/gemmsim" pytest'
    assert len(rest) == 2
    for command in rest:
        done = bash(command, project, GITHUB_STEP_SUMMARY="summary.md")
        assert done.returncode == 0, done.stdout + done.stderr
    assert "### gemmsim check: my\\_gemm, M=128" in (project / "summary.md").read_text()
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
    assert bash(check, project, GITHUB_STEP_SUMMARY="summary.md").returncode == 1


def pieces(heading: str) -> list[dict[str, Any]]:
    """The blocks of YAML below a heading of the page."""
    below = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)]


def test_the_action_checks_what_the_page_shows(project: Path) -> None:
    """Its step, run as GitHub does: inputs in the environment. The kernel of the page passes; B transposed fails."""
    (step,), hooks = pieces("A step, or a hook")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert step["uses"].startswith("OWNER/gemmsim@") and set(step["with"]) <= set(action["inputs"])
    install, check = action["runs"]["steps"]
    assert install["run"] == 'python -m pip install "$PACKAGE"'
    assert "${{" not in install["run"] + check["run"]  # a text of a pull request is never part of a script
    given = {name: str(row.get("default", "")) for name, row in action["inputs"].items()}
    given |= {name: value if isinstance(value, str) else json.dumps(value) for name, value in step["with"].items()}
    names = {key: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", text) for key, text in check["env"].items()}
    environment = {key: given[name[1]] for key, name in names.items() if name} | {"GITHUB_STEP_SUMMARY": "summary.md"}
    assert len(environment) == len(action["inputs"])  # all but the package, and the summary
    held = {"sectors": {"value": 100, "tolerance": 0}, "registers": {"value": 40, "tolerance": 9}}
    of = {"gemmsim_baseline": 1, "kernel": "my_gemm", "gpu": "a100-80gb", "made_with": {}, "values": held}
    (project / "gemmsim_baselines").mkdir()
    (project / environment["BASELINE"]).write_text(json.dumps(of))
    kernel = project / "kernels" / "my_gemm.cu"
    kernel.write_text(kernel.read_text().replace(*WRONG))
    environment["SANITIZE"] = "false"
    done = bash(check["run"], project, **environment)
    assert done.returncode == 1, done.stderr
    assert "::error file=kernels/my_gemm.cu,line=11,title=gemmsim%3A sector_excess::" in done.stdout
    assert re.search(
        r"\| `sectors` \| 100 \| [\d,]+ \| \+[\d,]+\.\d% \| 0% \| :x: \|", (project / "summary.md").read_text()
    )
    assert 'tests="' in (project / "gemmsim.xml").read_text()
    (hook,) = hooks["repos"][0]["hooks"]
    (offered,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert (offered["id"], offered["entry"]) == (hook["id"], "gemmsim check")
    assert shlex.split(environment["LAUNCH"]) == hook["args"][:-2]
