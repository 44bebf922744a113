"""Atomics from text, on memory of which each lane has 16 bytes of its own, against results worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import ALL, f32, f64, run

from gemmsim.support.errors import GemmsimError
from gemmsim.trace.words import SHARED_WINDOW

LANES = np.arange(32)


def atomic(text: str, memory: list[int], **given: object) -> tuple[list[int], list[int]]:
    """What lies in the first lane's memory after `text`, and R4 to R7. The address is in R2 and R3; all lanes agree."""
    held = {f"R{20 + i}": word for i, word in enumerate([*memory, 0, 0, 0][:4])}
    places = {"R2": 16 * LANES, "R3": SHARED_WINDOW}
    after = run(["STS.128 [R2], R20", text, "LDS.128 R24, [R2]"], **places, **held, **given)
    rows = [after[f"R{i}"] for i in (24, 25, 26, 27, 4, 5, 6, 7)]
    assert all((row == row[0]).all() for row in rows)
    values = [int(row[0]) for row in rows]
    return values[: len(memory)], values[4 : 4 + len(memory)]


def packed(high: int, low: int) -> int:
    return high << 16 | low


@pytest.mark.parametrize(
    ("text", "memory", "given", "expected"),
    [
        # two halves; each is rounded to nearest even by itself
        ("ADD.F16x2.RN", [packed(0x3C00, 0x4000)], {"R8": packed(0x3C00, 0x3C00)}, [packed(0x4000, 0x4200)]),
        ("ADD.F16x2.RN", [packed(0x7BFF, 0xFBFF)], {"R8": packed(0x7BFF, 0xFBFF)}, [packed(0x7C00, 0xFC00)]),
        ("ADD.F16x2.RN", [packed(0x3C00, 0x3C01)], {"R8": packed(0x1000, 0x1000)}, [packed(0x3C00, 0x3C02)]),  # ties
        ("ADD.F16x2.RN", [packed(0x0001, 0x8001)], {"R8": packed(0x0001, 0x0001)}, [packed(0x0002, 0x0000)]),
        ("ADD.F16x2.RN", [packed(0x03FF, 0x0400)], {"R8": packed(0x0001, 0x83FF)}, [packed(0x0400, 0x0001)]),
        ("ADD.F16x2.RN", [packed(0x7C00, 0x7E00)], {"R8": packed(0xFC00, 0x3C00)}, [packed(0x7FFF, 0x7FFF)]),
        ("ADD.F16x2.RN", [packed(0x8000, 0x8000)], {"R8": packed(0x8000, 0x0000)}, [packed(0x8000, 0x0000)]),
        ("MIN.F16x2.RN", [packed(0x3C00, 0xBC00)], {"R8": packed(0x4000, 0xC000)}, [packed(0x3C00, 0xC000)]),
        ("MAX.F16x2.RN", [packed(0x0000, 0x7E00)], {"R8": packed(0x8000, 0x3C00)}, [packed(0x0000, 0x3C00)]),
        ("ADD.BF16x2.RN", [packed(0x3F80, 0x4000)], {"R8": packed(0x3F80, 0x3F80)}, [packed(0x4000, 0x4040)]),
        ("ADD.BF16x2.RN", [packed(0x3F80, 0x3F81)], {"R8": packed(0x3B80, 0x3B80)}, [packed(0x3F80, 0x3F82)]),  # ties
        ("ADD.BF16x2.RN", [packed(0x7F7F, 0x0001)], {"R8": packed(0x7F7F, 0x0001)}, [packed(0x7F80, 0x0002)]),
        # vectors: each word by itself
        ("ADD.F16x4.RN", [0x3C00, 0x4000], {"R8": 0x3C00, "R9": 0x3C00}, [0x4000, 0x4200]),
        ("ADD.F16x8.RN", [0x3C00, 0, 0, 0x4000], {"R8": 0, "R9": 0x3C00, "R10": 0, "R11": 0x4000},
         [0x3C00, 0x3C00, 0, 0x4400]),
        ("ADD.F32x2.FTZ.RN", [f32(1.5), f32(2)], {"R8": f32(1), "R9": f32(-2)}, [f32(2.5), 0]),
        ("ADD.F32x4.FTZ.RN", [f32(1), f32(2), f32(3), 1], {"R8": f32(1), "R9": f32(1), "R10": f32(1), "R11": 1},
         [f32(2), f32(3), f32(4), 0]),  # the sum of two subnormals is flushed
        ("ADD.F64.RN", [*f64(1.5)], {"R8": f64(2.25)[0], "R9": f64(2.25)[1]}, [*f64(3.75)]),
        # 64 bits
        ("ADD.64", [ALL, 1], {"R8": 1, "R9": 2}, [0, 4]),
        ("MIN.64", [5, 0x80000000], {"R8": 9, "R9": 1}, [9, 1]),
        ("MIN.S64", [5, 0x80000000], {"R8": 9, "R9": 1}, [5, 0x80000000]),
        ("MAX.S64", [5, 0x80000000], {"R8": 9, "R9": 1}, [9, 1]),
        ("AND.64", [0xF0F0, 0xFF], {"R8": 0xFF00, "R9": 0x0F}, [0xF000, 0x0F]),
        ("XOR.64", [0xF0F0, 0xFF], {"R8": 0xFF00, "R9": 0x0F}, [0x0FF0, 0xF0]),
        ("EXCH.64", [1, 2], {"R8": 3, "R9": 4}, [3, 4]),
        # 128 bits
        ("EXCH.128", [1, 2, 3, 4], {"R8": 5, "R9": 6, "R10": 7, "R11": 8}, [5, 6, 7, 8]),
    ],
)  # fmt: skip
def test_by_hand(text: str, memory: list[int], given: dict[str, int], expected: list[int]) -> None:
    after, old = atomic(f"ATOM.E.{text}.STRONG.GPU PT, R4, [R2.64], R8", memory, **given)
    assert (after, old) == (expected, memory)


