"""Defines what a kernel parameter can be made of, and puts such items together to the parameters of a launch.

`notation` reads items from text, `python_items` makes them from Python objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gemmsim.launch.arrays import NUMPY_DTYPES
from gemmsim.launch.parameter_bytes import Bytes, joined, overlaid, pointer
from gemmsim.launch.tensor_maps import Tile, encoded
from gemmsim.support.bit_patterns import is_bit_type, to_items
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.types import Address, Argument, Packed, shown_type


@dataclass(frozen=True, slots=True)
class Array:
    """An array in device memory. Its place in a parameter holds its address."""

    argument: Argument


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of an array that another item describes.

    name        the array's name
    index       the element or row whose address it is, () for the first
    plus_bytes  bytes that are added to that address
    """

    name: str
    index: tuple[int, ...] = ()
    plus_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Values:
    """Numbers by value.

    dtype    one of `support.dtypes.DTYPES`
    numbers  one for a scalar; more for an array inside a struct
    lanes    numbers in a vector type such as float4, 1 for a plain type; it decides the alignment
    """

    dtype: str
    numbers: tuple[float, ...]
    lanes: int = 1


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct by value, each member at the next multiple of its alignment, as the ABI places them."""

    members: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes by value, with other items written over them: `places` holds (first byte, item)."""

    content: bytes
    places: tuple[tuple[int, Item], ...] = ()


@dataclass(frozen=True, slots=True)
class InMemory:
    """A struct, bytes or a list of addresses that lie in device memory. Its place in a parameter holds its address."""

    content: Item
    name: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Addresses, in device memory, of `count` parts of one array, part i being the array's element or row i.

    whole  the array, or a reference to it
    """

    count: int
    whole: Array | Reference
    name: str = ""


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A CUtensorMap by value: how TMA reads and writes an array, or a reference to one, in tiles."""

    whole: Array | Reference
    tile: Tile


Item = Array | Reference | Values | Struct | Raw | InMemory | Table | TensorMap


@dataclass(frozen=True, slots=True)
class Given:
    """One argument of a launch: an item, and how messages call it ("--arg 'i32=1'")."""

    what: str
    item: Item


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a launch, `args`, `parameters` and `symbols` as in `trace.types.Launch`."""

    args: tuple[Argument, ...]
    parameters: tuple[int | Packed, ...] | None = None
    symbols: tuple[tuple[str, Argument], ...] = ()

    def passed(self) -> tuple[Argument, ...] | None:
        """Return each parameter's array or scalar; None where a parameter is a struct or an address in an array."""
        parameters = range(len(self.args)) if self.parameters is None else self.parameters
        found = tuple(self.args[one] for one in parameters if isinstance(one, int))
        return found if len(found) == len(parameters) else None


def assemble(
    given: Sequence[Given],
    arrays: Sequence[Given] = (),
    symbols: Sequence[tuple[str, Given]] = (),
    arrays_first: bool = False,
) -> Arguments:
    """Put items together to the arguments of a launch.

    given         one for each parameter
    arrays        further arrays in device memory, which are no parameters, but are named in references
    symbols       (name, content) of variables of the kernel's module
    arrays_first  whether `arrays` come before all other arrays, so that they have the same addresses in all launches
                  that share them

    Raises GemmsimError for a reference to an array that is not there, a name that comes twice, and an address beyond
    its array.
    """
    assembly = _Assembly()
    if arrays_first:
        assembly.collect_all(arrays)
    for number, one in enumerate(given):
        assembly.collect(one.item, f"arg{number}", one.what)
        if isinstance(one.item, Values) and len(one.item.numbers) == 1 == one.item.lanes:
            assembly.scalar(f"arg{number}", one.item)
    if not arrays_first:
        assembly.collect_all(arrays)
    for number, one in enumerate(arrays):
        assembly.fill(one.item, f"array{number}", one.what)
    for name, one in symbols:
        if not isinstance(
            one.item, Array
        ):  # an array is the variable's content; inside a struct it stands for a pointer
            assembly.collect(one.item, f"symbol {name}", one.what)
    parameters = tuple(assembly.parameter(one.item, f"arg{n}", one.what) for n, one in enumerate(given))
    plain = parameters == tuple(range(len(assembly.args)))
    contents = tuple((name, assembly.content(one.item, f"symbol {name}", one.what)) for name, one in symbols)
    return Arguments(tuple(assembly.args), None if plain else parameters, contents)


