"""No modules import one another in a circle, and light ones import nothing heavy."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from imported_modules import imported

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gemmsim"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("gemmsim.cli.main", {"numpy", "numba", "simpy", "cuda", "gemmsim.api"}),
        ("gemmsim.isa.program", {"numpy", "numba", "simpy"}),
        ("gemmsim.gpu", {"numpy", "numba", "simpy"}),
        ("gemmsim.report.report", {"numba", "cuda", "simpy"}),
        ("gemmsim.cli.requests", {"numba", "cuda", "simpy"}),
        ("gemmsim.cli.options", {"numpy", "numba", "cuda", "simpy"}),
        ("gemmsim.trace.execute", {"numba", "llvmlite", "cuda"}),
        ("gemmsim.memory.serve", {"numba", "llvmlite", "cuda"}),
        ("gemmsim.testing.plugin", {"numpy", "numba", "simpy", "gemmsim.support.errors", "gemmsim.api"}),
    ],
)
def test_light_modules_load_nothing_heavy(module: str, unwanted: set[str]) -> None:
    code = f"import sys, {module}; print(sorted({unwanted!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def circle(sources: dict[str, str]) -> list[str]:
    """Return a circle of modules that import one another, empty where there is none; sources by full module name."""
    graph: dict[str, set[str]] = {}
    for module, source in sources.items():
        named = imported(ast.parse(source)) & sources.keys()
        # `from gemmsim.isa import program` names the package too, which need not import anything back.
        graph[module] = {one for one in named if not any(other.startswith(f"{one}.") for other in named)} - {module}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_modules_import_one_another_in_a_circle() -> None:
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    sources = {name.removesuffix(".__init__"): path.read_text(encoding="utf-8") for name, path in names.items()}
    assert circle(sources) == []
    assert len(sources) > 300


def test_a_circle_is_found() -> None:
    sources = {"gemmsim.a": "import gemmsim.b", "gemmsim.b": "from gemmsim.c import x", "gemmsim.c": "import gemmsim.a"}
    assert set(circle(sources)) == set(sources)
