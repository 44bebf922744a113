"""Which modules a source file imports."""

from __future__ import annotations

import ast


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
