"""Predicts what a CUDA GEMM kernel does on a GPU that is not there.

`simulate` lets programs of this process use such a GPU: `with gemmsim.simulate("h200") as gpu: ...`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmsim.programs.session import simulate

__all__ = ["simulate"]


def __getattr__(name: str) -> Any:
    if name != "simulate":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from gemmsim.programs.session import simulate  # only now, as every command imports this package

    return simulate


def load_ipython_extension(shell: Any) -> None:
    """Add the magic `%%gemmsim` to a notebook: `%load_ext gemmsim` calls this."""
    from gemmsim.programs.notebook import load

    load(shell)
