"""Puts the bytes of a kernel parameter together, as the ABI lays out a struct, with places for addresses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address

POINTER_BYTES = 8


@dataclass(slots=True)
class Bytes:
    """The bytes of an item by value, the places in them that hold addresses, and its alignment in bytes."""

    content: bytearray
    addresses: list[Address] = field(default_factory=list)
    alignment: int = 1


def pointer(address: Address) -> Bytes:
    return Bytes(bytearray(POINTER_BYTES), [address], POINTER_BYTES)


def joined(members: list[Bytes]) -> Bytes:
    whole = Bytes(bytearray())
    for member in members:
        _pad(whole.content, member.alignment)
        start = len(whole.content)
        whole.addresses += [replace(one, at_byte=one.at_byte + start) for one in member.addresses]
        whole.content += member.content
        whole.alignment = max(whole.alignment, member.alignment)
    _pad(whole.content, whole.alignment)
    return whole


def _pad(content: bytearray, alignment: int) -> None:
    content.extend(bytes(-len(content) % alignment))


def overlaid(content: bytes, places: list[tuple[int, Bytes]], what: str) -> Bytes:
    whole = Bytes(bytearray(content))
    for at, member in places:
        stop = at + len(member.content)
        if stop > len(content):
            raise GemmsimError(f"{what}: {at:#x} to {stop:#x} lies beyond the {len(content)} bytes that are given")
        whole.content[at:stop] = member.content
        whole.addresses += [replace(one, at_byte=one.at_byte + at) for one in member.addresses]
    return whole
