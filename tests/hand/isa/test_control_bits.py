"""The scheduling bits of an encoding, each field by itself."""

from __future__ import annotations

from gemmsim.isa.parse import decode_control


def test_each_field_of_the_scheduling_bits() -> None:
    """Stall 5, no yield, write barrier 3, read barrier none (7), waits for 0, 2 and 5, reuse of operands 0, 1 and 3."""
    control = decode_control(5 << 105 | 1 << 109 | 3 << 110 | 7 << 113 | 0b100101 << 116 | 0b1011 << 122)
    assert (control.stall_cycles, control.yield_hint) == (5, False)
    assert (control.write_barrier, control.read_barrier) == (3, None)
    assert (control.wait_mask, control.reuse_mask) == (0b100101, 0b1011)


def test_bits_beside_them_do_not_count() -> None:
    control = decode_control(1 << 104 | 7 << 110 | 0 << 113 | 1 << 126 | 1 << 127)
    assert (control.stall_cycles, control.yield_hint, control.wait_mask, control.reuse_mask) == (0, True, 0, 0)
    assert (control.write_barrier, control.read_barrier) == (None, 0)
