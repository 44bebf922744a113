"""Imports point one way, heavy packages stay where they are needed, and the command line starts fast."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from imported_modules import imported

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gemmsim"

TABLES = tomllib.loads(Path(__file__).with_name("imports.toml").read_text(encoding="utf-8"))
ALLOWED = {name: set(targets) for name, targets in TABLES["allowed"].items()}
HEAVY = {name: set(parts) for name, parts in TABLES["heavy"].items()}
INSIDE = {part: {name: set(targets) for name, targets in rules.items()} for part, rules in TABLES["inside"].items()}


def part(path: Path) -> str:
    """The layer of a file: its folder or, directly below gemmsim/, its own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def violations(path: Path, source: str) -> list[str]:
    here = part(path)
    found = []
    for name in imported(ast.parse(source)):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top == "gemmsim" and target and target not in ALLOWED.get(here, set()) | {here, "support"}:
            found.append(f"{path.relative_to(ROOT)}: {here} imports gemmsim.{target}")
        if top in ("validate", "gemmsim_validate", "tests"):
            found.append(f"{path.relative_to(ROOT)}: imports {top}")
        if top in ("kernels", "gemmsim_kernels") and path.name != "ladder.py":
            found.append(f"{path.relative_to(ROOT)}: only ladder.py finds the kernels")
        if top in HEAVY and here not in HEAVY[top]:
            found.append(f"{path.relative_to(ROOT)}: {here} imports {top}")
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    assert violations(path, path.read_text(encoding="utf-8")) == []


def inner_violations(part: str, path: Path, source: str) -> list[str]:
    """Imports inside a part that INSIDE does not allow."""
    rules = INSIDE[part]
    here = path.relative_to(PACKAGE / part).parts[0].removesuffix(".py")
    found = []
    for name in imported(ast.parse(source)):
        inside = name.removeprefix(f"gemmsim.{part}.") if name.startswith(f"gemmsim.{part}.") else ""
        target = inside.partition(".")[0]
        if (
            target in rules
            and target != here
            and not any(inside == allowed or inside.startswith(f"{allowed}.") for allowed in rules.get(here, set()))
        ):
            found.append(f"{path.relative_to(ROOT)}: {part}/{here} imports {inside}")
    return found


@pytest.mark.parametrize("part", INSIDE)
def test_imports_inside_a_part_point_one_way(part: str) -> None:
    files = [path for path in sorted((PACKAGE / part).rglob("*.py")) if path != PACKAGE / part / "__init__.py"]
    assert {path.relative_to(PACKAGE / part).parts[0].removesuffix(".py") for path in files} == set(INSIDE[part])
    assert [line for path in files for line in inner_violations(part, path, path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("memory/requests/x.py", "from gemmsim.memory.caches.l1 import replay"),
        ("analysis/limits/x.py", "from gemmsim.analysis.evidence import Evidence"),
        ("report/notebook.py", "from gemmsim.report.report import Report"),
    ],
)
def test_a_wrong_import_inside_a_part_is_found(file: str, source: str) -> None:
    assert inner_violations(file.partition("/")[0], PACKAGE / file, source)


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("isa/program.py", "from gemmsim.trace.types import Launch"),
        ("memory/caches/l1.py", "import gemmsim.sm.core"),
        ("trace/x.py", "def f():\n    from gemmsim.compile import kernel"),
        ("api.py", "import validate"),
        ("cli/analyze.py", "from kernels import registry"),
        ("analysis/x.py", "import simpy"),
    ],
)
def test_a_wrong_import_is_found(file: str, source: str) -> None:
    assert violations(PACKAGE / file, source)


def test_allowed_table_has_no_cycle() -> None:
    """Following ALLOWED never comes back."""
    reach = {name: set(targets) for name, targets in ALLOWED.items()}
    for _ in reach:
        for targets in reach.values():
            targets |= {deeper for target in targets for deeper in reach.get(target, set())}
    assert [name for name, targets in reach.items() if name in targets] == []
