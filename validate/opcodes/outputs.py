"""Reads and writes what the kernels of a bundle stored: a compressed NumPy file with an array for each case."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.errors import GemmsimError

_FACTS = "facts"


@dataclass
class Outputs:
    """What the kernels of a bundle stored.

    facts   what is known of the run: "device", "arch", "inputs_sha256" and others
    values  {symbol of a case: uint64 [results, rows]}
    failed  {symbol: why its kernel did not run}
    """

    facts: dict[str, Any]
    values: dict[str, NDArray[np.uint64]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the outputs to a file, each array in the narrowest type that holds its values."""
        narrow = {symbol: _narrowed(values) for symbol, values in self.values.items()}
        facts = json.dumps({"facts": self.facts, "failed": self.failed}).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            np.savez_compressed(file, **{_FACTS: np.frombuffer(facts, np.uint8)}, **narrow)  # type: ignore[arg-type]


def read_outputs(path: Path) -> Outputs:
    """Read what `Outputs.write` wrote. Raises GemmsimError, one line, for another file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            head = json.loads(file[_FACTS].tobytes())
            values = {name: file[name].astype(np.uint64) for name in file.files if name != _FACTS}
            return Outputs(head["facts"], values, head["failed"])
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, KeyError) as error:
        raise GemmsimError(f"{path} holds no outputs of generated kernels: {error}") from None


def _narrowed(values: NDArray[np.uint64]) -> NDArray[Any]:
    largest = int(values.max(initial=0))
    for dtype in (np.uint8, np.uint16, np.uint32):
        if largest <= np.iinfo(dtype).max:
            return values.astype(dtype)
    return values
