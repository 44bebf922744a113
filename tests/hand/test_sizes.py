"""Modules and functions stay small enough to be read at once; each exception stands here with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("gemmsim", "kernels", "validate")
MOST_LINES, MEDIAN_LINES, LINES_OF_NINE_TENTHS = 350, 120, 220
FUNCTION_LINES, PARAMETERS = 80, 8

RUNG = "a rung is one text, the kernel inside it included, so that a reader has all of it before him"
HOT = "in one function, the hot loop keeps its counters in registers"
DEVICE = "a device function of a rung: numba.cuda has no records"
CUDA = "a function of the CUDA driver API has the parameters that cuda.h gives it"
# Functions that are longer than FUNCTION_LINES, and those with more than PARAMETERS parameters, as file:function.
LONG = {
    "gemmsim/trace/engine/run_warp.py:warp_runner": HOT,
    "gemmsim/trace/engine/run_warp.py:warp_runner.run_warp": HOT,
    "kernels/async_pipelined.py:build": RUNG,
    "kernels/hgemm_warptiled.py:build": RUNG,
    "kernels/split_k.py:build": RUNG,
    "kernels/tensorcore_ring.py:multiplier": RUNG,
    "kernels/tensorcore_staged.py:multiplier": RUNG,
    "kernels/tensorcore_tiles.py:tiles": RUNG,
}
WIDE = {
    "gemmsim/programs/launch_calls.py:launch_cooperative_kernel": CUDA,
    "gemmsim/programs/launch_calls.py:launch_kernel": CUDA,
    "gemmsim/programs/module_calls.py:library_load_data": CUDA,
    "gemmsim/programs/module_calls.py:library_load_from_file": CUDA,
    "kernels/async_pipelined.py:build.copy": DEVICE,
    "kernels/fused_epilogue.py:build.store_strip": DEVICE,
    "kernels/tensorcore_ring.py:multiplier.by_chunks": DEVICE,
    "kernels/tensorcore_ring.py:multiplier.turn.through": DEVICE,
    "kernels/tensorcore_staged.py:multiplier.by_chunks": DEVICE,
    "kernels/tensorcore_staged.py:multiplier.used": DEVICE,
    "kernels/tensorcore_tiles.py:tiles.by_elements": DEVICE,
    "kernels/warptile.py:parts.fetch": DEVICE,
    "kernels/warptile.py:parts.place": DEVICE,
    "validate/wild/own/matmul.py:matmul": DEVICE,
    "validate/wild/own/matmul_descriptors.py:matmul": DEVICE,
}


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of a syntax tree, methods and inner ones included, by its qualified name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from functions(node, f"{prefix}{node.name}." if named else prefix)


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """All that a caller may give; `self` and `cls` he does not."""
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


@pytest.fixture(scope="module")
def written() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function, as file:function. It takes seconds, which no process spends that only collects these tests."""
    return {
        f"{path.relative_to(ROOT)}:{name}": node
        for path in sources()
        for name, node in functions(ast.parse(path.read_text(encoding="utf-8")))
    }


def test_modules() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert [f"{path.relative_to(ROOT)}: {count}" for path, count in lines.items() if count > MOST_LINES] == []
    assert median(lines.values()) < MEDIAN_LINES
    assert quantiles(lines.values(), n=10)[-1] < LINES_OF_NINE_TENTHS


@pytest.mark.parametrize(
    ("measure", "most", "excused"), [(length, FUNCTION_LINES, LONG), (parameters, PARAMETERS, WIDE)]
)
def test_functions(measure, most: int, excused: dict[str, str], written: dict[str, ast.FunctionDef]) -> None:
    over = {name: measure(node) for name, node in written.items() if measure(node) > most}
    assert [f"{name}: {size}" for name, size in over.items() if name not in excused] == []
    assert [name for name in excused if name not in over] == [], "these are small enough now: take them off the list"


def test_a_long_function_and_a_wide_one_are_measured() -> None:
    source = """
class A:
    def f(self, a, *, b):
        "Two lines " \
        "of a docstring."
        def g(): pass
        return g
"""
    found = dict(functions(ast.parse(source)))
    assert {name: (length(node), parameters(node)) for name, node in found.items()} == {
        "A.f": (3, 2),
        "A.f.g": (1, 0),
    }
