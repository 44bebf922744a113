"""The cell magic `%%gemmsim` of IPython: runs a cell on a GPU that is not there, and lists its launches."""

from __future__ import annotations

import shlex
from typing import Any

from gemmsim.programs.session import simulate
from gemmsim.support.errors import GemmsimError

_USAGE = "%%gemmsim -g GPU [--sanitize]"


def load(shell: Any) -> None:
    """Add the magic to an IPython shell."""

    def magic(line: str, cell: str) -> None:
        gpu, sanitize = _options(line)
        with simulate(gpu, sanitize=sanitize) as simulation:
            outcome = shell.run_cell(cell)
            outcome.raise_error()
        print(simulation)  # noqa: T201  a cell's output

    shell.register_magic_function(magic, "cell", "gemmsim")


def _options(line: str) -> tuple[str, bool]:
    """Return the GPU and whether to sanitize. Raises GemmsimError where the line says anything else."""
    words = shlex.split(line)
    sanitize = "--sanitize" in words
    rest = [word for word in words if word != "--sanitize"]
    if len(rest) != 2 or rest[0] not in ("-g", "--gpu"):
        raise GemmsimError(f"'%%gemmsim {line}' is not known: write {_USAGE}")
    return rest[1], sanitize