@pytest.mark.parametrize(("last", "expected"), [(4, [9, 10, 11, 12]), (5, [1, 2, 3, 4])])
def test_compare_and_exchange_of_16_bytes(last: int, expected: list[int]) -> None:
    """Only where all 128 bits are equal."""
    compared, new = (
        {f"R{8 + i}": word for i, word in enumerate((1, 2, 3, last))},
        {f"R{12 + i}": 9 + i for i in range(4)},
    )
    assert atomic("ATOMS.CAS.128 R4, [R2], R8, R12", [1, 2, 3, 4], **compared, **new) == (expected, [1, 2, 3, 4])


def test_generic_atomics_with_a_predicate_leave_shared_memory_to_other_code() -> None:
    text = ["STS [R2], R5", "ATOM.E.ADD.64.STRONG.GPU P0, R8, [R2.64], R6", "QSPC.E.S P1, RZ, [R2]", "LDS R4, [R2]"]
    after = run(text, R2=16 * LANES, R3=SHARED_WINDOW, R5=5, R6=1, P0=True)
    assert (after["R4"] == 5).all() and not after["P0"].any() and after["P1"].all()


def mbarrier(missing: int, expected: int, phase: int) -> list[int]:
    """The words of a barrier in shared memory for which so many of the expected arrivals are still missing."""
    return [(1 << 30) - expected, phase << 31 | (1 << 31) - missing]


@pytest.mark.parametrize(("missing", "left", "phase"), [(40, 8, 0), (32, 50, 1), (20, 38, 1)])
@pytest.mark.parametrize("text", ["ATOMS.ARRIVE.64 R4, [R2]", "ARRIVES.LDGSTSBAR.64 [R2]"])
def test_arrivals_complete_phases(text: str, missing: int, left: int, phase: int) -> None:
    """32 lanes arrive; the last missing one flips the phase, of which 50 are expected then."""
    memory = mbarrier(missing, 50, 0)
    after = run(["STS.64 [RZ], R20", text, "LDS.64 R24, [RZ]"], R20=memory[0], R21=memory[1])
    assert [int(after["R24"][0]), int(after["R25"][0])] == mbarrier(left, 50, phase)
    if text.startswith("ATOMS"):  # a lane's token is the state before its arrival
        before = [
            mbarrier(missing - n, 50, 0)[1] if n < missing else mbarrier(50 - n + missing, 50, 1)[1] for n in LANES
        ]
        np.testing.assert_array_equal(after["R5"], before)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ATOM.E.MIN.F32 PT, R4, [R2.64], R8", "atomic operation"),
        ("ATOM.E.AND.F16x2 PT, R4, [R2.64], R8", "atomic operation"),
        ("ATOMS.ADD.128 R4, [R2], R8", "atomic operation"),
        ("ATOMS.ADD P0, R4, [R2], R8", "predicate result"),
    ],
)
def test_what_has_no_semantics_is_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what):
        run(text)
