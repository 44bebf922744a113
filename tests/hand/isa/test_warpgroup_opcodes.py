"""Hopper's multiplication of a warpgroup from text, by hand: one warp, whose rows are the first 16 of A."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import f32, program, run
from wgmma_forms import descriptor
from wgmma_twin import Layout, byte_of

from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import OperandKind
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.engine.warpgroup import chunk_at
from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect
from gemmsim.trace.types import Launch

# Halves in shared memory: 1.0 in the first 512 bytes, for A, and 2.0 in the second, for B
FILL = ["STS.128 [R1], R4", "STS.128 [R1+0x200], R8"]
ONES, TWOS = 0x3C003C00, 0x40004000
HALVES = {**{f"R{4 + i}": ONES for i in range(4)}, **{f"R{8 + i}": TWOS for i in range(4)}, "R1": 16 * np.arange(32)}


def registers(a: int = 0, b: int = 0x200) -> dict[str, int]:
    """UR4 to UR7: descriptors of two matrices without swizzle, whose 16-byte columns are 128 bytes apart."""
    words = [descriptor(at, 128, 256) for at in (a, b)]
    return {f"UR{4 + 2 * i + j}": word >> 32 * j & 0xFFFFFFFF for i, word in enumerate(words) for j in range(2)}


def multiply(text: str, **more: object) -> dict[str, np.ndarray]:
    return run([*FILL, text], **HALVES, **registers(), **more)


def singles(after: dict[str, np.ndarray], first: int = 24, count: int = 4) -> set[float]:
    return {float(x) for i in range(count) for x in after[f"R{first + i}"].view(np.float32)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0", 16 * 2 + 5),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, UP0", 16 * 2 + 5),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, !UP0, gsb0", 16 * 2),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", 16 * 2),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4].negA, R24, gsb0", -16 * 2 + 5),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4].negA.negB, R24", 16 * 2 + 5),
        ("HGMMA.64x8x16.F32 R24, R4, gdesc[UR4], R24", 16 * 2 + 5),
        ("HGMMA.64x8x16.F32 R24, -R8, gdesc[UR4].negB, R24", 16 * 4 + 5),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4].tnspA.tnspB, R24", 16 * 2 + 5),
    ],
)
def test_sums_of_halves(text: str, expected: float) -> None:
    after = multiply(text, UP0=True, **{f"R{24 + i}": f32(5.0) for i in range(4)})
    assert singles(after) == {expected}


def test_half_accumulators_take_one_register_for_two_columns() -> None:
    after = multiply("HGMMA.64x8x16.F16 R24, gdesc[UR4], R24", R24=ONES, R25=TWOS)
    assert (after["R24"] == 0x50205020).all() and (after["R25"] == 0x50405040).all()  # 33 and 34
    assert not after["R26"].any()


@pytest.mark.parametrize(("saturating", "expected"), [("", 0x7FFFFFFF + 32 * 0x3C * 0x40 // 2), (".SAT", 0x7FFFFFFF)])
def test_integers_wrap_or_saturate(saturating: str, expected: int) -> None:
    """Bytes 0x3C and 0 in A, 0x40 and 0 in B."""
    text = f"IGMMA.64x8x32.S8.U8{saturating} R24, gdesc[UR4], R24, gsb0"
    after = multiply(text, **{f"R{24 + i}": 0x7FFFFFFF for i in range(4)})
    assert all((after[f"R{24 + i}"] == expected).all() for i in range(4))


def test_bytes_and_tf32() -> None:
    """The byte 0x3C is 1.0 as e5m2 and 1.5 as e4m3; 0x40 is 2.0 in both. Every second byte is 0."""
    assert singles(multiply("QGMMA.64x8x32.F32.E5M2.E5M2 R24, gdesc[UR4], RZ, !UPT")) == {16 * 2.0}
    assert singles(multiply("QGMMA.64x8x32.F32.E4M3.E5M2 R24, gdesc[UR4], RZ, !UPT")) == {16 * 3.0}
    one, two = (np.array([word & 0xFFFFE000], np.uint32).view(np.float32)[0] for word in (ONES, TWOS))
    assert singles(multiply("HGMMA.64x8x8.F32.TF32 R24, gdesc[UR4], RZ, !UPT")) == {8 * float(one) * float(two)}


def test_one_element_comes_from_where_the_layout_says() -> None:
    """Row 3, k = 9 of A without swizzle: second core matrix, 128 bytes on, row 3 of 16 bytes, second half."""
    at = 128 + 3 * 16 + 2
    store = ["STS.U16 [R2], R3", "HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT"]
    after = run([*FILL, *store], **{**HALVES, "R2": at, "R3": 0x4900}, **registers())  # 10 instead of 1
    rows = {lane // 4: float(after["R24"].view(np.float32)[lane]) for lane in range(32)}
    assert rows == {row: 2.0 * (15 + (10 if row == 3 else 1)) for row in range(8)}


def test_a_product_without_destination_only_closes_a_group() -> None:
    after = run("HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0")
    assert not any(row.any() for name, row in after.items() if name.startswith("R"))
    text = "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0"
    assert matrix_multiply(parse_instruction(0, text, 0)) is None


@pytest.mark.parametrize("most", [0, 1])
def test_a_wait_for_a_group_waits_for_the_other_warps_of_the_warpgroup(most: int) -> None:
    """Each warp overwrites B, which is also A of the second warp, when its first group is complete."""
    groups = [f"HGMMA.64x8x16.F32 R{24 + 8 * n}, gdesc[UR4], RZ, !UPT, gsb0" for n in range(most + 1)]
    wait = [f"WARPGROUP.DEPBAR.LE gsb0, {most:#x}", "STS.128 [R1+0x200], R12"]
    after = run([*FILL, "BAR.SYNC 0x0", *groups, *wait], warps=2, **HALVES, **registers())
    assert singles(after) == {16 * 2 * 2}


def test_a_wait_for_warps_that_never_multiply_is_named() -> None:
    never = ["S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 BAR.SYNC 0x1, 0x40"]
    group = ["HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0"]
    with pytest.raises(GemmsimError, match=r"do not come to the same multiplications hold warp 0 .*DEPBAR"):
        run([*FILL, *never, *group], warps=2, **HALVES, **registers())


# Each warp stores its threads' numbers and reads those of the next warp of its warpgroup, the last those of the first.
NEXT = [
    "S2R R0, SR_TID.X",
    "IMAD.SHL.U32 R1, R0, 0x4, RZ",
    "IADD3 R2, R1, 0x80, RZ",
    "LOP3.LUT R2, R2, 0x1ff, RZ, 0xc0, !PT",
]
NEXT += ["LOP3.LUT R3, R1, 0x200, RZ, 0xc0, !PT", "IADD3 R2, R2, R3, RZ", "STS [R1], R0"]


def test_warps_of_a_warpgroup_wait_until_all_have_arrived() -> None:
    """Warp 7, whose registers these are, reads what warp 4 stored."""
    met = run([*NEXT, "WARPGROUP.ARRIVE", "WARPGROUP.WAIT", "LDS R4, [R2]"], warps=8)
    assert (met["R4"] == 4 * 32 + np.arange(32)).all()
    # The warps go on in turn, so that without the wait a warp finds what was there.
    alone = run([*NEXT, "WARPGROUP.ARRIVE", "LDS R4, [R2]"], warps=7)
    assert (alone["R4"] == 0).all()


def test_each_wait_is_for_an_arrival_more() -> None:
    """In a second round the warps store their numbers plus 1: nobody reads before the next warp has."""
    again = ["WARPGROUP.ARRIVE", "WARPGROUP.WAIT", "IADD3 R0, R0, 0x1, RZ", "STS [R1], R0"]
    met = run([*NEXT, *again, "WARPGROUP.ARRIVE", "WARPGROUP.WAIT", "LDS R4, [R2]"], warps=4)
    assert (met["R4"] == np.arange(32) + 1).all()


def test_the_sanitizer_knows_the_wait_as_what_orders_the_warps() -> None:
    meet = ["WARPGROUP.ARRIVE", "WARPGROUP.WAIT"]
    for lines, raced in (([*meet, "LDS R4, [R2]"], False), ([meet[0], "LDS R4, [R2]"], True)):
        launch = Launch((1, 1, 1), (128, 1, 1), ())
        found = sanitize(Executor(program([*NEXT, *lines], "sm_90"), launch, sanitizing=True), [0]).findings
        assert {one.defect for one in found} == ({Defect.RACE} if raced else set())
    # What a warp stores behind its arrival is not ordered before what the others do behind theirs.
    later = [*NEXT, *meet, "STS [R1], R0", "LDS R4, [R2]"]
    found = sanitize(Executor(program(later, "sm_90"), launch, sanitizing=True), [0]).findings
    assert {one.defect for one in found} == {Defect.RACE}


def test_a_wait_for_warps_that_never_arrive_is_named() -> None:
    never = ["S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 BAR.SYNC 0x1, 0x40"]
    with pytest.raises(GemmsimError, match=r"do not come to the same WARPGROUP.ARRIVE hold warp 0 .*WAIT"):
        run([*never, "WARPGROUP.ARRIVE", "WARPGROUP.WAIT"], warps=2)


def test_setmaxnreg_gives_more_registers_than_the_program_begins_with() -> None:
    ask = "USETMAXREG.TRY_ALLOC.CTAPOOL UP1, 0xf0"
    after = run([ask, *(f"MOV R{number}, 0x7" for number in range(64, 240)), "IADD3 R0, R239, R230, RZ"], UR4=5)
    assert (after["R0"] == 14).all() and (after["UR4"] == 5).all()


def test_operands_are_read() -> None:
    found = parse_instruction(0, "HGMMA.64x64x16.F32.BF16 R24, -R56, gdesc[UR8].negB.tnspB, R24, !UPT, gsb0", 0)
    d, a, b, c, p, group = found.operands
    assert (d.index, c.index, a.index, a.negate) == (24, 24, 56, True)
    assert (b.kind, b.name, b.bank, b.suffix) == (OperandKind.ADDRESS, "gdesc", 8, "negB.tnspB")
    assert p.invert and group.kind is OperandKind.SPECIAL
    shape = matrix_multiply(found)
    assert shape is not None and (shape.rows, shape.columns, shape.depth) == (16, 64, 16)
    assert (shape.precision, shape.operations) == ("tensor_bf16", 2 * 16 * 64 * 16)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("HGMMA.64x8x32.F32 R24, gdesc[UR4], R24", "shape"),
        ("HGMMA.64x12x16.F32 R24, gdesc[UR4], R24", "shape"),
        ("HGMMA.64x264x16.F32 R24, gdesc[UR4], R24", "shape"),
        ("HGMMA.SP.64x8x32.F32 R24, gdesc[UR4], R24, R8, 0x0", "modifier .SP"),
        ("QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4].tnspB, R24", "transposed matrix of elements other than 16"),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4].tnspC, R24", "cannot read operand|operand form"),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], R28", "operand form"),
        ("IGMMA.64x8x32.S8 R24, gdesc[UR4], R24", "format of the elements"),
        ("WARPGROUP.MEET", "modifier .MEET"),
        ("USETMAXREG.DEALLOC.CTAPOOL 0x2c", "number of registers 44"),
        ("USETMAXREG.DEALLOC.CTAPOOL 0x10", "number of registers 16"),
        ("USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x108", "number of registers 264"),
    ],
)
def test_what_has_no_semantics_is_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what):
        run(text)


def test_outside_of_shared_memory() -> None:
    with pytest.raises(GemmsimError, match=r"leaves the \d+ bytes of shared memory: address 0x8000.*HGMMA"):
        run("HGMMA.64x8x16.F32 R24, gdesc[UR4], R24", **registers(a=0x8000))


def test_registers_that_are_asked_for_are_there() -> None:
    """`setmaxnreg.inc` is a loop around this."""
    assert run("USETMAXREG.TRY_ALLOC.CTAPOOL UP1, 0xe8")["UP1"].all()
    run(["USETMAXREG.DEALLOC.CTAPOOL 0x28", "WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR.LE gsb0, 0x1"])


def test_chunks_lie_where_the_layouts_say() -> None:
    """Random offsets, against the address of a chunk's first element."""
    random = np.random.default_rng(5)
    for _ in range(2000):
        leading, stride = (16 * int(x) for x in random.integers(0, 300, 2))
        transposed, swizzle = bool(random.integers(2)), int(random.choice([0, 32, 64, 128]))
        layout = Layout(transposed, 16 * int(random.integers(600)), leading, stride, swizzle, int(random.integers(8)))
        line, chunk = int(random.integers(16 if transposed else 256)), int(random.integers(32 if transposed else 2))
        row, k = (8 * chunk, line) if transposed else (line, 8 * chunk)
        expected = byte_of(layout, row, k, 2, 0)
        with np.errstate(over="ignore"):
            assert chunk_at(np.uint64(layout.descriptor), transposed, line, chunk) == expected, layout
