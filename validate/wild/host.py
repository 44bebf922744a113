"""Compiles a program whose host code knows how its kernel is launched, and asks it.

The program takes M, N and K and prints lines: `grid X Y Z`, `block X Y Z`, `shared BYTES`, and `parameter HEX`, the
bytes of the kernel's one parameter. Among them, a 64-bit word with 0x7A in its upper byte stands for the address of an
array: bits 40 to 47 are the array's number, those below are added to its address.
"""

from __future__ import annotations

import struct
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Packed

from .nvcc import nvcc, run

_MARK, _NUMBER_AT, _OFFSET = 0x7A, 40, (1 << 40) - 1


@dataclass(frozen=True)
class HostLaunch:
    """What a program said: its file's content, and the launch of its kernel."""

    executable: bytes
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameter: Packed


@lru_cache(maxsize=2)
def host_launch(
    text: str, sizes: tuple[int, ...], architectures: tuple[str, ...], options: tuple[str, ...]
) -> HostLaunch:
    """Compile a program with nvcc, with machine code for all `architectures`, and run it with `sizes`.

    The host code takes most of the compiler's time, and is the same for all of them: hence one program, which is kept.
    Running it needs no GPU. Raises GemmsimError where it does not compile, or prints something else.
    """
    codes = [f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in architectures]
    usual = ["-std=c++17", "-w", "-cudart=static", "-no-compress", "-o", "wild", "wild.cu"]
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        folder = Path(name)
        (folder / "wild.cu").write_text(text, encoding="utf-8")
        run([nvcc(), *codes, *options, *usual], f"nvcc cannot compile it for {', '.join(architectures)}", folder)
        printed = run([str(folder / "wild"), *map(str, sizes)], "the program fails")
        executable = (folder / "wild").read_bytes()
    lines = dict(line.split(" ", 1) for line in printed.splitlines())
    try:
        grid, block = (_dims(lines[key]) for key in ("grid", "block"))
        content = bytes.fromhex(lines["parameter"])
        return HostLaunch(executable, grid, block, int(lines["shared"]), packed(content))
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
