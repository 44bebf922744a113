"""Describes an address in messages by the array argument and the element, or the device global, that lies there."""

from __future__ import annotations

from collections.abc import Sequence

from gemmsim.isa.program import GLOBAL_DATA, Program
from gemmsim.support.dtypes import DTYPES
from gemmsim.support.plurals import plural
from gemmsim.trace.launch_data.device_memory import FAR, PAGE_BYTES, DeviceMemory, addresses_of, reach_bytes
from gemmsim.trace.types import Argument, shown_type


def describe_address(args: Sequence[Argument], address: int, program: Program) -> str:
    """Say what lies at an address, as in "argument 1 (f32[256,256]), element [256, 0]: right past its end".

    An element past the end of an array is named as if the array had more rows. An address behind the arguments is named
    by the device globals of `program`, as in "device global 'bias' (256 bytes), byte 16".
    """
    placed, behind = addresses_of(args)
    for number, (argument, start) in enumerate(zip(args, placed, strict=True)):
        if not argument.shape:
            continue
        reach = reach_bytes(argument.memory_bytes)
        if start - PAGE_BYTES // 2 <= address < start + reach - PAGE_BYTES // 2:
            return _describe(number, argument, address - start)
    return _device_global(program, behind, address) or FAR


def owner_of(memory: DeviceMemory, program: Program, address: int) -> str:
    """Say behind which argument or device global an address that nothing owns lies, and how far."""
    owner = memory.owner(address)
    return owner if owner != FAR else _device_global(program, memory.globals_address, address) or FAR


def _device_global(program: Program, start: int, address: int) -> str:
    """Say where an address lies in the image of device globals that begins at `start`; "" where it is not near it."""
    places = sorted(
        (
            (place.offset_bytes, symbol)
            for symbol in program.symbols
            for place in symbol.places
            if place.bank == GLOBAL_DATA and start + place.offset_bytes <= address
        ),
        key=lambda pair: pair[0],
    )
    if not places or address >= start + program.global_bytes + PAGE_BYTES // 2:
        return ""
    at, symbol = places[-1]
    byte = address - start - at
    past = f": {plural(byte - symbol.size_bytes + 1, 'byte')} past its last byte" if byte >= symbol.size_bytes else ""
    return f"device global '{symbol.shown}' ({plural(symbol.size_bytes, 'byte')}), byte {byte}{past}"


def _describe(number: int, argument: Argument, offset: int) -> str:
    """Describe the byte `offset` bytes behind the start of an argument's memory."""
    item, size = DTYPES[argument.dtype].item_bytes, argument.memory_bytes
    text = f"argument {argument.name or number} ({shown_type(argument)})"
    if argument.plain:
        place = []
        element, rest = divmod(offset, item)
        for length in reversed(argument.shape[1:]):
            element, index = divmod(element, length)
            place.append(index)
        text += f", element [{', '.join(map(str, (element, *reversed(place))))}]"
        if rest:
            text += f" + {plural(rest, 'byte')}"
    else:
        text += f", byte {offset - argument.offset_bytes} from its first element"
    if offset >= size:
        text += f": {plural(offset - size, 'byte')} past its end" if offset > size else ": right past its end"
    elif offset < 0:
        text += f": {plural(-offset, 'byte')} before its start"
    return text
