"""Damaged .npy and .npz files: one line that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gemmsim.launch.argument_text import given_argument
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


def test_numbers_of_another_byte_order(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2, 300], ">f4"))
    array = read_array(FileContents(str(tmp_path / "a.npy"), "", ""), "--arg 1")
    assert array.dtype == np.float32 and array.tolist() == [1, 2, 300]


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(4, np.complex64), "holds complex64; arrays of kernels are float16, uint16, float32, "),
        (np.array(["a", "b"]), "holds <U1; arrays of kernels are float16, "),
        (np.zeros((0, 4), np.float32), "holds an array of [0, 4], which has no element"),
        (np.float32(3), "holds a single number, not an array"),
    ],
)
def test_arrays_that_no_kernel_takes(array: np.ndarray, said: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(GemmsimError) as error:
        given_argument(f"@{tmp_path / 'a.npy'}")
    assert said in str(error.value)


def test_an_archive_of_which_no_array_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", A=np.zeros(4), B=np.zeros(4))
    with pytest.raises(GemmsimError, match=r"a\.npz holds A, B: write @.*a\.npz:NAME$"):
        given_argument(f"@{tmp_path / 'a.npz'}")
