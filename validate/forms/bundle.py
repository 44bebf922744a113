"""Reads and writes bundles: one file with the cubins of forms and the words that their kernels read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .form import LANES, Form

Words = NDArray[np.uint32]


@dataclass(frozen=True)
class Compiled:
    """A form, its kernel for one architecture, and what the kernel reads: uint32 [blocks, 32, words of a lane]."""

    form: Form
    cubin: bytes
    given: Words

    def before(self) -> Words:
        """Return what `out` holds before the launch: the first words of `in`, and zeros behind them."""
        start = np.zeros((len(self.given), LANES, self.form.words), np.uint32)
        held = min(self.form.words, self.given.shape[2])
        start[..., :held] = self.given[..., :held]
        return start


def write_bundle(path: Path, arch: str, compiled: Sequence[Compiled]) -> None:
    """Write compiled forms for `arch` ("sm_90") to the file `path` (.npz)."""
    manifest = json.dumps({"arch": arch, "forms": [asdict(one.form) for one in compiled]})
    arrays: dict[str, NDArray] = {"manifest": np.frombuffer(manifest.encode(), np.uint8)}
    for number, one in enumerate(compiled):
        arrays[f"cubin {number}"] = np.frombuffer(one.cubin, np.uint8)
        arrays[f"given {number}"] = one.given
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def read_bundle(path: Path) -> tuple[str, list[Compiled]]:
    """Return the architecture and the compiled forms of the bundle `path`."""
    with np.load(path, allow_pickle=False) as file:
        manifest = json.loads(file["manifest"].tobytes())
        compiled = []
        for number, row in enumerate(manifest["forms"]):
            form = Form(**row | {"reads": tuple(row["reads"])})
            compiled.append(Compiled(form, file[f"cubin {number}"].tobytes(), file[f"given {number}"]))
    return manifest["arch"], compiled


def write_outputs(path: Path, device: str, outputs: dict[str, Words]) -> None:
    """Write what each form's kernel left in `out`, {name: uint32 [blocks, 32, words]}, to the file `path` (.npz)."""
    np.savez_compressed(path, device=np.frombuffer(device.encode(), np.uint8), **outputs)  # type: ignore[arg-type]


def read_outputs(path: Path) -> dict[str, Words]:
    """Return what `write_outputs` wrote, {name: uint32 [blocks, 32, words]}."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name != "device"}
