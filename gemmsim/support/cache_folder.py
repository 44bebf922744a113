"""Says in which folder this user's caches are: compiled kernels, machine code of the engines, results of sweeps."""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from functools import cache
from pathlib import Path


class CacheWarning(UserWarning):
    """Warns that the cache cannot be used, or is elsewhere. Results are right without it, but take longer."""


def cache_folder() -> Path:
    """Return the folder that GEMMSIM_CACHE_DIR names, without it the user's cache folder. Where that cannot be written
    the result is a folder of this user among temporary files, and a CacheWarning says so once."""
    if chosen := os.environ.get("GEMMSIM_CACHE_DIR"):
        return Path(chosen)
    from platformdirs import user_cache_path

    usual = user_cache_path("gemmsim", appauthor=False)
    return usual if can_be_written(usual) else _temporary(usual)


def can_be_written(folder: Path) -> bool:
    """Return whether files can be written in a folder, or, where it is missing, whether it can be made."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


@cache
def _temporary(usual: Path) -> Path:
    """Return a folder among temporary files that only this user can write, or `usual` where there is none."""
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"gemmsim-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return usual
    if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "geteuid") and status.st_uid != user):
        return usual
    if hasattr(os, "geteuid") and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return usual
    warnings.warn(
        f"cannot write the cache folder '{usual}': '{folder}' is used; GEMMSIM_CACHE_DIR names another one",
        CacheWarning,
        stacklevel=3,
    )
    return folder
