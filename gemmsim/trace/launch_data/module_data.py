"""Makes the content of a module's constant banks and device globals for one launch."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import GLOBAL_DATA, Program, Symbol
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.plurals import plural
from gemmsim.trace.launch_data.device_memory import DeviceMemory, place_addresses
from gemmsim.trace.types import Address, Argument, PlacedVariable, Variable


def device_globals(program: Program, values: Mapping[str, Argument], address: int) -> Argument:
    """Make the image of the device globals as it is when the kernel starts, u8 [program.global_bytes].

    values   {name of a variable: what it holds, in place of what the source gives it}
    address  device address of the image

    Raises GemmsimError for a name that the module lacks, and for a value of another size than the variable's.
    """
    image = np.zeros(program.global_bytes, np.uint8)
    image[: len(program.global_data)] = np.frombuffer(program.global_data, np.uint8)
    places = _fill(image, program, GLOBAL_DATA, values, address)
    return Argument("u8", image.shape, image, addresses=places)


def constant_banks(
    program: Program, values: Mapping[str, Argument], address: int, pointers: Sequence[int | None]
) -> dict[int, bytes]:
    """Make the content {bank: bytes} of all constant banks but bank 0.

    values, address  as for `device_globals`
    pointers         device address of each argument's array, None for scalars

    Raises GemmsimError as `device_globals` does.
    """
    for name in values:
        find_symbol(program, name)
    banks = {}
    for bank, initial in program.constants.items():
        content = np.frombuffer(initial, np.uint8).copy()
        place_addresses(content.data, _fill(content, program, bank, values, address), pointers)
        banks[bank] = content.tobytes()
    return banks


def place_globals(content: NDArray[np.uint8], program: Program, bank: int, address: int) -> None:
    """Write the addresses of device globals that a bank holds into its content, uint8 [bytes].

    address  device address of the image of device globals
    """
    for one in program.relocations:
        if one.bank == bank:
            word = struct.pack("<Q", (address + one.addend_bytes) & 0xFFFFFFFFFFFFFFFF)
            content[one.offset_bytes : one.offset_bytes + len(word)] = np.frombuffer(word, np.uint8)


def _fill(
    content: NDArray[np.uint8], program: Program, bank: int, values: Mapping[str, Argument], address: int
) -> tuple[Address, ...]:
    """Write the addresses of device globals and the values that belong to a bank into its content.

    Returns the places in the content that are to hold addresses of arguments.
    """
    place_globals(content, program, bank, address)
    pointers: list[Address] = []
    for name, value in values.items():
        symbol = find_symbol(program, name)
        bits = np.ascontiguousarray(value.value).reshape(-1).view(np.uint8)
        if len(bits) != symbol.size_bytes:
            raise GemmsimError(
                f"--symbol {name}: the value has {plural(len(bits), 'byte')}, "
                f"but '{symbol.shown}' has {symbol.size_bytes}"
            )
        for place in symbol.places:
            if place.bank == bank:
                content[place.offset_bytes : place.offset_bytes + len(bits)] = bits
                pointers += [replace(one, at_byte=one.at_byte + place.offset_bytes) for one in value.addresses]
    return tuple(pointers)


def find_symbol(program: Program, name: str) -> Symbol:
    """Return the variable of that name, as it is in the source or in the cubin.

    Raises GemmsimError, which lists the variables, where there is none or more than one.
    """
    exact = [symbol for symbol in program.symbols if symbol.name == name]
    found = exact or [symbol for symbol in program.symbols if symbol.shown == name]
    if len(found) == 1:
        return found[0]
    if found:
        named = ", ".join(symbol.name for symbol in found)
        raise GemmsimError(f"--symbol {name} names {len(found)} variables of kernel '{program.name}': {named}")
    known = [f"{symbol.shown} ({plural(symbol.size_bytes, 'byte')})" for symbol in named_by_people(program)]
    if not known:
        raise GemmsimError(
            f"--symbol {name}: the module of kernel '{program.name}' has no __device__ or __constant__ variable"
        )
    hint = nearest(name, [symbol.shown for symbol in named_by_people(program)])
    raise GemmsimError(
        f"--symbol {name}: kernel '{program.name}' has no such variable{hint}; it has: {', '.join(known)}"
    )


def named_by_people(program: Program) -> tuple[Symbol, ...]:
    """Return the variables of the source, without texts of printf and tables of virtual functions."""
    made = ("$", "__unnamed_", "_ZTV", "_ZTI", "_ZTS", "__func__", "__PRETTY_FUNCTION__")
    return tuple(symbol for symbol in program.symbols if not symbol.name.startswith(made))


def placed_variables(program: Program, memory: DeviceMemory) -> tuple[PlacedVariable, ...]:
    """Return where the source's variables lie in device memory."""
    return tuple(
        PlacedVariable(symbol.shown, memory.globals_address + place.offset_bytes, symbol.size_bytes)
        for symbol in named_by_people(program)
        for place in symbol.places
        if place.bank == GLOBAL_DATA
    )


def variables_after(program: Program, memory: DeviceMemory) -> Mapping[str, Variable]:
    """Return {name: content} of the source's `__device__` variables, as they are now.

    The name is that in the source, or that in the cubin where several variables are called so.
    """
    image, stored = memory.device_globals(), memory.globals_stored()
    called = Counter(symbol.shown for symbol in named_by_people(program))
    found = {}
    for symbol in named_by_people(program):
        for place in symbol.places:
            if not symbol.constant:
                part = slice(place.offset_bytes, place.offset_bytes + symbol.size_bytes)
                name = symbol.shown if called[symbol.shown] == 1 else symbol.name
                found[name] = Variable(image[part], bool(stored[part].any()))
    return found
