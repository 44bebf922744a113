"""LOP3's short cuts compute what their tables say."""

from __future__ import annotations

import pytest

from gemmsim.isa.semantics.logic import COMMON_TABLES


@pytest.mark.parametrize("table", COMMON_TABLES)
def test_common_table(table: int) -> None:
    """Bit 4a + 2b + c of the table is the answer, so a = 0xF0, b = 0xCC, c = 0xAA ask all eight questions at once."""
    assert COMMON_TABLES[table](0xF0, 0xCC, 0xAA) & 0xFF == table
