"""Records from a run into a folder that is kept: one file a kernel, cubins compressed beside them."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

from gemmsim.gpu.load import preset_names

from .measure.bundle import cubin_name
from .records import cubin_path, read_records, write_bytes, write_records

_OTHER_BOARDS = ("laptop", "mobile", "pcie", "nvl", "maxq", "super")  # same chip name, other clocks or memory


def store(run: Path, bundle: Path, into: Path) -> tuple[int, list[str]]:
    """Merge the records of `run` into the folder; returns how many, and why others were left out.

    A record replaces the one of its id; counters of the same machine code that the new one lacks are kept. Cubins
    that no record names any more are removed.
    """
    files: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for path in sorted(into.glob("*.json")):
        files[path.stem] = {record["id"]: record for record in read_records(path)}
    stored, skipped = 0, []
    for record in read_records(run):
        if record.get("correctness", {}).get("status") == "wrong" or "time" not in record:
            skipped.append(f"{record['id']}: {'; '.join(record.get('errors', ['C is wrong']))}")
            continue
        here = files[record["subject"]["name"]]
        old = here.get(record["id"])
        if old and "counters" not in record and "counters" in old and _same_code(old, record):
            record |= {key: old[key] for key in ("counters", "profile") if key in old}
        here[record["id"]] = record
        stored += 1
    keep_cubins(run, bundle, into)
    for name, records in files.items():
        write_records(into / f"{name}.json", (records[key] for key in sorted(records)))
    _remove_unused(into, files)
    return stored, skipped


def keep_cubins(run: Path, bundle: Path, into: Path | None = None) -> None:
    """Copy the cubins of a file's records to `cubins/` beside it (or in the folder `into`), compressed."""
    for sha256 in {record["subject"].get("cubin_sha256") for record in read_records(run)} - {None}:
        target = cubin_path(into or run.parent, sha256)
        source = bundle / cubin_name(sha256)
        if not target.is_file() and source.is_file():
            write_bytes(target, zlib.compress(source.read_bytes(), 9))


def preset_of(device: str) -> str:
    """The preset of a GPU by the driver's name for it ("NVIDIA GeForce RTX 4090"), else that name as a word."""
    joined = re.sub(r"\W", "", device.lower())
    fitting = [name for name in preset_names() if all(part in joined for part in name.split("-"))]
    if fitting and not any(other in joined for other in _OTHER_BOARDS):
        return max(fitting, key=len)
    return re.sub(r"\W+", "-", device.strip().lower())


def _same_code(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["subject"].get("cubin_sha256") == other["subject"].get("cubin_sha256"))


def _remove_unused(into: Path, files: dict[str, dict[str, dict[str, Any]]]) -> None:
    records = [record for here in files.values() for record in here.values()]
    used = {cubin_path(into, r["subject"]["cubin_sha256"]) for r in records if "cubin_sha256" in r["subject"]}
    for path in (into / "cubins").glob("*"):
        if path not in used:
            path.unlink()
