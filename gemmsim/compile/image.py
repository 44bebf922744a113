"""Lays out what a kernel needs of its cubin: the functions that it calls, constant banks, and device globals.

This is the work of CUDA's loader. The code begins at address 0 with the kernel, so that an address of code is a byte
offset in it. Device globals have addresses only at launch; until then `Relocation` says which words hold one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

from gemmsim.compile.names import readable_name
from gemmsim.isa.program import GLOBAL_DATA, INSTRUCTION_BYTES, Place, Relocation, Symbol
from gemmsim.support.errors import GemmsimError

STT_OBJECT, STT_FUNC = 1, 2
_CONSTANT = ".nv.constant"
# Relocation types that write a whole address into data, as compilers use them: an absolute address, and a generic one.
_ABSOLUTE_64, _GENERIC_64 = 2, 4
# Where in constant bank 0 the driver puts the address of bank 3, which holds the source's `__constant__` variables, for
# architectures from a first one on. It was read off code that takes the address of such a variable.
_USER_BANK, _USER_BANK_ADDRESS = 3, ((100, 0x120), (90, 0xD0), (75, 0x50))
_LARGEST_IMAGE_BYTES = 8 << 30


@dataclass(frozen=True)
class ElfSymbol:
    """A row of a cubin's symbol table. `section` is the index of its section, `value` its byte offset there."""

    name: str
    kind: int
    other: int
    section: int
    value: int
    size: int


@dataclass(frozen=True)
class Section:
    """A section of a cubin. `data` is empty and `size` is not where its content is all zeros (NOBITS)."""

    index: int
    name: str
    data: bytes
    size: int
    align: int
    info: int


@dataclass(frozen=True)
class _Entry:
    """A relocation: the word at `offset` of a section gets the address of a symbol + `addend` (None: + the word)."""

    offset: int
    kind: int
    symbol: ElfSymbol
    addend: int | None


@dataclass(frozen=True)
class Module:
    """The sections of a cubin and its symbol table, in their order."""

    sections: tuple[Section, ...]
    symbols: tuple[ElfSymbol, ...]

    @cached_property
    def relocations(self) -> dict[str, tuple[_Entry, ...]]:
        """{section name: the relocations of its content}."""
        found: dict[str, tuple[_Entry, ...]] = {}
        for section in self.sections:
            for prefix, layout in ((".rela.", "<QIIq"), (".rel.", "<QII")):
                if section.name.startswith(prefix):
                    owner = "." + section.name.removeprefix(prefix)
                    entries = tuple(
                        _Entry(offset, kind, self.symbols[index], addend[0] if addend else None)
                        for offset, kind, index, *addend in struct.iter_unpack(layout, section.data)
                    )
                    found[owner] = found.get(owner, ()) + entries
        return found

    @cached_property
    def symbols_in(self) -> dict[int, tuple[tuple[int, ElfSymbol], ...]]:
        """{section index: (number, symbol) of the symbols that lie there}; 0 holds those that the cubin lacks."""
        found: dict[int, list[tuple[int, ElfSymbol]]] = {}
        for number, symbol in enumerate(self.symbols):
            found.setdefault(symbol.section, []).append((number, symbol))
        return {section: tuple(rows) for section, rows in found.items()}

    def relocations_of(self, section: Section) -> tuple[_Entry, ...]:
        return self.relocations.get(section.name, ())


@dataclass(frozen=True)
class CodeSection:
    """The code of one function and what is compiled into it.

    name          the function's name: the section is `.text.NAME`
    symbol_index  its number in the cubin's symbol table
    start, stop   byte range in the code of the kernel
    """

    name: str
    symbol_index: int
    start: int
    stop: int


@dataclass(frozen=True)
class Image:
    """What a kernel needs of its module; `Program` and `elf.Kernel` describe the fields."""

    code: bytes
    functions: tuple[CodeSection, ...]
    labels: dict[str, int]
    constants: dict[int, bytes]
    relocations: tuple[Relocation, ...]
    global_data: bytes
    global_bytes: int
    variables: tuple[Symbol, ...]
    externals: tuple[str, ...]


def image_of(kernel: ElfSymbol, module: Module, sm: int) -> Image:
    """Lay out `kernel`, compiled for the SM version `sm` (90). Raises GemmsimError for what gemmsim cannot place."""
    banks = {
        int(number): section
        for section in module.sections
        if section.name.startswith(_CONSTANT)
        for number, _, owner in [section.name.removeprefix(_CONSTANT).partition(".")]
        if number.isdigit() and number != "0" and owner in ("", kernel.name)
    }
    placed, global_data, global_bytes = _globals(module, banks)
    texts, externals = _reachable(module, kernel, [*banks.values(), *_data_sections(module)])
    code, functions, starts = _code(module, texts)
    relocations: list[Relocation] = []
    if _USER_BANK in banks:
        slot = next(at for first, at in _USER_BANK_ADDRESS if sm >= first)
        relocations.append(Relocation(0, slot, placed[banks[_USER_BANK].index]))
    constants = {bank: bytearray(section.data) for bank, section in banks.items()}
    image = bytearray(global_data)
    for section in (*banks.values(), *_data_sections(module)):
        bank = next((number for number, one in banks.items() if one is section), GLOBAL_DATA)
        for entry in module.relocations_of(section):
            target, at = entry.symbol, entry.offset
            addend = entry.addend
            if addend is None:
                addend = struct.unpack_from("<q", section.data, at)[0]
            if target.section in placed:
                _check_kind(entry, section)
                here = placed[target.section] + target.value + addend
                if bank != GLOBAL_DATA:
                    relocations.append(Relocation(bank, at, here))
                if section.index in placed:
                    relocations.append(Relocation(GLOBAL_DATA, placed[section.index] + at, here))
                continue
            value = _code_address(target, starts, externals, len(code))
            if value is None:
                continue  # a word of something that gemmsim does not have, such as a texture: it keeps its content
            _check_kind(entry, section)
            if bank != GLOBAL_DATA:
                struct.pack_into("<q", constants[bank], at, value + addend)
            if section.index in placed:
                struct.pack_into("<q", image, placed[section.index] + at, value + addend)
    return Image(
        code=code,
        functions=functions,
        labels=_labels(module, starts, externals, len(code)),
        constants={bank: bytes(data) for bank, data in constants.items()},
        relocations=tuple(relocations),
        global_data=bytes(image),
        global_bytes=global_bytes,
        variables=_variables(module, banks, placed),
        externals=externals,
    )


