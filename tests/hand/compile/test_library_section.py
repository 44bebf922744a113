"""The hash of a kernel's code in a cubin, which is read without pyelftools where launches are captured."""

from __future__ import annotations

import hashlib
import io
import struct
import subprocess
import sys
from pathlib import Path

import gemmsim_validate.capture
from elftools.elf.elffile import ELFFile
from gemmsim_validate.records.files import read_cubin

from gemmsim.compile.sections import kernel_symbols, section_sha256

BUNDLE = Path(gemmsim_validate.capture.__file__).parent / "h200_triton"
CUBIN = read_cubin(min(BUNDLE.glob("*.cubin.z")))
(SYMBOL,) = kernel_symbols(CUBIN)
CAPTURE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top not in ("gemmsim", "gemmsim_validate") and top not in sys.stdlib_module_names:
            raise ImportError(f"{name} is hidden")

sys.meta_path.insert(0, Hidden())
from gemmsim_validate.capture.__main__ import main
from gemmsim.compile.sections import kernel_symbols
from gemmsim.compile.sections import section_sha256
print(section_sha256(sys.stdin.buffer.read(), sys.argv[1]))
"""


def test_it_is_that_of_the_section() -> None:
    section = ELFFile(io.BytesIO(CUBIN)).get_section_by_name(f".text.{SYMBOL}")
    assert section_sha256(CUBIN, SYMBOL) == hashlib.sha256(section.data()).hexdigest()
    assert section_sha256(CUBIN, "another") == ""


def test_many_sections_are_counted_in_the_first() -> None:
    """From 65,280 sections on, the header has 0 and 0xffff (ELF specification, e_shnum and e_shstrndx)."""
    data = bytearray(CUBIN)
    (table,), (count, names) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<2H", data, 0x3C)
    struct.pack_into("<2H", data, 0x3C, 0, 0xFFFF)
    struct.pack_into("<QI", data, table + 32, count, names)
    assert section_sha256(bytes(data), SYMBOL) == section_sha256(CUBIN, SYMBOL) != ""


def test_damage_has_no_hash() -> None:
    for damaged in (b"", CUBIN[:60], CUBIN[:1000], b"\x7fELF\x02" + bytes(59), b"\x7fELF\x01" + CUBIN[5:]):
        assert section_sha256(damaged, SYMBOL) == ""


def test_capture_needs_no_packages() -> None:
    """In a process in which nothing can be imported but gemmsim and Python's own library."""
    command = [sys.executable, "-c", CAPTURE, SYMBOL]
    done = subprocess.run(command, input=CUBIN, capture_output=True, check=False)
    assert done.stderr.decode() == ""
    assert done.stdout.decode().strip() == section_sha256(CUBIN, SYMBOL)
