"""Reads and writes files of records, and the machine code that is kept beside them.

This module does without NumPy, so that a GPU's machine can write records without having gemmsim installed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError
from gemmsim.support.files import write_atomically

FOLDER = Path(__file__).parent
# CUDA C++ of our own that stands for the kernels of published records.
CUDA_FOLDER = FOLDER.parent / "cuda"
SCHEMA = FOLDER / "record.schema.json"
SCHEMA_VERSION = 2
_CUBIN_NAME_DIGITS = 16


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file as JSON data. Raises GemmsimError, one line, for a file that holds no records."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GemmsimError(f"cannot read the records in {path}: {error}") from None
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise GemmsimError(f"{path} has schema version {version}, this gemmsim reads {SCHEMA_VERSION}")
    records = data.get("records")
    if not isinstance(records, list):
        raise GemmsimError(f"{path} holds no list of records")
    return records


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write each record as one line, so that a diff shows only the records that changed."""
    lines = ",\n".join(json.dumps(record, sort_keys=True, separators=(",", ":")) for record in records)
    text = f'{{"schema_version":{SCHEMA_VERSION},"records":[\n{lines}\n]}}\n'
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, and make its folder where it is missing; no reader ever sees half of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)


def cubin_name(sha256: str) -> str:
    """Return the file name of a cubin in a bundle, from its hash."""
    return f"{sha256[:_CUBIN_NAME_DIGITS]}.cubin"


def cubin_path(folder: Path, sha256: str) -> Path:
    """Return the path of the compressed cubin with that hash, which belongs to a record in `folder`."""
    return folder / "cubins" / f"{cubin_name(sha256)}.z"


def read_cubin(path: Path) -> bytes:
    """Read a compressed cubin. Raises GemmsimError where it is missing or damaged."""
    try:
        return zlib.decompress(path.read_bytes())
    except (OSError, zlib.error) as error:
        raise GemmsimError(f"cannot read the cubin {path}: {error}") from None