def _data_sections(module: Module) -> list[Section]:
    return [section for section in module.sections if section.name in (".nv.global.init", ".nv.global")]


def _check_kind(entry: _Entry, section: Section) -> None:
    if entry.kind not in (_ABSOLUTE_64, _GENERIC_64):
        raise GemmsimError(
            f"the cubin's section {section.name} holds the address of '{entry.symbol.name}' in a form that gemmsim "
            f"does not know (relocation type {entry.kind}): it knows whole 64-bit addresses"
        )


def _globals(module: Module, banks: dict[int, Section]) -> tuple[dict[int, int], bytes, int]:
    """Lay out the image of device globals: initialised data, the `__constant__` variables, and then zeros.

    Returns {section index: the section's byte offset in the image}, the image without the zeros at its end, and the
    size of the image.
    """
    data = [section for section in _data_sections(module) if section.data]
    data += [section for bank, section in banks.items() if bank == _USER_BANK]
    zeros = [section for section in _data_sections(module) if not section.data]
    placed, image = {}, b""
    for section in data:
        image += bytes(-len(image) % section.align)
        placed[section.index] = len(image)
        image += section.data
    size = len(image)
    for section in zeros:
        size += -size % section.align
        placed[section.index] = size
        size += section.size
    if size > _LARGEST_IMAGE_BYTES:
        raise GemmsimError(
            f"the __device__ variables have {size / 2**30:.1f} GiB, "
            f"but gemmsim can hold {_LARGEST_IMAGE_BYTES >> 30} GiB"
        )
    return placed, image, size


def _reachable(module: Module, kernel: ElfSymbol, data: list[Section]) -> tuple[list[int], tuple[str, ...]]:
    """Find the code that the kernel may reach: through its calls, and through addresses of functions in data.

    Returns the indices of the sections of code, the kernel's own first, and the names of functions that are not there.
    """
    texts, externals = [kernel.section], []
    waiting = [module.sections[kernel.section], *data]
    while waiting:
        for entry in module.relocations_of(waiting.pop(0)):
            target = entry.symbol
            if not target.section and target.kind == STT_FUNC:
                externals.append(target.name)
            elif _is_code(module, target) and target.section not in texts:
                texts.append(target.section)
                waiting.append(module.sections[target.section])
    return texts, tuple(dict.fromkeys(externals))


def _is_code(module: Module, symbol: ElfSymbol) -> bool:
    return symbol.section < len(module.sections) and module.sections[symbol.section].name.startswith(".text.")


def _code(module: Module, texts: list[int]) -> tuple[bytes, tuple[CodeSection, ...], dict[int, int]]:
    """Put sections of code one behind the other; returns the code, its sections, and {section index: byte offset}."""
    code, functions, starts = b"", [], {}
    for index in texts:
        section = module.sections[index]
        name = section.name.removeprefix(".text.")
        if len(section.data) % INSTRUCTION_BYTES:
            raise GemmsimError(f"the code of '{name}' is {len(section.data)} bytes, not a multiple of 16")
        starts[index] = len(code)
        named = [number for number, symbol in module.symbols_in.get(index, ()) if symbol.name == name]
        if not named:
            raise GemmsimError(f"the cubin has no symbol for its code section '{section.name}'")
        functions.append(CodeSection(name, named[0], len(code), len(code) + len(section.data)))
        code += section.data
    return code, tuple(functions), starts


def _code_address(symbol: ElfSymbol, starts: dict[int, int], externals: tuple[str, ...], code_bytes: int) -> int | None:
    if symbol.section in starts:
        return starts[symbol.section] + symbol.value
    if symbol.name in externals and not symbol.section:
        return code_bytes + INSTRUCTION_BYTES * externals.index(symbol.name)
    return None


def _labels(module: Module, starts: dict[int, int], externals: tuple[str, ...], code_bytes: int) -> dict[str, int]:
    found = {}
    for _, symbol in (row for section in (0, *starts) for row in module.symbols_in.get(section, ())):
        address = _code_address(symbol, starts, externals, code_bytes)
        if address is not None and symbol.name and symbol.kind == STT_FUNC:
            found[symbol.name] = address
    return found


def _variables(module: Module, banks: dict[int, Section], placed: dict[int, int]) -> tuple[Symbol, ...]:
    number = {section.index: bank for bank, section in banks.items()}
    found = []
    for _, symbol in (row for section in {*number, *placed} for row in module.symbols_in.get(section, ())):
        if symbol.kind != STT_OBJECT or not symbol.size:
            continue
        places = [Place(number[symbol.section], symbol.value)] if symbol.section in number else []
        if symbol.section in placed:
            places.append(Place(GLOBAL_DATA, placed[symbol.section] + symbol.value))
        if places:
            found.append(Symbol(symbol.name, readable_name(symbol.name), symbol.size, tuple(places)))
    return tuple(sorted(found, key=lambda symbol: symbol.name))
