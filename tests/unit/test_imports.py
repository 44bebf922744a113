"""Imports point one way, heavy packages stay where they are needed, and the command line starts fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gemmsim"

# Who may import whom; modules of one part import one another freely.
LEAVES = {"errors", "provenance", "version", "deviations", "processes", "repeating", "kept"}
ALLOWED = {
    "gpu": set(),
    "isa": set(),
    "compile": {"isa"},
    "native": {"compile"},
    "trace": {"isa", "native"},
    "memory": {"isa", "native", "trace", "gpu"},
    "sm": {"isa", "native", "trace", "memory", "gpu"},
    "ladder": set(),
    "arrays": set(),
    "request": {"compile", "trace", "gpu"},
    "cases": {"arrays", "compile", "trace", "gpu", "request", "ladder"},
    "analysis": {"isa", "memory", "sm", "gpu", "trace", "request"},
    "report": {"isa", "memory", "sm", "gpu", "trace", "analysis", "request"},
    "api": {"isa", "compile", "trace", "memory", "sm", "gpu", "analysis", "report", "request", "ladder"},
    "compare": {"analysis", "cases", "gpu", "request", "api"},
    "sweep": {"analysis", "cases", "compare", "compile", "gpu", "ladder", "report", "request"},
    "timeline": {"analysis", "api", "isa", "report", "request", "sm"},
    "sensitivity": {"analysis", "api", "gpu", "isa", "request", "sm"},
    "checks": {"analysis", "isa", "report", "trace"},
    "cli": {
        "analysis",
        "arrays",
        "cases",
        "compare",
        "compile",
        "trace",
        "gpu",
        "report",
        "request",
        "api",
        "checks",
        "ladder",
        "sensitivity",
        "sweep",
        "timeline",
    },
    "testing": {
        "api",
        "arrays",
        "checks",
        "cases",
        "cli",
        "compile",
        "trace",
        "gpu",
        "report",
        "request",
        "ladder",
        "memory",
        "analysis",
    },
    "__main__": {"cli"},
    "__init__": {"api", "report", "request", "gpu", "trace", "compile"},
}
# Toolchain and plotting packages, and the only parts that may name them.
HEAVY = {
    "cuda": {"compile", "cli"},
    "numba_cuda": {"compile", "cli"},
    "matplotlib": {"report"},
    "simpy": {"sm"},
    "distributed": {"sweep"},
}


def imported(tree: ast.AST) -> set[str]:
    """Full names of the modules that a syntax tree imports, those for type checkers included."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports inside gemmsim name the package"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
    return names


def part(path: Path) -> str:
    """The layer of a file: its folder or, directly below gemmsim/, its own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def violations(path: Path, source: str) -> list[str]:
    here = part(path)
    found = []
    for name in imported(ast.parse(source)):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top == "gemmsim" and target and target not in ALLOWED.get(here, set()) | LEAVES | {here}:
            found.append(f"{path.relative_to(ROOT)}: {here} imports gemmsim.{target}")
        if top in ("validate", "gemmsim_validate", "tests"):
            found.append(f"{path.relative_to(ROOT)}: imports {top}")
        if top in ("kernels", "gemmsim_kernels") and here != "ladder":
            found.append(f"{path.relative_to(ROOT)}: only ladder.py finds the kernels")
        if top in HEAVY and here not in HEAVY[top]:
            found.append(f"{path.relative_to(ROOT)}: {here} imports {top}")
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    assert violations(path, path.read_text(encoding="utf-8")) == []


def test_leaves_import_nothing_of_gemmsim() -> None:
    for leaf in LEAVES:
        assert not {n for n in imported(ast.parse((PACKAGE / f"{leaf}.py").read_text())) if n.startswith("gemmsim")}


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("isa/program.py", "from gemmsim.trace.types import Launch"),
        ("memory/l1.py", "import gemmsim.sm.core"),
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


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("gemmsim.cli.main", {"numpy", "numba", "simpy", "cuda", "gemmsim.api"}),
        ("gemmsim.isa.program", {"numpy", "numba", "simpy"}),
        ("gemmsim.gpu", {"numpy", "numba", "simpy"}),
        ("gemmsim.report.report", {"numba", "cuda", "simpy"}),
        ("gemmsim.cli.requests", {"numba", "cuda", "simpy"}),
        ("gemmsim.trace.execute", {"numba", "llvmlite", "cuda"}),
        ("gemmsim.memory.serve", {"numba", "llvmlite", "cuda"}),
        ("gemmsim.testing.plugin", {"numpy", "numba", "simpy", "gemmsim.errors", "gemmsim.api"}),
    ],
)
def test_light_modules_load_nothing_heavy(module: str, unwanted: set[str]) -> None:
    code = f"import sys, {module}; print(sorted({unwanted!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
