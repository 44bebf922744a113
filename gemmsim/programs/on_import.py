"""Changes modules of packages once a program has imported them, and not before, as importing them takes long."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

Change = Callable[[Any], None]


def when_imported(changes: Mapping[str, Change]) -> None:
    """Make each change, {name of a module: what changes it}, when its module is imported, or now where it is."""
    for name, change in changes.items():
        if name in sys.modules:
            change(sys.modules[name])
    sys.meta_path.insert(0, _Watch(changes))


class _Watch(importlib.abc.MetaPathFinder):
    """Finds the modules as the other finders do, and has them changed after they were loaded."""

    def __init__(self, changes: Mapping[str, Change]) -> None:
        self._changes = changes

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            self._changes[name](module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec
