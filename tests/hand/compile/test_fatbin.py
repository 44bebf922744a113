"""Device code is found in containers that are built here byte by byte."""

from __future__ import annotations

import pytest
from containers import RELOCATABLE, Entry, archive, cubin, elf, fatbin

from gemmsim.compile.fatbin import device_images
from gemmsim.support.errors import GemmsimError

lz4_block = pytest.importorskip("lz4.block")
zstandard = pytest.importorskip("zstandard")

PTX = b".version 8.0\n.target sm_90\n.visible .entry f()\n{ ret; }\n" * 20
LZ4 = Entry(PTX, 90, 1, 0x2011, lz4_block.compress(PTX, store_size=False))
ZSTD = Entry(PTX, 90, 1, 0x8011, zstandard.compress(PTX))


def found(data: bytes) -> list[tuple[str, str, bytes]]:
    return [(image.kind, image.arch, image.content()) for image in device_images(data)]


def test_a_cubin_is_one_image() -> None:
    data = cubin(86, "f")
    assert found(data) == [("cubin", "sm_86", data)]
    assert [image.relocatable for image in device_images(data)] == [False]


def test_a_relocatable_cubin_is_known_by_its_type() -> None:
    assert [image.relocatable for image in device_images(cubin(86, "f", kind=RELOCATABLE))] == [True]


@pytest.mark.parametrize(("entry", "compression"), [(LZ4, "LZ4"), (ZSTD, "zstd"), (Entry(PTX, 90, 1), "")])
def test_entries_are_unpacked(entry: Entry, compression: str) -> None:
    data = fatbin(Entry(cubin(80, "f"), 80), entry)
    assert found(data) == [("cubin", "sm_80", cubin(80, "f")), ("ptx", "sm_90", PTX)]
    assert device_images(data)[1].compression == compression


def test_an_entry_shorter_than_its_space_loses_the_padding_when_unpacked() -> None:
    assert len(LZ4.packed or b"") % 8  # otherwise this would show nothing
    assert device_images(fatbin(LZ4))[0].packed == LZ4.packed


def test_flags_name_the_code_of_one_architecture_and_of_a_family() -> None:
    data = fatbin(Entry(b"x" * 8, 90, flags=0x100011), Entry(b"x" * 8, 100, flags=0x1200011))
    assert [image.arch for image in device_images(data)] == ["sm_90a", "sm_100f"]


def test_entries_of_other_kinds_are_passed_over() -> None:
    assert [kind for kind, _, _ in found(fatbin(Entry(b"NVVM" * 2, 80, kind=8), LZ4))] == ["ptx"]


def test_an_executable_has_several_fatbins_in_one_section() -> None:
    section = fatbin(Entry(cubin(80, "f"), 80)) + bytes(24) + fatbin(Entry(cubin(80, "g"), 80), LZ4)
    data = elf({".text": b"code", ".nv_fatbin": section, ".data": b"words"})
    assert found(data) == [
        ("cubin", "sm_80", cubin(80, "f")),
        ("cubin", "sm_80", cubin(80, "g")),
        ("ptx", "sm_90", PTX),
    ]


def test_linked_code_comes_before_the_parts_that_it_was_linked_from() -> None:
    linked, part = fatbin(Entry(cubin(80, "f"), 80)), fatbin(Entry(cubin(80, "part"), 80))
    both = elf({".nv_fatbin": linked, "__nv_relfatbin": part})
    assert found(both) == [("cubin", "sm_80", cubin(80, "f"))]
    assert [image.relocatable for image in device_images(elf({"__nv_relfatbin": part}))] == [True]


def test_the_members_of_an_archive_are_read() -> None:
    text = b"no object"  # of odd length, so that a byte of padding follows
    data = archive(elf({".nv_fatbin": fatbin(Entry(cubin(80, "f"), 80))}), text, elf({".nv_fatbin": fatbin(LZ4)}))
    assert [kind for kind, _, _ in found(data)] == ["cubin", "ptx"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (elf({".text": b"code"}), "holds no device code"),
        (b"#!/bin/sh\n", "neither a cubin, a fatbin"),
        (b"MZ\x90\0", "a Windows program is not read"),
        (fatbin(LZ4)[:-8], "the fatbin is truncated: it should have"),
        (fatbin(LZ4)[:40], "truncated"),
        (fatbin(LZ4)[:4] + b"\2" + fatbin(LZ4)[5:], "version 2 of its format"),
        (fatbin(Entry(PTX, 90, 1, 0x2011, b"\xff" * 40)), "the fatbin is damaged"),
        (fatbin(Entry(PTX, 90, 1, 0x8011, b"\xff" * 40)), "the fatbin is damaged"),
        (fatbin(Entry(PTX + b"more", 90, 1, 0x8011, zstandard.compress(PTX))), "the fatbin is damaged"),
        (elf({".nv_fatbin": fatbin(LZ4)})[:-80], "truncated or damaged"),
    ],
)  # fmt: skip
def test_what_is_no_device_code_is_refused_in_one_line(data: bytes, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        found(data)
