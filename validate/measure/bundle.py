"""Reads bundles: folders of cubins with a manifest of cases, which are made with a compiler and measured on a GPU."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from ..records.files import cubin_name

VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle.

    folder           the bundle's folder
    arch             the architecture that its cubins are for, such as "sm_90"
    gpu              name of the preset of the GPU to measure on
    cases            the cases to measure: records (see record.schema.json) without results
    counters_wanted  ids of the cases that are to be profiled
    probe            file name of the placement probe's cubin
    """

    folder: Path
    arch: str
    gpu: str
    cases: tuple[dict[str, Any], ...]
    counters_wanted: frozenset[str]
    probe: str

    def cubin(self, sha256: str) -> bytes:
        """Return a cubin by its hash. Raises GemmsimError where it is missing or has another hash."""
        path = self.folder / cubin_name(sha256)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise GemmsimError(f"bundle {self.folder}: cannot read {path.name}: {error.strerror}") from None
        if hashlib.sha256(data).hexdigest() != sha256:
            raise GemmsimError(f"bundle {self.folder}: {path.name} is not the cubin that the manifest names")
        return data


def read_bundle(folder: Path) -> Bundle:
    """Read a bundle. Raises GemmsimError, one line, where the folder is no bundle of this version."""
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise GemmsimError(f"{path} has version {data['version']}, this gemmsim reads {VERSION}")
        return Bundle(
            folder,
            data["arch"],
            data["gpu"],
            tuple(data["cases"]),
            frozenset(data["counters_wanted"]),
            data["probe"],
        )
    except OSError as error:
        raise GemmsimError(f"cannot read the bundle {folder}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise GemmsimError(f"{path} is no manifest of a bundle: {type(error).__name__} {error}") from None


def manifest(bundle: Bundle) -> bytes:
    """Return the content of the manifest file, with one case on each line."""
    head = {
        "version": VERSION,
        "arch": bundle.arch,
        "gpu": bundle.gpu,
        "probe": bundle.probe,
        "counters_wanted": sorted(bundle.counters_wanted),
    }
    lines = ",\n".join(json.dumps(case, sort_keys=True) for case in bundle.cases)
    return (json.dumps(head)[:-1] + f', "cases": [\n{lines}\n]}}\n').encode()
