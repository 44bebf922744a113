"""Damaged cubins that `make fuzz` found: tools that never end, and offsets that no file can have."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import gemmsim_validate.capture
import pytest
from gemmsim_validate.records.files import read_cubin

from gemmsim.compile import toolchain
from gemmsim.compile.cubin_tools import made_by
from gemmsim.support.errors import GemmsimError

BUNDLE = Path(gemmsim_validate.capture.__file__).parent / "h200_triton"


def test_a_disassembler_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvdisasm"
    tool.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    tool.chmod(0o755)
    (tmp_path / "k.cubin").write_bytes(bytes(100))
    monkeypatch.setattr(toolchain, "find_nvdisasm", lambda: tool)
    monkeypatch.setattr(toolchain, "_LEAST_SECONDS", 0.2)
    with pytest.raises(GemmsimError, match="nvdisasm did not finish within 0 s: the cubin may be damaged"):
        toolchain.disassemble(tmp_path / "k.cubin", None)


def test_an_offset_beyond_any_file() -> None:
    """The second section's offset, at byte 24 of its row of 64."""
    data = bytearray(read_cubin(min(BUNDLE.glob("*.cubin.z"))))
    assert made_by(bytes(data))
    (table,) = struct.unpack_from("<Q", data, 0x28)
    struct.pack_into("<Q", data, table + 64 + 24, 1 << 63)
    assert made_by(bytes(data)) == {}
