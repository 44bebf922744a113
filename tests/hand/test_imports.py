"""Imports point one way, heavy packages stay where they are needed, and the command line starts fast."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from imported_modules import imported

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "gemmsim"

# Who may import whom; modules of one part import one another as INSIDE allows. `support` imports nothing.
ALLOWED = {
    "support": set(),
    "gpu": set(),
    "isa": set(),
    "compile": {"isa"},
    "native": {"compile"},
    "trace": {"isa", "native"},
    "memory": {"isa", "native", "trace", "gpu"},
    "sm": {"isa", "native", "trace", "memory", "gpu"},
    "launch": {"compile", "trace", "gpu"},
    "analysis": {"isa", "memory", "sm", "gpu", "trace", "launch"},
    "report": {"isa", "memory", "sm", "gpu", "trace", "analysis", "launch"},
    "api": {"isa", "compile", "trace", "memory", "sm", "gpu", "analysis", "report", "launch"},
    "studies": {"analysis", "api", "gpu", "isa", "launch", "report", "sm", "trace"},
    "programs": {"analysis", "api", "compile", "gpu", "isa", "launch", "memory", "report", "trace"},
    "sweeps": {"analysis", "compile", "gpu", "launch", "report", "studies"},
    "checks": {"analysis", "isa", "report", "trace"},
    "cli": {
        "analysis",
        "api",
        "checks",
        "compile",
        "gpu",
        "launch",
        "programs",
        "report",
        "studies",
        "sweeps",
        "trace",
    },
    "calls": {
        "analysis",
        "api",
        "checks",
        "cli",
        "compile",
        "gpu",
        "launch",
        "report",
        "studies",
        "sweeps",
        "trace",
    },
    "testing": {
        "analysis",
        "api",
        "calls",
        "checks",
        "cli",
        "compile",
        "gpu",
        "launch",
        "memory",
        "programs",
        "report",
        "studies",
        "trace",
    },
    "__main__": {"cli"},
    "__init__": {"calls", "launch", "programs"},
}
# The same inside a part: each folder or module of it, and those beside it that it may import.
INSIDE = {
    "memory": {
        "native_loops": set(),
        "requests": {"native_loops"},
        "types": {"requests", "caches"},
        "grid": {"native_loops", "requests"},
        "caches": {"native_loops", "requests", "grid"},
        "l2_sectors": {"requests", "grid", "caches"},
        "hierarchy": {"requests", "grid", "caches", "types", "l2_sectors"},
        "counters": {"requests", "types"},
        "serve": {"requests", "grid", "caches", "hierarchy", "counters", "types"},
    },
    "native": {
        "records": set(),
        "arguments": {"records"},
        "code_store": set(),
        "loader": {"code_store"},
        "kinds": {"arguments", "records"},
        "parts": {"kinds"},
        "arithmetic": {"kinds"},
        "expressions": {"arithmetic", "kinds", "parts"},
        "loops": {"arithmetic", "expressions", "kinds", "parts"},
        "translate": {"arithmetic", "expressions", "kinds", "loops", "parts"},
        "build": {"arguments", "arithmetic", "code_store", "kinds", "loader", "translate"},
        "function": {"arguments", "build", "code_store", "loader", "records"},
        "written": {"code_store", "loader"},
    },
    "sm": {
        "types": set(),
        "power": {"types"},
        "share": set(),
        "spec": set(),
        "pipes": set(),
        "units": {"spec", "types"},
        "operands": {"pipes", "units"},
        "instructions": {"operands", "pipes", "units"},
        "match_loop": set(),
        "sync_rows": {"instructions", "units"},
        "ring": {"sync_rows"},
        "streams": {"instructions", "match_loop", "pipes", "sync_rows", "units"},
        "totals": set(),
        "observer": set(),
        "state": {"instructions", "pipes", "spec", "streams", "sync_rows", "totals", "units"},
        "native_drive": {"state", "units"},
        "simpy_drive": {"native_drive", "observer", "state", "units"},
        "drive": {"native_drive", "observer", "simpy_drive", "state"},
        "loops": set(),
        "clock": {"totals"},
        "budget": {"drive", "instructions", "loops", "observer", "spec", "state", "streams", "totals"},
        "schedule": {"budget", "clock", "instructions", "observer", "share", "streams", "totals", "types"},
        "timeline": {"drive", "instructions", "observer", "ring", "share", "spec", "state", "streams", "units"},
    },
    "trace": {
        "micro": set(),
        "types": set(),
        "words": set(),
        "stopped": set(),
        "async_copies": {"types"},
        "llvm": {"micro"},
        "lower": {"micro", "words"},
        "block_state": {"words", "sanitizer"},
        "cluster_waits": {"block_state", "launch_data", "micro", "words"},
        "context": {"launch_data", "lower", "words"},
        "initial_registers": {"launch_data", "lower", "types"},
        "residents": {"block_state", "cluster_waits", "launch_data", "words"},
        "turns": {"micro", "lower"},
        "slicing": {"micro", "lower"},
        "launch_data": {"types", "words"},
        "sanitizer": {"micro", "types", "words", "llvm", "lower", "launch_data", "slicing"},
        "engine": {"micro", "types", "words", "llvm", "lower", "launch_data", "sanitizer"},
        "runtime": {"block_state", "types", "words", "lower", "launch_data"},
        "waiting": {"block_state", "micro", "words", "lower"},
        "execute": {
            *("micro", "types", "words", "lower", "slicing", "launch_data", "sanitizer", "engine"),
            *(
                "block_state",
                "cluster_waits",
                "context",
                "initial_registers",
                "residents",
                "runtime",
                "stopped",
                "turns",
                "waiting",
            ),
        },
        "finish": {"engine", "execute"},
        "sanitize": {"micro", "words", "block_state", "lower", "sanitizer", "stopped", "execute", "waiting"},
        "differences": {"micro", "types", "words", "lower", "launch_data", "engine", "stopped", "execute"},
        "blocks": {"types", "words", "differences", "stopped", "turns", "execute"},
        "contents": {"micro", "slicing", "turns"},
    },
    "launch": {
        "ladder": set(),
        "array_files": set(),
        "arrays": {"array_files"},
        "parameter_bytes": set(),
        "tensor_maps": set(),
        "tensor_map_text": {"tensor_maps"},
        "items": {"arrays", "parameter_bytes", "tensor_maps"},
        "layout_text": set(),
        "text_reader": set(),
        "argument_text": {"array_files", "arrays", "items", "layout_text", "tensor_map_text", "text_reader"},
        "python_items": {"argument_text", "arrays", "items"},
        "notation": set(),
        "formula": set(),
        "spec": {"array_files", "arrays", "formula"},
        "cases": {"arrays", "ladder", "spec", "tensor_maps"},
        "own": {"cases", "spec"},
        "plan": {"argument_text", "checks", "items", "notation", "own", "spec"},
        "recorded": {"array_files", "arrays", "spec"},
        "checks": {"array_files", "formula", "items", "spec"},
    },
    "studies": {"compare": set(), "launches": set(), "sensitivity": set(), "timeline": set()},
    "programs": {
        "elf_library": set(),
        "c_calls": set(),
        "allocations": {"c_calls"},
        "machine": {"allocations", "c_calls"},
        "modules": {"allocations", "c_calls"},
        "launching": {"allocations", "machine", "modules"},
        "numba_toolchain": set(),
        "contexts": {"c_calls", "machine"},
        "memory_calls": {"allocations", "c_calls", "machine"},
        "module_calls": {"c_calls", "machine", "modules"},
        "launch_calls": {"c_calls", "launching", "machine", "modules"},
        "library": {"c_calls", "elf_library", "machine"},
        "session": {
            *("contexts", "launch_calls", "library", "machine", "memory_calls", "module_calls", "numba_toolchain"),
            "packages",
        },
        "triton_descriptors": set(),
        "triton_driver": {"allocations", "launching", "machine", "module_calls", "modules", "triton_descriptors"},
        "torch_cuda": {"machine"},
        "torch_tensors": {"machine"},
        "on_import": set(),
        "packages": {"machine", "numba_toolchain", "on_import", "torch_cuda", "torch_tensors", "triton_driver"},
        "script": set(),
        "notebook": {"session"},
    },
    "calls": {
        "kernels": set(),
        "launches": {"kernels"},
        "shown": set(),
        "trace": {"shown"},
        "results": {"shown"},
        "studies": {"kernels", "launches", "results", "trace"},
    },
    "sweeps": {
        "expressions": set(),
        "store": set(),
        "job": set(),
        "space": {"expressions", "job"},
        "work": {"job"},
        "local": {"job", "work"},
        "cluster": {"job", "work"},
        "run": {"job", "store", "work"},
    },
    "cli": {
        "group": set(),
        "output": set(),
        "compiling": {"group"},
        "options": {"compiling", "group"},
        "plots": {"output"},
        "requests": {"options"},
        "comparisons": {"options"},
        "sweeps": {"options", "requests"},
        "analyze": {"group", "options", "output", "plots", "requests"},
        "check": {"group", "options", "output", "requests"},
        "compare": {"comparisons", "group", "options", "output", "plots"},
        "decode": {"compiling", "group", "options", "output"},
        "doctor": {"options", "output"},
        "explain": {"group", "options", "output", "requests"},
        "launches": {"group", "options", "output"},
        "run": {"group", "options", "output"},
        "list": {"options", "output"},
        "report": {"group", "options", "output", "requests"},
        "sensitivity": {"group", "options", "output", "requests"},
        "sweep": {"group", "options", "output", "plots", "requests", "sweeps"},
        "timeline": {"group", "options", "output", "requests"},
        "main": {"group"},
    },
    "testing": {
        "assertions": set(),
        "baselines": set(),
        "launches": set(),
        "plugin": {"baselines", "launches"},
    },
    "analysis": {
        "limits": set(),
        "findings": set(),
        "evidence": {"limits"},
        "verify": {"findings"},
        "array_difference": set(),
        "formula_values": set(),
        "array_checks": {"array_difference", "findings", "formula_values"},
        "results": {"array_checks", "findings", "verify"},
        "code": {"evidence"},
        "hardware": {"evidence"},
        "verdict": {"evidence", "findings", "code", "hardware"},
        "accesses": {"code"},
        "studies": {"evidence", "findings", "code", "hardware"},
    },
    "report": {
        "layout": set(),
        "metrics": set(),
        "hazards": {"layout"},
        "access_drawing": set(),
        "decoded": {"layout"},
        "saved_arrays": set(),
        "notebook": {"layout"},
        "report": {"notebook"},
        "text": {"layout", "metrics", "hazards", "report"},
        "json": {"layout", "hazards", "report"},
        "glossary": {"layout", "metrics", "report"},
        "studies": {"layout", "json", "report", "text"},
        "timeline": {"layout"},
        "plots": {"layout", "report"},
        "html": {"layout", "json", "glossary", "report"},
    },
}
# Toolchain and plotting packages, and the only parts that may name them.
HEAVY = {
    "cuda": {"compile", "cli"},
    "numba_cuda": {"compile", "cli"},
    "matplotlib": {"report"},
    "simpy": {"sm"},
    "distributed": {"sweeps"},
}


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
