"""Defines records in memory, on which functions work both compiled and interpreted.

A record is a class whose annotations are its fields, 8 bytes each, one after another:

    int, float     a number: int64, float64
    Ints, Reals, Shorts   the address of int64, float64 or int32 values that lie elsewhere
    Rows[Other]    the address of records that lie elsewhere, one after another
    Other          the address of one record that lies elsewhere

A function over records is plain Python: `warp.ready = now + 1`, `sm.warps[slot].scoreboards[2]`. Python runs it on the
classes of this module, slowly, which is what tests and debuggers want; `gemmsim.native.translate` compiles the same
source. Numbers and addresses are 64 bits wide in both. As in C, nobody checks that an index is in range.

The memory itself is a NumPy array that `allocate` makes and whoever calls the functions keeps alive.
"""

from __future__ import annotations

import ctypes
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

WORD_BYTES = 8


class _Values:
    """Values of one C type, one after another from an address on."""

    __slots__ = ("address",)
    c_type: Any

    def __init__(self, address: int) -> None:
        self.address = address

    def _at(self, index: int) -> Any:
        return self.c_type.from_address(self.address + index * ctypes.sizeof(self.c_type))


class Ints(_Values):
    """int64 values, one after another."""

    c_type = ctypes.c_int64

    def __getitem__(self, index: int) -> int:
        return int(self._at(index).value)

    def __setitem__(self, index: int, value: int) -> None:
        self._at(index).value = value


class Shorts(_Values):
    """int32 values, one after another, to be read only."""

    c_type = ctypes.c_int32

    def __getitem__(self, index: int) -> int:
        return int(self._at(index).value)


class Reals(_Values):
    """float64 values, one after another."""

    c_type = ctypes.c_double

    def __getitem__(self, index: int) -> float:
        return float(self._at(index).value)

    def __setitem__(self, index: int, value: float) -> None:
        self._at(index).value = value


class Record:
    """A record in memory, at `address`: its fields are read and written where they lie."""

    __slots__ = ("address",)
    address: int

    def __init__(self, address: int) -> None:
        object.__setattr__(self, "address", address)

    def __getattr__(self, name: str) -> Any:
        field = fields_of(type(self)).get(name)
        if field is None:
            raise AttributeError(f"a {type(self).__name__} has no field '{name}'")
        place = self.address + field.offset
        if field.kind is float:
            return ctypes.c_double.from_address(place).value
        number = ctypes.c_int64.from_address(place).value
        if field.kind is int:
            return number
        return Rows(field.target, number) if field.kind is Rows else field.target(number)

    def __setattr__(self, name: str, value: float) -> None:
        field = fields_of(type(self))[name]
        if field.kind not in (int, float):
            raise TypeError(f"{type(self).__name__}.{name} is an address: it is set where the memory is laid out")
        c_type = ctypes.c_double if field.kind is float else ctypes.c_int64
        c_type.from_address(self.address + field.offset).value = value


AnyRecord = TypeVar("AnyRecord", bound=Record)


class Rows(Generic[AnyRecord]):
    """Records of one class, one after another from an address on."""

    __slots__ = ("address", "record")

    def __init__(self, record: type[AnyRecord], address: int) -> None:
        self.record, self.address = record, address

    def __getitem__(self, index: int) -> AnyRecord:
        return self.record(self.address + index * size_of(self.record))


class Field(NamedTuple):
    """One field of a class of records.

    kind    int or float for a number, Rows for the address of rows of `target`, and Record for any other address
    target  what lies at the address: a class of records, or Ints, Reals or Shorts; None for a number
    offset  bytes from the beginning of the record
    """

    kind: type
    target: Any
    offset: int


_FIELDS: dict[type[Record], dict[str, Field]] = {}
_DTYPES: dict[type[Record], np.dtype[np.void]] = {}


def fields_of(record: type[Record]) -> dict[str, Field]:
    """Return the fields of a record by name, in the order in which they lie. Raises TypeError where an annotation
    cannot be that of a field.
    """
    if record in _FIELDS:
        return _FIELDS[record]
    fields: dict[str, Field] = {}
    for name, hint in get_type_hints(record).items():
        if name == "address":
            continue
        offset = WORD_BYTES * len(fields)
        if hint in (int, float):
            fields[name] = Field(hint, None, offset)
        elif get_origin(hint) is Rows:
            fields[name] = Field(Rows, get_args(hint)[0], offset)
        elif isinstance(hint, type) and issubclass(hint, (Record, _Values)):
            fields[name] = Field(Record, hint, offset)
        else:
            raise TypeError(f"{record.__name__}.{name}: {hint} cannot be a field of a record")
    _FIELDS[record] = fields
    return fields


def size_of(record: type[Record]) -> int:
    """Return the size of a record in bytes."""
    return WORD_BYTES * len(fields_of(record))


def dtype_of(record: type[Record]) -> np.dtype[np.void]:
    """Return the NumPy dtype with the fields of a record; addresses are int64 in it."""
    if record not in _DTYPES:
        fields = fields_of(record).items()
        _DTYPES[record] = np.dtype([(name, np.float64 if f.kind is float else np.int64) for name, f in fields])
    return _DTYPES[record]


def allocate(record: type[Record], count: int = 1) -> NDArray[np.void]:
    """Make `count` records, whose fields are all zero."""
    return np.zeros(count, dtype_of(record))


def address_of(array: NDArray[Any]) -> int:
    """Return the address of an array's first element."""
    return int(array.ctypes.data)


def row_addresses(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return the address of each row of a C-contiguous array: int64 [len(array)]."""
    return address_of(array) + np.arange(len(array)) * array.strides[0]
