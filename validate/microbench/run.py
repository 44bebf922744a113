"""Runs all microbenchmarks on this machine's GPU, and writes the raw samples with a description of the machine."""

from __future__ import annotations

import datetime
import json
import sys
import time
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from ..records.files import write_bytes
from .bench import Bench
from .bundle import MicroBundle
from .groups import GROUPS

VERSION = 1


def run(bundle: MicroBundle, bench: Bench, machine: dict[str, Any], output: Path) -> dict[str, Any]:
    """Measure the groups of a bundle and return the samples with a description of the machine.

    The samples are written to `output` after each group. Where a group fails, its error is noted and the others go on.
    Raises GemmsimError where the bundle is for another architecture.
    """
    wanted = "".join(map(str, machine["compute_capability"]))
    if bundle.arch != f"sm_{wanted}":
        raise GemmsimError(f"the microbenchmarks are for {bundle.arch}, this GPU ({machine['device']}) is sm_{wanted}")
    raw: dict[str, Any] = {
        "version": VERSION,
        "arch": bundle.arch,
        "date": datetime.date.today().isoformat(),
        "machine": machine,
        "toolchain": bundle.toolchain,
        "samples": {},
        "errors": {},
    }
    for name in bundle.modules:
        began = time.monotonic()
        try:
            raw["samples"][name] = GROUPS[name].run(bench, bundle.arch)
            said = "done"
        except Exception as error:  # whatever it is, the other groups go on
            said = raw["errors"][name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
        write_bytes(output, json.dumps(raw, separators=(",", ":")).encode())
        sys.stderr.write(f"{name}: {said} ({time.monotonic() - began:.1f} s)\n")
    return raw


def read_raw(path: Path) -> dict[str, Any]:
    """Read the samples of a file. Raises GemmsimError where it holds none of this version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GemmsimError(f"cannot read the samples in {path}: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION or "samples" not in data:
        raise GemmsimError(f"{path} holds no samples of version {VERSION}")
    return data
