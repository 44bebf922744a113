"""Where output goes: files are replaced whole, links stay, and devices and FIFOs are written through."""

import os
import stat
import threading
from pathlib import Path

import pytest

from gemmsim.support.files import write_where_asked


def test_a_new_file_and_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    for data in (b"first", b"then"):
        write_where_asked(path, data)
        assert path.read_bytes() == data
    assert [one.name for one in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link, target = tmp_path / "link", folder / "target"
    link.symlink_to(target)
    if there:
        target.write_bytes(b"old")
    write_where_asked(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and not target.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_written_through(tmp_path: Path) -> None:
    path, read = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_where_asked(path, b"data")
    reader.join(10)
    assert read == [b"data"] and stat.S_ISFIFO(path.stat().st_mode)


def test_a_device_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        path.open("wb").close()
    except (AttributeError, OSError):
        pytest.skip("this user cannot make or open devices")
    write_where_asked(path, b"data")
    assert stat.S_ISCHR(path.stat().st_mode)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write_where_asked(tmp_path, b"data")
    assert tmp_path.is_dir()
