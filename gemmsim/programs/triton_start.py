"""Gives Triton the simulated machine's driver when a program imports Triton, and not before, as that takes long."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from gemmsim.programs.machine import Machine

_DRIVER, _TESTING = "triton.runtime.driver", "triton.testing"


def watch(machine: Callable[[], Machine]) -> None:
    """Change Triton's modules once each is imported, or now where it is."""

    def changed(name: str, module: Any) -> None:
        from gemmsim.programs.triton_driver import TritonDriver

        driver = TritonDriver(machine())
        if name == _DRIVER:
            module.driver.set_active(driver)
        else:
            module.do_bench = driver.do_bench

    for name in (_DRIVER, _TESTING):
        if name in sys.modules:
            changed(name, sys.modules[name])
    sys.meta_path.insert(0, _Watch(changed))


class _Watch(importlib.abc.MetaPathFinder):
    """Finds Triton's two modules as the other finders do, and has them changed after they were loaded."""

    def __init__(self, changed: Callable[[str, ModuleType], None]) -> None:
        self._changed = changed

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in (_DRIVER, _TESTING):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed(module: ModuleType) -> None:
            execute(module)
            self._changed(name, module)

        spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec
