"""Compiles a program whose host code knows how its kernel is launched, and asks it.

The program takes M, N, K, and SMs where the sizes have SMS. It prints lines: `grid X Y Z`, `block X Y Z`, `shared
BYTES`, `cluster X Y Z` where it wants one, and `parameter HEX`, the bytes of the kernel's parameter. Among them, a
64-bit word with 0x7A in its upper byte stands for the address of an array: bits 40 to 47 are the number, those below
are added to its address. With 0x7B in its upper byte, it begins a tensor map; the number below is that of a line `map
N type T address A swizzle S promotion P fill F sizes ... strides ... box ... steps ...`, the numbers that
cuTensorMapEncodeTiled was given.
"""

from __future__ import annotations

import re
import struct
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gemmsim.launch.tensor_maps import DRIVER_TYPES, MAP_BYTES, MapFields, written
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Packed

from .nvcc import nvcc, run, standard

_MARK, _NUMBER_AT, _OFFSET = 0x7A, 40, (1 << 40) - 1
_MAP_MARK = 0x7B
_MAP_WORDS = re.compile(r"[a-z]+[ 0-9]*")
Dims = tuple[int, int, int]


@dataclass(frozen=True)
class HostLaunch:
    """What a program said: its file's content, and the launch of its kernel.

    maps  where tensor maps begin in the parameter
    """

    executable: bytes
    grid: Dims
    block: Dims
    shared_bytes: int
    parameter: Packed
    maps: tuple[int, ...] = ()
    cluster: Dims | None = None


def host_launch(
    text: str, sizes: tuple[int, ...], architectures: tuple[str, ...], options: tuple[str, ...]
) -> HostLaunch:
    """Compile a program with nvcc, with machine code for all `architectures`, and run it with `sizes`.

    The host code takes most of the compiler's time, and is the same for all of them: hence one program, which is kept.
    Running it needs no GPU. Raises GemmsimError where it does not compile, or prints something else.
    """
    executable = _compiled(text, architectures, options)
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        program = Path(name, "wild")
        program.write_bytes(executable)
        program.chmod(0o700)
        return said(run([str(program), *map(str, sizes)], "the program fails"), executable)


@lru_cache(maxsize=2)
def _compiled(text: str, architectures: tuple[str, ...], options: tuple[str, ...]) -> bytes:
    codes = [f"-gencode=arch={arch.replace('sm_', 'compute_')},code={arch}" for arch in architectures]
    usual = [*standard(options), "-w", "-cudart=static", "-no-compress", "-o", "wild", "wild.cu"]
    with tempfile.TemporaryDirectory(prefix="gemmsim-wild-") as name:
        folder = Path(name)
        (folder / "wild.cu").write_text(text, encoding="utf-8")
        run([nvcc(), *codes, *options, *usual], f"nvcc cannot compile it for {', '.join(architectures)}", folder)
        return (folder / "wild").read_bytes()


def said(printed: str, executable: bytes) -> HostLaunch:
    """Return the launch that a program printed. Raises GemmsimError where lines are missing or malformed."""
    lines = dict(line.split(" ", 1) for line in printed.splitlines() if not line.startswith("map "))
    maps = [line for line in printed.splitlines() if line.startswith("map ")]
    try:
        grid, block = (_dims(lines[key]) for key in ("grid", "block"))
        cluster = _dims(lines["cluster"]) if "cluster" in lines else None
        content = bytearray.fromhex(lines["parameter"])
        places = _put_maps(content, maps)
        parameter = packed(bytes(content))
        # A cluster of one block is what a launch without clusters is.
        wanted = None if cluster == (1, 1, 1) else cluster
        return HostLaunch(executable, grid, block, int(lines["shared"]), parameter, places, wanted)
    except (KeyError, ValueError, IndexError) as error:
        raise GemmsimError(f"the program does not say how its kernel is launched: {error}") from None


def _put_maps(content: bytearray, lines: list[str]) -> tuple[int, ...]:
    """Put maps in the place of marked words; return where they begin. Their first word is the address, still marked."""
    found = []
    for at in range(0, len(content) - MAP_BYTES + 1, 8):
        (word,) = struct.unpack_from("<Q", content, at)
        if word >> 16 != _MAP_MARK << 40:  # bytes between members may be anything
            continue
        say = {one.split()[0]: list(map(int, one.split()[1:])) for one in _MAP_WORDS.findall(lines[word & 0xFFFF])}
        fields = MapFields(
            type=DRIVER_TYPES[say["type"][0]],
            sizes=tuple(say["sizes"]),
            strides_bytes=tuple(say["strides"]),
            box=tuple(say["box"]),
            steps=tuple(say["steps"]),
            swizzle=say["swizzle"][0],
            fill=say["fill"][0],
        )
        content[at : at + MAP_BYTES] = written(fields)
        struct.pack_into("<Q", content, at, say["address"][0])
        found.append(at)
    return tuple(found)


def packed(content: bytes) -> Packed:
    """Return the parameter with those bytes, in which marked addresses are replaced by places for arrays' addresses."""
    found, plain = [], bytearray(content)
    for at in range(0, len(content) - 7, 8):
        (word,) = struct.unpack_from("<Q", content, at)
        if word >> 56 == _MARK:
            found.append(Address(at, word >> _NUMBER_AT & 0xFF, word & _OFFSET))
            plain[at : at + 8] = bytes(8)
    return Packed(bytes(plain), tuple(found))


def _dims(text: str) -> Dims:
    x, y, z = map(int, text.split())
    return x, y, z
