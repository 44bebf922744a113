"""Puts the records of a run into a folder of records, which has one file for each kernel and their cubins beside."""

from __future__ import annotations

import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

from .files import cubin_name, cubin_path, read_records, write_bytes, write_records


def store(run: Path, bundle: Path, into: Path) -> tuple[int, list[str]]:
    """Merge the records of the file `run` into the folder `into`; their cubins are in the folder `bundle`.

    A record replaces the stored one of the same id. If it has no counters and its machine code is still the same, the
    stored counters stay. Cubins that no record names any more are removed. Returns how many records were stored, and
    one line for each record that was left out, with the reason.
    """
    files: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for path in sorted(into.glob("*.json")):
        files[path.stem] = {record["id"]: record for record in read_records(path)}
    stored, left_out = 0, []
    for record in read_records(run):
        if record.get("correctness", {}).get("status") == "wrong" or "time" not in record:
            left_out.append(f"{record['id']}: {'; '.join(record.get('errors', ['C is wrong']))}")
            continue
        of_kernel = files[record["subject"]["name"]]
        old = of_kernel.get(record["id"])
        if old and "counters" not in record and "counters" in old and _same_code(old, record):
            record |= {key: old[key] for key in ("counters", "profile") if key in old}
        of_kernel[record["id"]] = record
        stored += 1
    keep_cubins(run, bundle, into)
    for name, records in files.items():
        write_records(into / f"{name}.json", (records[key] for key in sorted(records)))
    _remove_unused_cubins(into, files)
    return stored, left_out


def keep_cubins(run: Path, bundle: Path, into: Path | None = None) -> None:
    """Copy the cubins of the records in the file `run` from the folder `bundle`, and compress them.

    The copies go to `cubins/` in the folder `into`; where that is None, to `cubins/` beside the file `run`.
    """
    for sha256 in {record["subject"].get("cubin_sha256") for record in read_records(run)} - {None}:
        target = cubin_path(into or run.parent, sha256)
        source = bundle / cubin_name(sha256)
        if not target.is_file() and source.is_file():
            write_bytes(target, zlib.compress(source.read_bytes(), 9))


def _same_code(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["subject"].get("cubin_sha256") == other["subject"].get("cubin_sha256"))


def _remove_unused_cubins(into: Path, files: dict[str, dict[str, dict[str, Any]]]) -> None:
    records = [record for of_kernel in files.values() for record in of_kernel.values()]
    used = {cubin_path(into, r["subject"]["cubin_sha256"]) for r in records if "cubin_sha256" in r["subject"]}
    for path in (into / "cubins").glob("*"):
        if path not in used:
            path.unlink()
