"""How much memory is free, as Linux writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmsim.support import free_memory


def test_free_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tmp_path / "meminfo"
    monkeypatch.setattr(free_memory, "_FACTS", facts)
    assert free_memory.free_memory_bytes() is None  # another system
    facts.write_text("MemTotal:       100 kB\nMemAvailable:    25 kB\n")
    assert free_memory.free_memory_bytes() == 25 * 1024
    facts.write_text("MemTotal:       100 kB\n")
    assert free_memory.free_memory_bytes() is None
