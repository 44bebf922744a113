"""Compiles a program whose host code knows how its kernel is launched, and asks it.

The program takes M, N and K and prints lines: `grid X Y Z`, `block X Y Z`, `shared BYTES`, and `parameter HEX`, the
bytes of the kernel's one parameter. Among them, a 64-bit word with 0x7A in its upper byte stands for the address of an
array: bits 40 to 47 are the array's number, those below are added to its address.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Packed

from .nvcc import nvcc, run

_MARK, _NUMBER_AT, _OFFSET = 0x7A, 40, (1 << 40) - 1


@dataclass(frozen=True)
class HostLaunch:
    """What a program said: its file, and the launch of its kernel."""

    executable: Path
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameter: Packed


def host_launch(source: Path, sizes: Sequence[int], folder: Path, arch: str, options: Sequence[str]) -> HostLaunch:
    """Compile `source` with nvcc for `arch` and run it with `sizes`, which needs no GPU.

    folder  where the program is put

    Raises GemmsimError where it does not compile, or prints something else.
    """
    program = folder / "wild"
    usual = [f"-arch={arch}", "-std=c++17", "-w", "-cudart=static", "-no-compress"]
    run([nvcc(), *usual, *options, "-o", str(program), str(source)], f"nvcc cannot compile it for {arch}")
    lines = dict(line.split(" ", 1) for line in run([str(program), *map(str, sizes)], "the program fails").splitlines())
    try:
        grid, block = (_dims(lines[key]) for key in ("grid", "block"))
        content = bytes.fromhex(lines["parameter"])
        return HostLaunch(program, grid, block, int(lines["shared"]), packed(content))
    except (KeyError, ValueError) as error:
        raise GemmsimError(f"the program does not say how its kernel is launched: {error}") from None


def packed(content: bytes) -> Packed:
    """Return the parameter with those bytes, in which marked addresses are replaced by places for arrays' addresses."""
    found, plain = [], bytearray(content)
    for at in range(0, len(content) - 7, 8):
        (word,) = struct.unpack_from("<Q", content, at)
        if word >> 56 == _MARK:
            found.append(Address(at, word >> _NUMBER_AT & 0xFF, word & _OFFSET))
            plain[at : at + 8] = bytes(8)
    return Packed(bytes(plain), tuple(found))


def _dims(text: str) -> tuple[int, int, int]:
    x, y, z = map(int, text.split())
    return x, y, z
