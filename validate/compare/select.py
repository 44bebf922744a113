"""Which records are compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..records import FOLDER, Case, load_cases


def every_record(folders: Sequence[Path] = ()) -> tuple[Case, ...]:
    """All cases below the folders, in the order of their names; records of code that is not ours (cuBLAS) left out."""
    chosen = folders or [path for path in sorted(FOLDER.iterdir()) if path.is_dir() and any(path.glob("*.json"))]
    cases = [case for folder in chosen for case in load_cases(folder)]
    return tuple(case for case in cases if case.cubin is not None or "cuda" in case.data["subject"])
