"""Imports between the folders of validate/ point one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "validate"

# Each folder, and those beside it that it may import.
ALLOWED = {
    "documents": set(),
    "gpu_files": set(),
    "ncu": set(),
    "records": set(),
    "sampling": {"documents"},
    "speed": {"documents"},
    "ladder": {"documents", "records"},
    "calibrate": {"records"},
    "compare": {"documents", "records"},
    "ablate": {"compare", "documents", "records"},
    "measure": {"ncu", "records"},
    "capture": {"documents", "gpu_files", "measure", "records"},
    "forms": {"measure"},
    "microbench": {"gpu_files", "measure", "records"},
    "opcodes": {"measure"},
    "wild": {"compare", "documents", "measure", "records"},
    "cli": {
        "ablate",
        "calibrate",
        "capture",
        "compare",
        "documents",
        "gpu_files",
        "ladder",
        "measure",
        "microbench",
        "ncu",
        "opcodes",
        "records",
        "sampling",
        "speed",
        "wild",
    },
}


def imported(path: Path, source: str) -> set[tuple[str, ...]]:
    """The modules of validate/ that a file imports, each as its path below validate/; those for type checkers too."""
    here = path.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = here[: len(here) - node.level + 1]
            module = tuple(node.module.split(".")) if node.module else ()
            found |= {(*folder, *module, alias.name) for alias in node.names}
    return found


def violations(path: Path, source: str) -> list[str]:
    folder = path.relative_to(PACKAGE).parts[0]
    targets = {module[0] for module in imported(path, source)} - {folder}
    return [f"{path.relative_to(PACKAGE)} imports {target}" for target in sorted(targets - ALLOWED[folder])]


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_point_one_way(folder: str) -> None:
    files = sorted((PACKAGE / folder).rglob("*.py"))
    assert files
    assert [line for path in files for line in violations(path, path.read_text(encoding="utf-8"))] == []


def test_every_folder_is_listed() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/*.py")} == set(ALLOWED)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "predictions.py"}


def test_the_table_has_no_circle() -> None:
    reach = {name: set(targets) for name, targets in ALLOWED.items()}
    for _ in reach:
        for targets in reach.values():
            targets |= {deeper for target in targets for deeper in reach[target]}
    assert [name for name, targets in reach.items() if name in targets] == []


def test_no_two_modules_of_a_folder_import_one_another() -> None:
    """Following the imports of modules never comes back."""
    modules = {path.relative_to(PACKAGE).with_suffix("").parts: path for path in PACKAGE.rglob("*.py")}
    reach = {}
    for name, path in modules.items():
        names = imported(path, path.read_text(encoding="utf-8"))
        reach[name] = {target[:length] for target in names for length in range(1, len(target) + 1)} & set(modules)
    for _ in range(len(reach)):
        for targets in reach.values():
            targets |= {deeper for target in targets for deeper in reach[target]}
    assert [name for name, targets in reach.items() if name in targets] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("records/x.py", "from ..compare.judge import Judged"),
        ("compare/x.py", "def f():\n    from .. import cli"),
        ("ncu/x.py", "from ..records.files import FOLDER"),
    ],
)
def test_a_wrong_import_is_found(file: str, source: str) -> None:
    assert violations(PACKAGE / file, source)
