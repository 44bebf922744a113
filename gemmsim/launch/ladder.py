"""Finds the built-in kernels (the ladder): the repository's folder `kernels/`, installed as `gemmsim_kernels`.

A checkout uses its own folder, whatever else is installed. An installed gemmsim uses the package that came with it. A
package called `kernels`, such as the one on PyPI, is never imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.files import is_file

if TYPE_CHECKING:
    from kernels.info import KernelInfo as KernelInfo  # noqa: PLC0414 - others import it from here

PACKAGE = "gemmsim_kernels"
_ENDINGS = (".py", ".cu", ".ptx", ".cubin", ".fatbin")


def kernel_infos() -> dict[str, KernelInfo]:
    """Return the `KernelInfo` of each built-in kernel, by name, in their order. Imports neither numba nor numpy."""
    infos: dict[str, KernelInfo] = _module("registry").KERNELS
    return infos


def kernel_info(name: str) -> KernelInfo:
    """Return the `KernelInfo` of the built-in kernel `name`. Raises GemmsimError where there is no such kernel."""
    if found := _alone(name):
        return found
    infos = kernel_infos()
    if name not in infos and _is_file(name):
        raise GemmsimError(f"'{name}' is a file, no built-in kernel: it goes as TARGET, gemmsim analyze {name} ...")
    if name not in infos:
        raise GemmsimError(f"unknown kernel '{name}'{nearest(name, infos)}: known are {', '.join(infos)}")
    return infos[name]


def _is_file(name: str) -> bool:
    """Whether a name is that of a file with kernels, as a TARGET is written, or of any file that is there."""
    file = name.rpartition(":")[0] or name
    return file.lower().endswith(_ENDINGS) or is_file(Path(name))


def kernel_path(info: KernelInfo) -> Path:
    """Return the Python file that defines a built-in kernel."""
    return Path(str(_module(info.name).__file__))


def _alone(name: str) -> KernelInfo | None:
    """Read a built-in kernel's `KernelInfo` from the file of its name alone; None where there is no such kernel."""
    package = _package()
    files = {path.name for folder in package.__path__ for path in Path(folder).iterdir()}
    if not name.isidentifier() or f"{name}.py" not in files:
        return None
    info: KernelInfo | None = getattr(_module(name), "INFO", None)
    return info if info and info.name == name else None


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{_package().__name__}.{name}")


def _package() -> ModuleType:
    if PACKAGE not in sys.modules:
        folder = Path(__file__).resolve().parents[2] / "kernels"
        if (folder.parent / "pyproject.toml").is_file():
            _load_folder(folder)
    return importlib.import_module(PACKAGE)


def _load_folder(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise GemmsimError(f"no kernels in {folder}: the checkout is incomplete")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
