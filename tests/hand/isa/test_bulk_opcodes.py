"""Bulk copies from text: forms that are refused by name, and what they need of shared memory."""

from __future__ import annotations

import pytest
from opcode_harness import run

from gemmsim.support.errors import GemmsimError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UTMALDG.4D.IM2COL [UR8], [UR16], UR4", "TMA's im2col mode"),
        ("UTMALDG.2D.GATHER4 [UR8], [UR16]", "TMA's gather mode"),
        ("UTMALDG.2D.NEW [UR8], [UR16]", "modifier .NEW"),
        ("UTMASTG.2D [UR8+0x10], [UR16]", "address form"),
        ("UTMALDG.2D [UR8], [UR16], UR4", "operand form"),
        ("UBLKCP.S.S [UR8], [UR16], UR4", "bulk copy"),
        ("UTMACCTL.NEW [UR8]", "modifier .NEW"),
    ],
)
def test_forms_without_semantics_are_refused(text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        run(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"UR8": 16, "UR9": 0, "UR16": 8}, "multiple of 16 as address in global memory, not 0x8"),
        ({"UR8": 8, "UR9": 0, "UR16": 16}, "address 0x8 of shared memory is not aligned"),
        ({"UR8": 1 << 20, "UR9": 0, "UR16": 16}, "leaves its"),
        ({"UR8": 16, "UR9": 4, "UR16": 16}, "no mbarrier at address 0x4"),
        ({"UR8": 16, "UR9": 0, "UR16": 16}, "reaches address 0x10, which is"),
    ],
)
def test_addresses_of_a_run_of_bytes(given: dict[str, int], message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        run("UBLKCP.S.G [UR8], [UR16], UR4", UR4=2, UR17=0, **given)
