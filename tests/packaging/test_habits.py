"""What the workflows run exists, and the files about the project agree with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from gemmsim.support.version import __version__

ROOT = Path(__file__).resolve().parents[2]
GITHUB = sorted((ROOT / ".github").rglob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def jobs(path: Path) -> list[dict]:
    return list(yaml.safe_load(path.read_text(encoding="utf-8")).get("jobs", {}).values())


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_what_workflows_run_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    for job in jobs(path):
        for line in [step["run"] for step in job["steps"] if "run" in step]:
            program, *words = line.split()
            assert program in ("make", ".venv/bin/coverage", ".venv/bin/python") or (ROOT / program).is_file()
            assert program != "make" or words[0] in targets


def test_the_oldest_python_is_tested() -> None:
    oldest = PROJECT["requires-python"].removeprefix(">=")
    tested = [job["strategy"]["matrix"]["python"] for path in GITHUB for job in jobs(path) if "strategy" in job]
    assert len(tested) == 2 and all(versions[0] == oldest for versions in tested)


def test_versions_agree() -> None:
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == __version__
    assert re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)[:2] == ["Unreleased", __version__]


def test_the_hooks_run_what_make_quick_runs() -> None:
    (repo,) = yaml.safe_load(text_of(".pre-commit-config.yaml"))["repos"]
    for hook in repo["hooks"]:
        program, *words = hook["entry"].split()
        assert f"$(BIN)/{Path(program).name}" in text_of("Makefile")
        assert all((ROOT / word).is_file() for word in words if word.startswith("tests/"))
