"""All groups on this machine's GPU -> raw samples, and what machine they are from."""

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
    """Measure each group and write `output` after it; a group that fails leaves its error and loses no other."""
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
        except Exception as error:  # of whatever kind, the other groups are worth having
            said = raw["errors"][name] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
        write_bytes(output, json.dumps(raw, separators=(",", ":")).encode())
        sys.stderr.write(f"{name}: {said} ({time.monotonic() - began:.1f} s)\n")
    return raw


def read_raw(path: Path) -> dict[str, Any]:
    """Raises GemmsimError where the file holds no samples of this version."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GemmsimError(f"cannot read the samples in {path}: {error}") from None
    if not isinstance(data, dict) or data.get("version") != VERSION or "samples" not in data:
        raise GemmsimError(f"{path} holds no samples of version {VERSION}")
    return data
