"""Where caches are: what the environment says, the user's folder, or one among temporary files that is safe to use."""

from __future__ import annotations

import stat
import tempfile
import warnings
from pathlib import Path

import pytest

from gemmsim.support import cache_folder as module
from gemmsim.support.cache_folder import CacheWarning, cache_folder, can_be_written


@pytest.fixture
def blocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that cannot be made. Permissions would not stop a root user; a file in its place does."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "temporary").mkdir()
    monkeypatch.delenv("GEMMSIM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    module._temporary.cache_clear()
    return tmp_path / "file" / "cache" / "gemmsim"


def test_the_environment_goes_first_and_the_users_folder_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"
    monkeypatch.delenv("GEMMSIM_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "yet"))
    assert cache_folder() == tmp_path / "not" / "yet" / "gemmsim"


def test_where_it_cannot_be_made_a_temporary_folder_serves_and_one_line_says_so(blocked: Path) -> None:
    assert not can_be_written(blocked)
    with pytest.warns(CacheWarning, match="GEMMSIM_CACHE_DIR names another one") as caught:
        folder = cache_folder()
    assert folder.parent == blocked.parents[2] / "temporary" and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert str(blocked) in str(caught[0].message) and "\n" not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache_folder() == folder  # once a process


@pytest.mark.parametrize("how", ["others write", "link", "file"])
def test_a_temporary_folder_that_others_could_have_made_is_not_used(blocked: Path, how: str) -> None:
    with pytest.warns(CacheWarning):
        folder = cache_folder()
    module._temporary.cache_clear()
    if how == "others write":
        folder.chmod(0o777)
    else:
        folder.rmdir()
        folder.symlink_to(blocked.parents[2]) if how == "link" else folder.write_text("")
    assert cache_folder() == blocked
