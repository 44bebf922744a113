"""Of code for several architectures the GPU gets what the driver would choose."""

from __future__ import annotations

import struct

import pytest
from containers import Entry, cubin, elf, fatbin

from gemmsim.compile.binary import choose
from gemmsim.compile.cubin_tools import made_by
from gemmsim.support.errors import GemmsimError


def entry(sm: int, *kernels: str, flags: int = 0x11) -> Entry:
    return Entry(cubin(sm, *kernels), sm, flags=flags)


@pytest.mark.parametrize(
    ("arch", "versions", "chosen"),
    [
        ("sm_80", (75, 80, 86, 90), 80),
        ("sm_86", (75, 80, 86, 90), 86),
        ("sm_89", (75, 80, 86, 90), 86),  # of the same generation, and not newer than the GPU
        ("sm_86", (75, 80), 80),
        ("sm_90", (75, 80, 90), 90),
        ("sm_120", (80, 90, 100, 120), 120),
    ],
)
def test_the_nearest_cubin_is_taken(arch: str, versions: tuple[int, ...], chosen: int) -> None:
    data = fatbin(*(entry(sm, "f") for sm in versions))
    found = choose(data, None, arch, "prog")
    assert found.cubin == cubin(chosen, "f")
    assert (found.symbol, found.origin, found.made_here) == ("f", f"the sm_{chosen} cubin in prog", False)


@pytest.mark.parametrize(("arch", "versions"), [("sm_75", (80, 86)), ("sm_90", (80, 89)), ("sm_120", (100, 90))])
def test_a_cubin_of_another_generation_does_not_run(arch: str, versions: tuple[int, ...]) -> None:
    data = fatbin(*(entry(sm, "f") for sm in versions))
    only = ", ".join(f"cubin for sm_{sm}" for sm in versions)
    with pytest.raises(GemmsimError, match=f"'prog' holds no code for {arch}, only {only}: compile it for {arch}"):
        choose(data, None, arch, "prog")


def test_code_of_one_architecture_and_of_a_family() -> None:
    data = fatbin(entry(90, "plain"), entry(90, "special", flags=0x100011), entry(100, "family", flags=0x1200011))
    assert choose(data, "special", "sm_90", "prog").origin == "the sm_90a cubin in prog"
    assert choose(data, "family", "sm_103", "prog").symbol == "family"
    with pytest.raises(GemmsimError, match="only cubin for sm_90, cubin for sm_90a, cubin for sm_100f"):
        choose(data, "family", "sm_110", "prog")


def test_a_kernel_is_looked_for_in_every_fatbin() -> None:
    """The second source file was compiled for sm_80 alone; its kernel is found all the same."""
    section = fatbin(entry(80, "f"), entry(86, "f")) + fatbin(entry(80, "g"))
    data = elf({".nv_fatbin": section})
    assert choose(data, "f", "sm_86", "prog").origin == "the sm_86 cubin in prog"
    assert choose(data, "g", "sm_86", "prog").origin == "the sm_80 cubin in prog"
    with pytest.raises(GemmsimError, match=r"'prog' holds 2 kernels, choose one as the entry \(--entry\): f; g"):
        choose(data, None, "sm_86", "prog")


def test_the_same_kernel_twice_must_be_the_same_code() -> None:
    once, other = fatbin(entry(80, "f")), fatbin(entry(80, "f", "g"))
    assert choose(elf({".nv_fatbin": once + once}), "f", "sm_80", "prog").symbol == "f"
    with pytest.raises(GemmsimError, match="holds the kernel f in 2 different images for sm_80"):
        choose(elf({".nv_fatbin": once + other}), "f", "sm_80", "prog")


def test_a_file_without_kernels_is_refused() -> None:
    with pytest.raises(GemmsimError, match="'prog' holds no kernel"):
        choose(fatbin(entry(80)), None, "sm_80", "prog")


def note(tool: str, version: str) -> bytes:
    """A note as ptxas 13 writes it: six words of places, then strings."""
    strings = b"\0" + tool.encode() + b"\0" + version.encode() + b"\0"
    text = struct.pack("<6I", 2, 0, 1, len(tool) + 2, 0, 0) + strings
    return struct.pack("<III", 12, len(text), 2000) + b"NVIDIA Corp\0" + text


def test_the_cubin_says_what_made_it() -> None:
    text = "Cuda compilation tools, release 13.0, V13.0.88"
    assert made_by(cubin(80, "f", extra={".note.nv.tkinfo": note("ptxas", text)})) == {"ptxas": "13.0.88"}
    before_13 = struct.pack("<BBHI", 4, 0x37, 4, 118)  # EIATTR_CUDA_API_VERSION
    assert made_by(cubin(80, "f", extra={".nv.info.f": before_13})) == {"CUDA": "11.8"}
    assert made_by(cubin(80, "f")) == {}
    assert made_by(cubin(80, "f", extra={".note.nv.tkinfo": b"short"})) == {}
