"""Reads the files that arguments name: .npy, .npz and raw bytes. Nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.bit_patterns import to_items, to_numbers
from gemmsim.support.dtypes import BIT_FLOATS, DTYPES, plain_dtype
from gemmsim.support.errors import GemmsimError

# Which of these NumPy and zipfile raise depends on the field that is damaged.
_DAMAGE = (ValueError, EOFError, BadZipFile, zlib.error, struct.error, KeyError, TypeError, OverflowError, RuntimeError)
MAX_FILE_BYTES = 8 * 2**30


@dataclass(frozen=True, slots=True)
class FileContents:
    """Names a file with the content of an array. It is small, so that a launch can be sent to another process.

    path    the file: .npy, .npz, or any other for raw bytes
    member  name of the array in an .npz, "" for other files
    sha256  hexadecimal digest of the file's bytes, so that a changed file is another launch
    """

    path: str
    member: str
    sha256: str


def file_contents(text: str, name: str, what: str) -> FileContents:
    """Look a file up that an argument names as FILE or FILE.npz:MEMBER.

    name  the argument's name, which is the member of an .npz where the text names none and the file holds several
    what  how the message of an error begins

    Raises GemmsimError where the file or its member is missing.
    """
    path, member = text, ""
    if ".npz:" in text:
        path, _, member = text.rpartition(":")
    data = read_bytes(path, what)
    if path.endswith(".npz"):
        held = members(path, what)
        if not member:
            member = held[0] if len(held) == 1 else name
        if not member:
            raise GemmsimError(f"{what}: {path} holds {', '.join(held) or 'no array'}: write @{path}:NAME")
        if member not in held:
            has = ", ".join(held) or "no array"
            raise GemmsimError(f"{what}: {path} has no array '{member}': it holds {has}; write @{path}:NAME")
    return FileContents(path, member, hashlib.sha256(data).hexdigest())


def members(path: str, what: str) -> list[str]:
    """Return the names of the arrays in an .npz. Raises GemmsimError, which begins with `what`, where it is none."""
    with _opened(path, what) as archive:
        return list(archive.files)


def read_bytes(path: str, what: str) -> bytes:
    """Read a whole file. Raises GemmsimError, whose message begins with `what`, where it cannot be read."""
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise GemmsimError(f"{what}: {path} has more than {MAX_FILE_BYTES >> 30} GiB")
        return Path(path).read_bytes()
    except OSError as error:
        raise GemmsimError(f"{what}: cannot read '{path}': {error.strerror}") from None


def read_array(file: FileContents, what: str) -> NDArray:
    """Read the array of an .npy or .npz file as it is stored; a raw file gives its bytes, uint8.

    Raises GemmsimError for a file that is damaged, or that would have to be unpickled.
    """
    if not file.path.endswith((".npy", ".npz")):
        return np.frombuffer(read_bytes(file.path, what), np.uint8)
    try:
        if file.path.endswith(".npz"):
            with _opened(file.path, what) as archive:
                return _little_endian(np.asarray(archive[file.member]))
        return _little_endian(np.asarray(np.load(file.path, allow_pickle=False)))
    except (OSError, *_DAMAGE) as error:
        raise _unreadable(what, file.path, error) from None


def _little_endian(array: NDArray) -> NDArray:
    """Return an array of numbers in the byte order of a GPU; files keep that of the machine that wrote them."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False) if array.dtype.kind in "iuf" else array


def items_of(array: NDArray, dtype: str, shape: tuple[int, ...], what: str) -> NDArray:
    """Turn an array that came from a file into the items of an array argument.

    array  as `read_array` gives it
    shape  the argument's shape in items

    Items of a type that NumPy lacks may be given as bit patterns or as floats, which are rounded to the type; 4-bit
    integers as bytes of two elements, or one element a byte. Raises GemmsimError where type or shape is another.
    """
    wanted = np.dtype(DTYPES[dtype].numpy_name)
    packed = DTYPES[dtype].packed
    elements = (*shape[:-1], shape[-1] * packed)
    shown = f"{dtype}[{','.join(map(str, elements))}]"
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        array = array.view(wanted)  # how NumPy stores the types of the package ml_dtypes
    if packed > 1 and array.shape == elements and array.dtype.kind in "iu":
        if array.size and (array != to_numbers(dtype, to_items(dtype, array))).any():
            raise GemmsimError(f"{what}: the file holds integers that do not fit {dtype}")
        return to_items(dtype, array)
    if dtype in BIT_FLOATS and array.dtype.kind == "f":
        array = to_items(dtype, array)
    if array.dtype != wanted:
        raise GemmsimError(f"{what}: the file holds {array.dtype}, but {shown} was asked for")
    if array.shape != shape:
        raise GemmsimError(f"{what}: the file's array is {list(array.shape)}, but {shown} was asked for")
    return array


def raw_items(data: NDArray, dtype: str, shape: tuple[int, ...], what: str) -> NDArray:
    """Turn raw bytes, uint8, into the items of an array. Raises GemmsimError for another number of bytes."""
    wanted = np.dtype(DTYPES[dtype].numpy_name)
    size = int(np.prod(shape)) * wanted.itemsize
    if data.nbytes != size:
        raise GemmsimError(f"{what}: the file has {data.nbytes} bytes, but {dtype}{list(shape)} needs {size}")
    return data.view(wanted).reshape(shape)


def described(file: FileContents, what: str) -> tuple[str, tuple[int, ...]]:
    """Return type and shape of an .npy or .npz file's array, for an argument that names none of them.

    Raises GemmsimError for a raw file, and for a type whose arrays are not known by their NumPy type.
    """
    if not file.path.endswith((".npy", ".npz")):
        raise GemmsimError(
            f"{what}: {file.path} holds raw bytes: write TYPE[SHAPE]=@{file.path}, or bytes=@{file.path}"
        )
    array = read_array(file, what)
    dtype = plain_dtype(array.dtype.name)
    if dtype is None:
        known = ", ".join(dict.fromkeys(one.numpy_name for one in DTYPES.values()))
        raise GemmsimError(f"{what}: {file.path} holds {array.dtype}; arrays of kernels are {known}")
    if not array.shape:
        raise GemmsimError(f"{what}: {file.path} holds a single number, not an array")
    if not array.size:
        raise GemmsimError(f"{what}: {file.path} holds an array of {list(array.shape)}, which has no element")
    return dtype, array.shape


def _unreadable(what: str, path: str, error: Exception) -> GemmsimError:
    return GemmsimError(f"{what}: cannot read '{path}': {(str(error).splitlines() or [type(error).__name__])[0]}")


def _opened(path: str, what: str) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(path, allow_pickle=False)
    except OSError as error:
        raise GemmsimError(f"{what}: cannot read '{path}': {error.strerror or error}") from None
    except _DAMAGE as error:
        raise _unreadable(what, path, error) from None
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise GemmsimError(f"{what}: '{path}' is no .npz file")
    return archive