def argument_name(argument: Argument, position: int) -> str:
    """Return an argument's name: its own, or "arg2" by its position in `Launch.args`."""
    return argument.name or f"arg{position}"


class _Assembly:
    """Collects the arrays of all items first, so that references find them, and then makes the parameters.

    args       the launch's arrays and scalars
    positions  {path: position in `args`} of each item that has a place there; a path is "arg0.2" for the third member
               of the first argument
    names      {name: position in `args`} of arrays
    """

    def __init__(self) -> None:
        self.args: list[Argument] = []
        self.positions: dict[str, int] = {}
        self.names: dict[str, int] = {}

    def collect(self, item: Item, path: str, what: str) -> None:
        """Give every array in an item its place among the arguments."""
        match item:
            case Array(argument):
                self._add(argument, path, what)
            case Struct(members):
                for number, member in enumerate(members):
                    self.collect(member, f"{path}.{number}", what)
            case Raw(_, places):
                for at, member in places:
                    self.collect(member, f"{path}.{at:#x}", what)
            case InMemory(content, name):
                self._add(Argument("u8", (1,), None, name), path, what)
                self.collect(content, f"{path}.0", what)
            case Table(count, whole, name):
                inner = whole.argument.name if isinstance(whole, Array) else whole.name
                self._add(Argument("u64", (count,), None, name or f"{inner or path}.ptr"), path, what)
                if isinstance(whole, Array):
                    named = replace(whole.argument, name=inner or path)
                    self.collect(Array(named), f"{path}.0", what)
            case TensorMap(Array() as whole):
                self.collect(whole, f"{path}.0", what)

    def collect_all(self, arrays: Sequence[Given]) -> None:
        """Give every array that is no parameter its place among the arguments."""
        for number, one in enumerate(arrays):
            self.collect(one.item, f"array{number}", one.what)

    def scalar(self, path: str, item: Values) -> None:
        """Give a scalar a place among the arguments, as a numba kernel needs its type."""
        (value,) = item.numbers
        if is_bit_type(item.dtype):
            value = int(to_items(item.dtype, np.array([value]))[0])
        self.positions[path] = len(self.args)
        self.args.append(Argument(item.dtype, (), value))

    def parameter(self, item: Item, path: str, what: str) -> int | Packed:
        """Make the parameter that an argument stands for, and fill what it points to."""
        made = self.pack(item, path, what)
        if path in self.positions:
            return self.positions[path]
        if isinstance(item, Reference) and not (item.index or item.plus_bytes):
            return self.names[item.name]
        return Packed(bytes(made.content), tuple(made.addresses))

    def fill(self, item: Item, path: str, what: str) -> None:
        """Make what an array in device memory holds where it holds structs or addresses."""
        self.pack(item, path, what)

    def content(self, item: Item, path: str, what: str) -> Argument:
        """Make an array of what a variable of the module holds."""
        if isinstance(item, Array):
            if not item.argument.plain:
                raise GemmsimError(f"{what}: a variable of the module has no layout")
            return item.argument
        made = self.pack(item, path, what)
        items = np.frombuffer(bytes(made.content), np.uint8)
        if isinstance(item, Values):
            items = items.view(NUMPY_DTYPES[item.dtype])
            return Argument(item.dtype, items.shape, items)
        return Argument("u8", items.shape, items, addresses=tuple(made.addresses))

    def pack(self, item: Item, path: str, what: str) -> Bytes:
        """Return an item by value."""
        match item:
            case Array():
                return pointer(Address(0, self.positions[path]))
            case Reference():
                return pointer(self._address(item, what))
            case Values(dtype, numbers, lanes):
                items = to_items(dtype, np.array(numbers, _exact(dtype)))
                size = items.itemsize
                return Bytes(bytearray(items.tobytes()), [], size if lanes == 3 else min(16, size * lanes))
            case Struct(members):
                return joined([self.pack(one, f"{path}.{n}", what) for n, one in enumerate(members)])
            case Raw(content, places):
                return overlaid(content, [(at, self.pack(one, f"{path}.{at:#x}", what)) for at, one in places], what)
            case InMemory(content):
                made = self.pack(content, f"{path}.0", what)
                self._hold(self.positions[path], "u8", np.frombuffer(bytes(made.content), np.uint8), made.addresses)
                return pointer(Address(0, self.positions[path]))
            case Table(count, whole):
                self._fill_table(path, count, whole, what)
                return pointer(Address(0, self.positions[path]))

            case TensorMap(whole, tile):
                inner = (
                    Address(0, self.positions[f"{path}.0"]) if isinstance(whole, Array) else self._address(whole, what)
                )
                return Bytes(bytearray(encoded(tile, self.args[inner.array], inner.plus_bytes, what)), [inner], 64)

    def _fill_table(self, path: str, count: int, whole: Array | Reference, what: str) -> None:
        if isinstance(whole, Reference):
            name, start = whole.name, self._address(whole, what)
        else:
            position = self.positions[f"{path}.0"]
            name, start = self.args[position].name, Address(0, position)
        array = self.args[start.array]
        if array.shape[0] < count:
            raise GemmsimError(f"{what}: {count} addresses, but array '{name}' is {shown_type(array)}")
        step = array.strides[0]
        places = [Address(8 * i, start.array, start.plus_bytes + i * step) for i in range(count)]
        self._hold(self.positions[path], "u64", np.zeros(count, np.uint64), places)

    def _hold(self, position: int, dtype: str, items: np.ndarray, addresses: Iterable[Address]) -> None:
        name = self.args[position].name
        self.args[position] = Argument(dtype, items.shape, items, name, addresses=tuple(addresses))

    def _address(self, item: Reference, what: str) -> Address:
        if item.name not in self.names:
            known = f"the arrays are {', '.join(self.names)}" if self.names else "there are no arrays"
            hint = nearest(item.name, self.names)
            raise GemmsimError(f"{what}: no array is called '{item.name}'{hint}: {known}")
        position = self.names[item.name]
        array = self.args[position]
        if len(item.index) > len(array.shape) or any(i >= n for i, n in zip(item.index, array.shape, strict=False)):
            index = ",".join(map(str, item.index))
            raise GemmsimError(f"{what}: '{item.name}' is {shown_type(array)}: it has no element [{index}]")
        plus = item.plus_bytes + sum(i * stride for i, stride in zip(item.index, array.strides, strict=False))
        # A struct in memory gets its size after the references to it are made.
        if array.value is not None and plus > array.extent_bytes:
            raise GemmsimError(f"{what}: '{item.name}' has {array.extent_bytes} bytes, {plus} lies beyond them")
        return Address(0, position, plus)

    def _add(self, argument: Argument, path: str, what: str) -> None:
        name, position = argument.name or path, len(self.args)
        if name in self.names:
            raise GemmsimError(f"{what}: two arrays are called '{name}'")
        self.names[name] = self.positions[path] = position
        self.names.setdefault(path, position)
        # An argument without a name is called by its position, which need not be said again.
        self.args.append(argument if name == argument_name(argument, position) else replace(argument, name=name))


def _exact(dtype: str) -> np.dtype | None:
    """NumPy's type of numbers that are not rounded on the way to an array of `dtype`; None where NumPy may choose."""
    return NUMPY_DTYPES[dtype] if dtype[0] in "iu" and dtype != "u4" else None
