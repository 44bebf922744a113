"""Reads and writes bundles: folders with the cubins of the generated kernels and a manifest that lists the cases."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.errors import GemmsimError

from .cases import Case

VERSION = 1
MANIFEST, INPUTS = "manifest.json", "inputs.npz"


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle.

    arch       the architecture of its cubins: "sm_90"
    rows       number of values of each operand
    toolchain  {tool: version} that compiled it
    cubins     (file name, the cases whose kernels it holds) of each cubin
    folder     the bundle's folder
    """

    arch: str
    rows: int
    toolchain: dict[str, str]
    cubins: tuple[tuple[str, tuple[Case, ...]], ...]
    folder: Path

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(case for _, cases in self.cubins for case in cases)

    def inputs(self, case: Case) -> NDArray[np.uint64]:
        """Return the inputs of a case's kernel, uint64 [sources, rows], see `inputs.inputs`."""
        return self._inputs[" ".join(case.sources)]

    @cached_property
    def inputs_sha256(self) -> str:
        """The hash of all inputs, by which outputs are known to belong to this bundle."""
        digest = hashlib.sha256()
        for name in sorted(self._inputs):
            digest.update(name.encode() + self._inputs[name].tobytes())
        return digest.hexdigest()

    @cached_property
    def _inputs(self) -> dict[str, NDArray[np.uint64]]:
        with np.load(self.folder / INPUTS, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}


def write_bundle(bundle: Bundle, inputs: dict[str, NDArray[np.uint64]]) -> None:
    """Write the manifest and the inputs of a bundle into its folder, where its cubins already lie.

    inputs  {types of the sources, with a space between two: uint64 [sources, rows]}
    """
    with (bundle.folder / INPUTS).open("wb") as file:
        np.savez_compressed(file, **inputs)  # type: ignore[arg-type]
    head: dict[str, Any] = {"version": VERSION, "arch": bundle.arch, "rows": bundle.rows, "toolchain": bundle.toolchain}
    head["cubins"] = [[name, [asdict(case) for case in cases]] for name, cases in bundle.cubins]
    (bundle.folder / MANIFEST).write_text(json.dumps(head, indent=1) + "\n", encoding="utf-8")


def read_bundle(folder: Path) -> Bundle:
    """Read the manifest of a bundle. Raises GemmsimError, one line, where the folder is no bundle of this version."""
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise GemmsimError(f"{path} has version {data['version']}, this gemmsim reads {VERSION}")
        cubins = tuple((name, tuple(_case(row) for row in cases)) for name, cases in data["cubins"])
        return Bundle(data["arch"], data["rows"], data["toolchain"], cubins, folder)
    except OSError as error:
        raise GemmsimError(f"cannot read the bundle {folder}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise GemmsimError(f"{path} is no manifest of a bundle: {type(error).__name__} {error}") from None


def _case(row: dict[str, Any]) -> Case:
    return Case(**row | {"results": tuple(row["results"]), "sources": tuple(row["sources"])})
