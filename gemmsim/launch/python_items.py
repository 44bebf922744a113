"""Makes the arguments of a launch from Python objects: NumPy arrays and scalars, structs, lists, texts of --arg."""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.argument_text import given_argument
from gemmsim.launch.arrays import NUMPY_DTYPES
from gemmsim.launch.items import Arguments, Array, Given, InMemory, Item, Raw, Reference, Struct, Values, assemble
from gemmsim.support.bit_patterns import to_items
from gemmsim.support.dtypes import DTYPES, plain_dtype
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

# What the package ml_dtypes calls the types that NumPy lacks. Its int4 arrays have one element a byte.
_ML_DTYPES = {"bfloat16": "bf16", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int4": "s4", "uint4": "u4"}
_FORMS = "text such as 'i32=256', a NumPy array or scalar, a ctypes structure, by_value(), typed(), or a list of arrays"


@dataclass(frozen=True)
class ByValue:
    """A struct that is passed by value, with addresses in it. See `by_value`."""

    content: bytes
    places: tuple[tuple[int, object], ...]


@dataclass(frozen=True)
class Typed:
    """An array whose element type NumPy cannot say. See `typed`."""

    dtype: str
    array: NDArray


def by_value(struct: object, addresses: Mapping[str | int, object] | None = None) -> ByValue:
    """Pass a struct by value.

    struct     a ctypes.Structure, a scalar of a structured NumPy dtype (or an array of one element), or bytes
    addresses  {field or byte offset: array, list of arrays, or text such as "&A"}: what the pointer there points to;
               "epilogue.C" is the field C of the field epilogue

    Raises GemmsimError for a field that the struct does not have.
    """
    content = _bytes_of(struct)
    if content is None:
        raise GemmsimError(f"by_value: {struct!r} is no ctypes.Structure, no structured NumPy scalar and no bytes")
    places = tuple((_offset(struct, key), value) for key, value in (addresses or {}).items())
    return ByValue(content, places)


def typed(dtype: str, array: NDArray) -> Typed:
    """Pass an array whose type NumPy cannot say: typed("bf16", bits), typed("tf32", floats), typed("s4", bytes).

    array  items of the type, as `support.dtypes` describes them; or floats, which are rounded to bf16, e4m3 or e5m2
    """
    if dtype not in DTYPES:
        raise GemmsimError(f"typed: unknown type '{dtype}': known are {', '.join(DTYPES)}")
    if array.dtype.kind == "f" and dtype != "tf32":
        array = to_items(dtype, array)
    if array.dtype != NUMPY_DTYPES[dtype]:
        raise GemmsimError(f"typed: items of {dtype} are {DTYPES[dtype].numpy_name}, not {array.dtype}")
    return Typed(dtype, array)


def python_arguments(
    args: Sequence[object] | Mapping[str, object],
    arrays: Mapping[str, object],
    symbols: Mapping[str, object] = MappingProxyType({}),
) -> Arguments:
    """Put Python objects together to the arguments of a launch.

    args     one for each parameter; a mapping names them. The same array given twice, also as two views of it, is one
             array in device memory.
    arrays   {name: array} of further arrays, which text such as "&A" refers to
    symbols  {name: content} of `__device__` and `__constant__` variables that the host sets

    Raises GemmsimError for an object of an unknown type.
    """
    pairs = list(args.items()) if isinstance(args, Mapping) else [("", one) for one in args]
    maker = _Maker([value for _, value in (*pairs, *arrays.items(), *symbols.items())])
    given = [maker.given(value, name, f"argument {name or number}") for number, (name, value) in enumerate(pairs)]
    more = [maker.given(value, name, f"array {name}") for name, value in arrays.items()]
    contents = [(name, maker.given(value, "", f"symbol {name}")) for name, value in symbols.items()]
    return assemble(given, [*more, *maker.shared()], contents)


class _Maker:
    """Makes items, and finds out which NumPy arrays share memory.

    An array that comes twice is one array in memory, which later arguments refer to. Arrays that overlap otherwise are
    references into the array that owns their memory.

    names  {what `_same` returns of an array: the name of the array in memory} of arrays that were made and come again
    roots  {id of an array that owns memory: (the array, its name)} of arrays of which others show overlapping parts
    """

    def __init__(self, values: Sequence[object]) -> None:
        arrays = [one for value in values for one in _arrays_in(value)]
        self.repeated = {key for key, count in Counter(map(_same, arrays)).items() if count > 1}
        self.names: dict[object, str] = {}
        self.roots: dict[int, tuple[NDArray, str]] = {}
        distinct = list({_same(one): one for one in arrays}.values())
        for one, other in itertools.combinations(distinct, 2):
            root = _root(one)
            if root is _root(other) and np.may_share_memory(one, other) and id(root) not in self.roots:
                self.roots[id(root)] = root, f"shared{len(self.roots)}"

    def shared(self) -> list[Given]:
        """Return the arrays of which several arguments show parts."""
        what = "an array that several arguments share"
        return [Given(what, _named(_array(root, what), name)) for root, name in self.roots.values()]

    def given(self, value: object, name: str, what: str) -> Given:
        if isinstance(value, str):
            return given_argument(f"{name}: {value}" if name and ":" not in value else value)
        return Given(what, _named(self.item(value, what, name), name))

    def array(self, value: NDArray, what: str, name: str) -> Item:
        root = _root(value)
        if id(root) in self.roots:
            return Reference(self.roots[id(root)][1], (), value.ctypes.data - root.ctypes.data)
        key = _same(value)
        if key in self.names:
            return Reference(self.names[key])
        if key not in self.repeated:
            return _array(value, what)
        self.names[key] = name or f"same{len(self.names)}"
        return _named(_array(value, what), self.names[key])

    def item(self, value: object, what: str, name: str = "") -> Item:
        if isinstance(value, str):
            return given_argument(value).item
        if isinstance(value, ByValue):
            return Raw(value.content, tuple((at, self.item(one, what)) for at, one in value.places))
        if isinstance(value, Typed):
            return Array(replace(_array(value.array, what).argument, dtype=value.dtype))
        if isinstance(value, np.ndarray) and value.shape:
            return self.array(value, what, name)
        if isinstance(value, list | tuple) and value:
            return InMemory(Struct(tuple(self.item(one, what) for one in value)))
        content = _bytes_of(value)
        if content is not None:
            return Raw(content)
        if isinstance(value, np.generic | np.ndarray):
            dtype = _dtype(np.asarray(value), what)
            return Values(dtype, (value.item(),))
        raise GemmsimError(f"{what}, {value!r}: its type is not known; give {_FORMS}")


def _arrays_in(value: object) -> list[NDArray]:
    if isinstance(value, np.ndarray) and value.shape:
        return [value]
    if isinstance(value, list | tuple):
        return [array for one in value for array in _arrays_in(one)]
    if isinstance(value, ByValue):
        return [array for _, one in value.places for array in _arrays_in(one)]
    return []


def _root(array: NDArray) -> NDArray:
    """Return the array whose memory this one shows."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _same(array: NDArray) -> object:
    """Return a key that two arrays have in common where they show the same elements of the same memory."""
    return array.ctypes.data, array.shape, array.strides, array.dtype


def _array(array: NDArray, what: str) -> Array:
    """Make an item of an array, which keeps its strides. An array of structs is passed as bytes."""
    if array.dtype.fields is not None:
        array = np.frombuffer(array.tobytes(), np.uint8)
    dtype = _dtype(array, what)
    if array.dtype.name in _ML_DTYPES:
        ints = array.astype(np.int8) if DTYPES[dtype].packed > 1 else None
        array = array.view(NUMPY_DTYPES[dtype]) if ints is None else to_items(dtype, ints)
    if array.dtype.byteorder == ">":  # a GPU's numbers begin with their lowest byte
        array = array.astype(array.dtype.newbyteorder("<"))
    if min(array.strides) < 0:
        raise GemmsimError(f"{what}: an array that runs backwards cannot be passed: copy it")
    strides = None if array.flags.c_contiguous else array.strides
    return Array(Argument(dtype, array.shape, array, strides_bytes=strides))


def _dtype(array: NDArray, what: str) -> str:
    dtype = _ML_DTYPES.get(array.dtype.name) or plain_dtype(array.dtype.name)
    if dtype is None:
        raise GemmsimError(f"{what}: an array of {array.dtype}: known are {', '.join(NUMPY_DTYPES)}")
    return dtype


def _named(item: Item, name: str) -> Item:
    if not name:
        return item
    if isinstance(item, Array):
        return Array(replace(item.argument, name=name))
    return replace(item, name=name) if isinstance(item, InMemory) else item


def _bytes_of(value: object) -> bytes | None:
    """Return the bytes of a struct; None for anything else."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, ctypes.Structure | ctypes.Union | ctypes.Array | ctypes._SimpleCData):
        return bytes(value)
    if isinstance(value, np.void) or (isinstance(value, np.ndarray) and value.dtype.fields and value.size == 1):
        return value.tobytes()
    return None


def _offset(struct: Any, key: str | int) -> int:
    """Return the byte offset of a field, by its dotted name."""
    if isinstance(key, int):
        return key
    offset, kind = 0, struct.dtype if isinstance(struct, np.void | np.ndarray) else type(struct)
    for name in key.split("."):
        if isinstance(kind, np.dtype) and kind.fields and name in kind.fields:
            kind, place = kind.fields[name][:2]
        elif isinstance(kind, type) and issubclass(kind, ctypes.Structure) and name in dict(_fields(kind)):
            place = getattr(kind, name).offset
            kind = dict(_fields(kind))[name]
        else:
            raise GemmsimError(f"by_value: the struct has no field '{key}'")
        offset += place
    return offset


def _fields(kind: type[ctypes.Structure]) -> list[tuple[str, Any]]:
    return [(field[0], field[1]) for one in reversed(kind.__mro__) for field in one.__dict__.get("_fields_", ())]
