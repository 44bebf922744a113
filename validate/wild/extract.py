"""Takes single definitions out of a Python file, so that the rest of the file need not run.

Tutorials and tests define their kernels beside code that needs a GPU, or inside a test. What is wanted are the kernels
and the names that they use.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from gemmsim.support.errors import GemmsimError

_LIBRARIES = {"numba", "math", "numpy", "triton"}  # modules whose imports are kept
_LEFT_OUT = ("triton.profiler", "triton.testing", "numba.cuda.testing", "numba.cuda.tests")


def extracted(path: Path, names: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return the text of a module that holds the definitions of `names` in the Python file `path`, in their order.

    before  lines that precede the definitions

    A definition is a function with its decorators, or an assignment, at any depth of the file. Import statements of
    numba, NumPy, math and Triton come first, from any depth. Raises GemmsimError for a name that the file lacks.
    """
    text = path.read_text(encoding="utf-8")
    parts: dict[str, str] = {}
    imports: dict[str, None] = {}
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom) and _kept(node):
            imports[ast.unparse(node)] = None
        name = _defined(node)
        if name is not None and name in names and name not in parts:
            parts[name] = _source(text, node)
    if missing := [name for name in names if name not in parts]:
        raise GemmsimError(f"'{path.name}' does not define {', '.join(missing)}")
    return "\n\n".join(["\n".join([*imports, *before]), *(parts[name] for name in names)]) + "\n"


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def _kept(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return all(
        module.split(".")[0] in _LIBRARIES and not module.startswith(_LEFT_OUT) for module in modules
    ) and not getattr(node, "level", 0)


def _defined(node: ast.stmt) -> str | None:
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _source(text: str, node: ast.stmt) -> str:
    """Return the statement's own text, with `@triton.jit` and `@cuda.jit` alone of a function's decorators.

    Other decorators choose among configurations by running them, and the arguments of these two ask for a GPU.
    """
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    kept = [f"@{name}" for name in map(_decorator, getattr(node, "decorator_list", [])) if name.endswith("jit")]
    return "\n".join([*kept, textwrap.dedent("\n".join(lines))])


def _decorator(node: ast.expr) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)
