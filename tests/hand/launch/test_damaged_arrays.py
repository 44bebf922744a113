"""Damaged .npy and .npz files: one line that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmsim.launch.array_files import FileContents, read_array
from gemmsim.support.errors import GemmsimError


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("a.npz", b"PK\x01\x02", b"PK\x01\x02\x14\x00\xb8", r"zip file version 18\.4"),  # 0xb8 = 184
        ("a.npz", b"NUMPY", b"BUMPY", r"Bad CRC-32 for file 'A\.npy'"),
        ("a.npy", b"'descr'", b"'desc'", "header"),
        ("a.npy", b"\x93NUMPY\x01", b"\x93NUMPY\x63", "we only support format version"),
    ],
)
def test_damage_is_one_line(name: str, old: bytes, new: bytes, reason: str, tmp_path: Path) -> None:
    """In a directory of a zip file, bytes 6 and 7 of an entry say which version of zip it needs, times ten."""
    path = tmp_path / name
    (np.savez(path, A=np.zeros(4)) if name.endswith("z") else np.save(path, np.zeros(4)))
    data = path.read_bytes()
    at = data.index(old)
    path.write_bytes(data[:at] + new + data[at + len(new) :])
    with pytest.raises(GemmsimError, match=f"--arg 1: cannot read '.*': .*{reason}"):
        read_array(FileContents(str(path), "A" if name.endswith("z") else "", ""), "--arg 1")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    with pytest.raises(GemmsimError, match=r"cannot read '.*a\.npy': "):
        read_array(FileContents(str(tmp_path / "a.npy"), "", ""), "--arg 1")
