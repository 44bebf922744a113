"""Reads an argument as it is written after --arg and --array; docs/howto/arguments.md explains the notation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from gemmsim.launch.array_files import described, file_contents, read_bytes
from gemmsim.launch.arrays import NUMPY_DTYPES, Contents, check_size
from gemmsim.launch.items import (
    Arguments,
    Array,
    Given,
    InMemory,
    Item,
    Raw,
    Reference,
    Struct,
    Table,
    TensorMap,
    Values,
    assemble,
)
from gemmsim.launch.layout_text import parse_layout
from gemmsim.launch.tensor_map_text import parse_tile
from gemmsim.launch.text_reader import TextReader
from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.plurals import plural, verb
from gemmsim.trace.types import Argument

_NAME = re.compile(r"([A-Za-z_][\w.]*)\s*:\s*")
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_TYPE = re.compile(r"[A-Za-z]\w*")
_VECTOR = re.compile(r"(?P<dtype>\w+)x(?P<lanes>[234])")
_NUMBER = re.compile(r"[^\s,;(){}\[\]]+")
_FILE = re.compile(r'"([^"]+)"|([^,(){}"\s]+)')
_COUNT = re.compile(r"\s*[0-9]{1,18}\s*")  # what fits 64 bits
_MOST_DEPTH = 64  # of structs in structs
_SETTING = re.compile(r"[^,()]+")
_FORMS = "expected f32[256,256] (random), f32[256,256]=0, i32=256 or f32=1.0"
_MEMBERS = "an array such as f32[256,256], a value such as i32=256, &NAME, {...} or bytes=N"


def parse_arguments(texts: Sequence[str], arrays: Sequence[str] = (), symbols: Sequence[str] = ()) -> Arguments:
    """Read all --arg, --array and --symbol of a launch. Raises GemmsimError, one line, where one is malformed."""
    given = [given_argument(one) for one in texts]
    return assemble(given, [given_array(one) for one in arrays], given_symbols(symbols))


def parse_argument(text: str) -> Argument:
    """Read one --arg that stands for an array or a scalar; an array without a value will hold random numbers.

    Raises GemmsimError where the text is malformed or stands for something else.
    """
    passed = assemble([given_argument(text)]).passed()
    if passed is None:
        raise GemmsimError(f"--arg '{text}' is neither an array nor a scalar")
    return passed[0]


def given_argument(text: str) -> Given:
    """Read one --arg. Raises GemmsimError where it is malformed."""
    return Given(f"--arg '{text}'", _Reader(text, f"--arg '{text}'").whole())


def given_array(text: str) -> Given:
    """Read one --array. Raises GemmsimError unless it is something in device memory that has a name."""
    what = f"--array '{text}'"
    item = _Reader(text, what).whole()
    name = item.argument.name if isinstance(item, Array) else getattr(item, "name", "")
    if not isinstance(item, Array | InMemory | Table) or not name:
        raise GemmsimError(f"{what}: expected a name and an array, as in 'A: f32[256,256]'")
    return Given(what, item)


def given_symbols(texts: Sequence[str]) -> list[tuple[str, Given]]:
    """Read all --symbol as (name, what the variable holds). Raises GemmsimError where one is malformed or repeated."""
    found: dict[str, Given] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        what = f"--symbol '{text}'"
        if not (name and value):
            raise GemmsimError(f"{what} is malformed: expected NAME=VALUE, as in scale=f32=2 or table=f32[256]")
        if name in found:
            raise GemmsimError(f"--symbol {name} is given twice")
        found[name] = Given(what, _Reader(value, what).whole())
    return list(found.items())


class _Reader(TextReader):
    """Reads the text of one argument."""

    depth = 0  # of the structs around what is read

    def whole(self) -> Item:
        """Read the text to its end as one item."""
        if not self.text:
            raise self.malformed(_FORMS)
        item = self.item()
        if self.at < len(self.text):
            raise self.malformed(f"'{self.text[self.at :]}' was not expected")
        return item

    def item(self) -> Item:
        """Read [NAME:] and an item."""
        named = self.take(_NAME)
        name = named[1] if named else ""
        if self.sign("{"):
            return self.struct()
        if self.sign("&"):
            return self.address(name)
        if self.sign("@"):
            return self.file_array(name)
        start = self.at
        word = self.take(_TYPE)
        if word is None:
            raise self.malformed(_FORMS if start == 0 else f"expected {_MEMBERS} at '{self.text[start:]}'")
        if word[0] == "bytes":
            return self.raw()
        if word[0] == "ptr":
            return self.pointers(name)
        if word[0] == "tensormap":
            return self.tensor_map()
        vector = _VECTOR.fullmatch(word[0])
        dtype, lanes = (vector["dtype"], int(vector["lanes"])) if vector else (word[0], 1)
        if dtype not in DTYPES:
            known = (*DTYPES, "ptr", "bytes", "tensormap")
            raise GemmsimError(
                f"{self.what}: unknown type '{dtype}'{nearest(dtype, known)}: known are {', '.join(known)}"
            )
        if lanes == 1 and self.sign("["):
            return self.array(name, dtype)
        if not self.sign("="):
            if self.at < len(self.text) and self.text[self.at] not in ",})":
                raise self.malformed(_FORMS)
            raise GemmsimError(f"{self.what}: a scalar needs a value, as in {dtype}=1")
        numbers = self.numbers(dtype)
        if len(numbers) % lanes or len(numbers) % DTYPES[dtype].packed:
            raise GemmsimError(f"{self.what}: {word[0]} takes {max(lanes, 2)} numbers, as in {word[0]}=(1,2)")
        return Values(dtype, numbers, lanes)

    def struct(self) -> Struct:
        members: list[Item] = []
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise self.malformed(f"structs are nested more than {_MOST_DEPTH} deep")
        while not self.sign("}"):
            if members:
                self.need(",", "between the members of a struct")
            members.append(self.item())
        if not members:
            raise self.malformed("a struct needs a member")
        self.depth -= 1
        return Struct(tuple(members))

    def address(self, name: str) -> Item:
        if self.sign("{"):
            return InMemory(self.struct(), name)
        if self.sign("bytes"):
            return InMemory(self.raw(), name)
        return self.reference()

    def reference(self) -> Reference:
        word = self.take(_WORD)
        if word is None:
            raise self.malformed("'&' needs an array's name, as in &A, or a struct, as in &{i32=1}")
        index: list[int] = []
        if self.sign("["):
            index.append(self.integer("in &NAME[...]"))
            while self.sign(","):
                index.append(self.integer("in &NAME[...]"))
            self.need("]", "in &NAME[...]")
        plus = self.integer("of bytes behind '+'") if self.sign("+") else 0
        return Reference(word[0], tuple(index), plus)

    def raw(self) -> Raw:
        self.need("=", "in bytes=N or bytes=@FILE")
        content = read_bytes(self.file(), self.what) if self.sign("@") else bytes(self.size("in bytes=N", "bytes"))
        places: list[tuple[int, Item]] = []
        if self.sign("{"):
            while not self.sign("}"):
                if places:
                    self.need(",", "between the places in bytes")
                at = self.integer("where an item goes, as in {0x18: &A}")
                self.need(":", "behind the place, as in {0x18: &A}")
                places.append((at, self.item()))
        return Raw(content, tuple(places))

    def size(self, where: str, of: str) -> int:
        size = self.integer(where)
        if not 1 <= size <= 1 << 20:
            raise GemmsimError(f"{self.what}: {size} {of}: expected 1 to {1 << 20}")
        return size

    def pointers(self, name: str) -> Item:
        count = None
        if self.sign("["):
            count = self.size("of addresses, as in ptr[8]", "addresses")
            self.need("]", "in ptr[N]")
        self.need("=", "in ptr=... or ptr[N]=...")
        if self.sign("("):
            members = [self.item()]
            while self.sign(","):
                members.append(self.item())
            self.need(")", "behind the list of addresses")
            if count is not None and count != len(members):
                given = f"{len(members)} {verb(len(members), 'is', 'are')} given"
                raise GemmsimError(f"{self.what}: ptr[{count}] needs {plural(count, 'address')}, {given}")
            listed = Struct(tuple(members))
            return listed if count is None else InMemory(listed, name)
        if count is None:
            return Values("u64", (self.integer("or a list of addresses behind ptr="),))
        whole = self.item()
        if isinstance(whole, Array):
            one, inner = whole.argument, whole.argument.name
            if one.strides_bytes is not None or one.offset_bytes:
                raise GemmsimError(f"{self.what}: name the array and refer to it, as in ptr[{count}]=&A")
            shape = one.shape if inner else (count, *one.shape)
            table_name = name if inner else f"{name}.ptr" if name else ""
            argument = Argument(one.dtype, shape, one.value, inner or name)
            check_size(self.what, argument)
            return Table(count, Array(argument), table_name)
        if not isinstance(whole, Reference):
            raise self.malformed(f"ptr[{count}]= takes an array, a reference such as &A, or a list in parentheses")
        return Table(count, whole, name)

    def tensor_map(self) -> TensorMap:
        """Read (WHOLE, box=64x128, KEY=VALUE ...): WHOLE is an array, a reference to one, or an argument's number."""
        self.need("(", "behind tensormap")
        number = self.take(_COUNT)
        whole = Reference(f"arg{number[0].strip()}") if number else self.item()
        if not isinstance(whole, Array | Reference):
            raise self.malformed("tensormap(...) begins with an array, a reference such as &A, or an argument's number")
        given: list[str] = []
        while not self.sign(")"):
            self.need(",", "in tensormap(...)")
            word = self.take(_SETTING)
            if word is None:
                raise self.malformed("expected KEY=VALUE in tensormap(...), as in box=64x128")
            given.append(word[0])
        return TensorMap(whole, parse_tile(given, self.what))

    def file_array(self, name: str) -> Array:
        file = file_contents(self.file(), name, self.what)
        dtype, shape = described(file, self.what)
        argument = Argument(dtype, shape, Contents(file, periodic=False), name)
        check_size(self.what, argument)
        return Array(argument)

    def file(self) -> str:
        match = self.take(_FILE)
        if match is None:
            raise self.malformed("'@' needs a file, as in @a.npy")
        return match[1] or match[2]

    def array(self, name: str, dtype: str) -> Array:
        """Read SHAPE[; LAYOUT]] and [=CONTENT] of an array."""
        stop = self.text.find("]", self.at)
        if stop < 0:
            raise self.malformed(_FORMS)
        shape_text, _, layout_text = self.text[self.at : stop].partition(";")
        self.at = stop + 1
        self.spaces()
        words = shape_text.split(",")
        if not all(map(_COUNT.fullmatch, words)) or min(map(int, words)) < 1:
            raise GemmsimError(f"{self.what}: shape [{shape_text}] must be positive integers, as in {dtype}[256,256]")
        shape = tuple(map(int, words))
        packed = DTYPES[dtype].packed
        if shape[-1] % packed:
            raise GemmsimError(f"{self.what}: the last size of {dtype} must be even: a byte holds two")
        shape = (*shape[:-1], shape[-1] // packed)
        strides, offset = parse_layout(layout_text, dtype, shape, self.what)
        contents = self.contents(name, dtype, shape) if self.sign("=") else Contents(periodic=False)
        argument = Argument(dtype, shape, contents, name, strides, offset)
        check_size(self.what, argument)
        return Array(argument)

    def contents(self, name: str, dtype: str, shape: tuple[int, ...]) -> Contents:
        """Read what an array holds: a number, a list of numbers or a file."""
        if self.sign("@"):
            return Contents(file_contents(self.file(), name, self.what), periodic=False)
        listed = self.text.startswith("(", self.at)
        numbers = self.numbers(dtype)
        if not listed:
            return Contents(numbers[0], periodic=False)
        count = DTYPES[dtype].packed
        for size in shape:
            count *= size
        if len(numbers) != count:
            numbers_are = f"{len(numbers)} {verb(len(numbers), 'number is', 'numbers are')}"
            raise GemmsimError(f"{self.what}: the array has {plural(count, 'element')}, {numbers_are} given")
        return Contents(numbers, periodic=False)

    def numbers(self, dtype: str) -> tuple[float, ...]:
        """Read one number, or numbers in parentheses."""
        if not self.sign("("):
            return (self.number(dtype),)
        found = [self.number(dtype)]
        while self.sign(","):
            found.append(self.number(dtype))
        self.need(")", "behind the list of numbers")
        return tuple(found)

    def number(self, dtype: str) -> float | int:
        start = self.at
        match = self.take(_NUMBER)
        value = match[0] if match else ""
        try:
            if dtype in FLOATS:
                return self.held(dtype, float(value))
            number = {"true": 1, "false": 0}[value] if value in ("true", "false") else int(value, 0)
        except ValueError:
            kind = "a number" if dtype in FLOATS else "an integer"
            raise GemmsimError(f"{self.what}: '{value or self.text[start:]}' is not {kind}") from None
        low, high = _limits(dtype)
        if not low <= number <= high:
            raise GemmsimError(f"{self.what}: {number} does not fit {dtype}, which holds {low} to {high}")
        return number

    def held(self, dtype: str, number: float) -> float:
        """Return the number. Raises GemmsimError where it is finite and the type has only infinity for it."""
        exact = NUMPY_DTYPES[dtype].type
        with np.errstate(over="ignore"):
            lost = issubclass(exact, np.floating) and np.isinf(exact(number)) and not np.isinf(number)
        if lost:
            largest = float(np.finfo(exact).max)
            raise GemmsimError(f"{self.what}: {number:g} does not fit {dtype}, which holds up to {largest:g}")
        return number


def _limits(dtype: str) -> tuple[int, int]:
    fixed = {"bool": (0, 1), "s4": (-8, 7), "u4": (0, 15)}
    if dtype in fixed:
        return fixed[dtype]
    limits = np.iinfo(NUMPY_DTYPES[dtype])
    return int(limits.min), int(limits.max)
