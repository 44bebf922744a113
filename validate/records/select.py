"""Chooses which records are predicted: those whose code gemmsim can execute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .case import Case, load_cases
from .files import FOLDER


def replayable_cases(folders: Sequence[Path] = ()) -> tuple[Case, ...]:
    """Return all cases in the folders whose code is ours, in the folders' order.

    Without folders, the cases come from the records that ship. Records of cuBLAS, whose code is not ours, cannot be
    replayed and are left out.
    """
    chosen = folders or [path for path in sorted(FOLDER.iterdir()) if path.is_dir() and any(path.glob("*.json"))]
    cases = [case for folder in chosen for case in load_cases(folder)]
    return tuple(case for case in cases if case.cubin is not None or "cuda" in case.data["subject"])
