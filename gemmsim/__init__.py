"""Predicts what a CUDA GEMM kernel does on a GPU that is not there.

`analyze` predicts one launch, `compare`, `sweep` and `sensitivity` many; `explain` says what a word means. `simulate`
lets programs of this process use such a GPU: `with gemmsim.simulate("h200") as gpu: ...`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmsim.calls.studies import analyze, compare, explain, sensitivity, sweep
    from gemmsim.launch.python_items import by_value, typed
    from gemmsim.programs.session import simulate
    from gemmsim.support.errors import GemmsimError
    from gemmsim.support.version import __version__

__all__ = [
    "GemmsimError",
    "__version__",
    "analyze",
    "by_value",
    "compare",
    "explain",
    "sensitivity",
    "simulate",
    "sweep",
    "typed",
]

_PLACES = {
    "GemmsimError": "gemmsim.support.errors",
    "__version__": "gemmsim.support.version",
    "by_value": "gemmsim.launch.python_items",
    "simulate": "gemmsim.programs.session",
    "typed": "gemmsim.launch.python_items",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    # Only now, as every command imports this package.
    return getattr(import_module(_PLACES.get(name, "gemmsim.calls.studies")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def load_ipython_extension(shell: Any) -> None:
    """Add the magic `%%gemmsim` to a notebook: `%load_ext gemmsim` calls this."""
    from gemmsim.programs.notebook import load

    load(shell)
