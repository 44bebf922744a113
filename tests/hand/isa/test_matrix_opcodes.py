"""Matrix instructions from text: against a slow twin of the PTX ISA's tables, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_twin import BITS, c_places, matrix_a, matrix_b, product, sparse_a
from numpy.typing import NDArray
from opcode_harness import run

from gemmsim.support.errors import GemmsimError

# text of the instruction without operands, types of A and B, rows, depth, accumulator
DENSE = [
    ("HMMA.16816.F16", "f16", "f16", 16, 16, "f16"),
    ("HMMA.1688.F16", "f16", "f16", 16, 8, "f16"),
    ("HMMA.16816.F32.BF16", "bf16", "bf16", 16, 16, "f32"),
    ("HMMA.1684.F32.TF32", "tf32", "tf32", 16, 4, "f32"),
    ("QMMA.16832.F32.E4M3.E5M2", "e4m3", "e5m2", 16, 32, "f32"),
    ("QMMA.16816.F16.E5M2.E4M3", "e5m2", "e4m3", 16, 16, "f16"),
    ("IMMA.8832.S4.U4", "s4", "u4", 8, 32, "s32"),
    ("IMMA.16832.U4.S4", "u4", "s4", 16, 32, "s32"),
    ("IMMA.16864.S4.S4", "s4", "s4", 16, 64, "s32"),
    ("IMMA.16816.U8.S8", "u8", "s8", 16, 16, "s32"),
]
BINARY = [
    ("BMMA.88128.XOR.POPC", 8, 128),
    ("BMMA.168128.AND.POPC", 16, 128),
    ("BMMA.168256.XOR.POPC", 16, 256),
    ("BMMA.168256.AND.POPC", 16, 256),
]
SPARSE = [
    *((f"HMMA.SP.16816.F32 {s}", "f16", "f16", 16, "f32") for s in range(4)),
    *((f"HMMA.SP.16832.F16 {s}", "f16", "f16", 32, "f16") for s in range(2)),
    ("HMMA.SP.16832.F32.BF16 1", "bf16", "bf16", 32, "f32"),
    ("HMMA.SP.1688.F32.TF32 3", "tf32", "tf32", 8, "f32"),
    ("HMMA.SP.16816.F32.TF32 1", "tf32", "tf32", 16, "f32"),
    ("IMMA.SP.16832.S8.U8 1", "s8", "u8", 32, "s32"),
    ("IMMA.SP.16864.S8.S8 0", "s8", "s8", 64, "s32"),
    ("IMMA.SP.16864.U4.S4 1", "u4", "s4", 64, "s32"),
    ("IMMA.SP.168128.S4.S4 0", "s4", "s4", 128, "s32"),
    ("QMMA.SP.16864.F32.E5M2.E4M3 0", "e5m2", "e4m3", 64, "f32"),
]
# Elements of which sums are exact in every accumulator: -2 to 2, or all integers of the type
_SMALL = {
    "f16": (0, 0x3C00, 0xBC00, 0x4000, 0xC000),
    "bf16": (0, 0x3F80, 0xBF80, 0x4000, 0xC000),
    "tf32": (0, 0x3F800000, 0xBF800000, 0x40000000, 0xC0001FFF),  # the hardware does not read the low 13 bits
    "e4m3": (0, 0x38, 0xB8, 0x40, 0xC0),
    "e5m2": (0, 0x3C, 0xBC, 0x40, 0xC0),
}


def draw(kind: str, registers: int, random: np.random.Generator) -> NDArray[np.uint32]:
    """Words [32, registers] of elements that are drawn from `_SMALL`."""
    if kind not in _SMALL:
        return random.integers(0, 1 << 32, (32, registers), np.uint32)
    bits = BITS[kind]
    chosen = random.choice(np.array(_SMALL[kind], np.uint64), (32, registers, 32 // bits))
    return np.bitwise_or.reduce(chosen << np.arange(0, 32, bits, dtype=np.uint64), axis=2).astype(np.uint32)


def accumulator(kind: str, rows: int, random: np.random.Generator) -> tuple[NDArray[np.uint32], NDArray]:
    """Words [32, registers] of C, and C [rows, 8]; integers from -64 to 63."""
    c, places = random.integers(-64, 64, (rows, 8)).astype(object), c_places(rows)
    own = np.array([[c[place] for place in of_lane] for of_lane in places])
    return encode(own, kind), c


def encode(values: NDArray, kind: str) -> NDArray[np.uint32]:
    """Words [32, registers] of a lane's elements of C."""
    if kind == "s32":
        return (values.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32)
    if kind == "f32":
        return values.astype(np.float32).view(np.uint32)
    return np.ascontiguousarray(values.astype(np.float16)).view(np.uint32)


def execute(text: str, a: NDArray, b: NDArray, c: NDArray, **more: object) -> NDArray[np.uint32]:
    """Words [32, registers] of the result. A begins in R8, B in R16, C in R24, the result in R32."""
    given = {f"R{first + i}": words[:, i] for first, words in ((8, a), (16, b), (24, c)) for i in range(words.shape[1])}
    after = run(text, **given, **more)
    return np.stack([after[f"R{32 + i}"] for i in range(c.shape[1])], axis=1)


@pytest.mark.parametrize(("name", "kind_a", "kind_b", "rows", "depth", "kind_c"), DENSE)
def test_dense(name: str, kind_a: str, kind_b: str, rows: int, depth: int, kind_c: str) -> None:
    random = np.random.default_rng(1)
    a = draw(kind_a, rows * depth * BITS[kind_a] // 1024, random)
    b = draw(kind_b, 8 * depth * BITS[kind_b] // 1024, random)
    words, c = accumulator(kind_c, rows, random)
    suffixes = (".ROW", ".COL") if name[0] in "IQ" else ("", "")
    result = execute(f"{name} R32, R8{suffixes[0]}, R16{suffixes[1]}, R24", a, b, words)
    expected = product(matrix_a(a, kind_a, rows, depth), matrix_b(b, kind_b, depth)) + c
    own = np.array([[expected[place] for place in of_lane] for of_lane in c_places(rows)])
    np.testing.assert_array_equal(result, encode(own, kind_c))


@pytest.mark.parametrize(("name", "rows", "depth"), BINARY)
def test_binary(name: str, rows: int, depth: int) -> None:
    random = np.random.default_rng(2)
    a, b = draw("b1", rows * depth // 1024, random), draw("b1", depth // 128, random)
    words, c = accumulator("s32", rows, random)
    result = execute(f"{name} R32, R8.ROW, R16.COL, R24", a, b, words)
    left, right = matrix_a(a, "b1", rows, depth), matrix_b(b, "b1", depth)
    combine = (lambda x, y: x ^ y) if "XOR" in name else (lambda x, y: x & y)
    expected = [[sum(map(combine, left[r], right[:, col])) + c[r, col] for col in range(8)] for r in range(rows)]
    own = np.array([[expected[row][column] for row, column in of_lane] for of_lane in c_places(rows)])
    np.testing.assert_array_equal(result, encode(own, "s32"))


@pytest.mark.parametrize(("name", "kind_a", "kind_b", "depth", "kind_c"), SPARSE)
@pytest.mark.parametrize("over_metadata", [False, True])
def test_sparse(name: str, kind_a: str, kind_b: str, depth: int, kind_c: str, over_metadata: bool) -> None:
    """The result may be written over the metadata."""
    random = np.random.default_rng(3)
    opcode, selector = name.split()
    a = draw(kind_a, 16 * depth // 2 * BITS[kind_a] // 1024, random)
    b = draw(kind_b, 8 * depth * BITS[kind_b] // 1024, random)
    words, c = accumulator(kind_c, 16, random)
    fields = (0b0100, 0b1110) if kind_a == "tf32" else (0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110)
    chosen = random.choice(np.array(fields, np.uint64), (32, 8)) << np.arange(0, 32, 4, dtype=np.uint64)
    metadata = np.bitwise_or.reduce(chosen, axis=1).astype(np.uint32)
    register = "R32" if over_metadata else "R40"
    suffixes = (".ROW", ".COL") if name[0] in "IQ" else ("", "")
    text = f"{opcode} R32, R8{suffixes[0]}, R16{suffixes[1]}, R24, {register}, 0x{selector}"
    result = execute(text, a, b, words, **{register: metadata})
    left = sparse_a(a, kind_a, depth, metadata, int(selector))
    expected = product(left, matrix_b(b, kind_b, depth)) + c
    own = np.array([[expected[place] for place in of_lane] for of_lane in c_places(16)])
    np.testing.assert_array_equal(result, encode(own, kind_c))


def _filled(value: int, registers: int) -> NDArray[np.uint32]:
    return np.full((32, registers), value, np.uint32)


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (0x3C00, 0x3C00, 0x3C00, 0x4C40),  # 16 * 1 * 1 + 1 = 17
        (0x7BFF, 0x3C00, 0x0000, 0x7C00),  # 16 * 65504 is beyond the largest half
        (0x3C00, 0x0001, 0x3C00, 0x3C00),  # 1 + 16 * 2^-24 = 1 + 2^-20 is nearest to 1
        (0x3C00, 0x0400, 0x3C00, 0x3C01),  # 1 + 16 * 2^-14 = 1 + 2^-10 is a half
        (0x3C00, 0x0200, 0x3C00, 0x3C00),  # 1 + 2^-11 is a tie: to even
        (0x3C00, 0x0200, 0x3C01, 0x3C02),  # 1 + 2^-10 + 2^-11 is a tie: to even
        (0x0001, 0x3C00, 0x0000, 0x0010),  # 16 * 2^-24 is a subnormal half
        (0x7C00, 0x0000, 0x0000, 0x7FFF),  # infinity times zero
    ],
)
def test_half_accumulators_are_rounded_once(a: int, b: int, c: int, expected: int) -> None:
    twice = [_filled(v * 0x10001, n) for v, n in ((a, 4), (b, 2), (c, 2))]
    assert (execute("HMMA.16816.F16 R32, R8, R16, R24", *twice) == expected * 0x10001).all()


@pytest.mark.parametrize(
    ("text", "byte", "expected"),
    [
        ("QMMA.16832.F32.E4M3.E4M3", 0x7E, 32 * 448.0**2),  # the largest
        ("QMMA.16832.F32.E4M3.E4M3", 0x01, 32 * 2.0**-18),  # the least subnormal
        ("QMMA.16832.F32.E4M3.E4M3", 0x7F, np.nan),
        ("QMMA.16832.F32.E5M2.E5M2", 0x7B, 32 * 57344.0**2),
        ("QMMA.16832.F32.E5M2.E5M2", 0x01, 32 * 2.0**-32),
        ("QMMA.16832.F32.E5M2.E5M2", 0x7C, np.inf),
        ("QMMA.16832.F32.E5M2.E5M2", 0x7D, np.nan),
    ],
)
def test_bytes_at_the_edges(text: str, byte: int, expected: float) -> None:
    filled = [_filled(byte * 0x01010101, n) for n in (4, 2)]
    result = execute(f"{text} R32, R8, R16, R24", *filled, _filled(0, 4)).view(np.float32)
    np.testing.assert_array_equal(result, np.full((32, 4), expected, np.float32))


@pytest.mark.parametrize(("saturating", "expected"), [("", (0x7FFFFFFF + 64 * 49) % 2**32), (".SAT", 0x7FFFFFFF)])
def test_four_bit_integers_wrap_or_saturate(saturating: str, expected: int) -> None:
    """64 products of 7 and 7 on top of the largest integer."""
    text = f"IMMA.16864.S4.S4{saturating} R32, R8.ROW, R16.COL, R24"
    result = execute(text, _filled(0x77777777, 4), _filled(0x77777777, 2), _filled(0x7FFFFFFF, 4))
    assert (result == expected).all()


def test_transpose_between_lanes() -> None:
    matrix = np.arange(64, dtype=np.uint16).reshape(8, 8)
    words = np.ascontiguousarray(matrix).view(np.uint32).reshape(32)  # lane 4 r + t: columns 2 t and 2 t + 1 of row r
    expected = np.ascontiguousarray(matrix.T).view(np.uint32).reshape(32)
    np.testing.assert_array_equal(run("MOVM.16.MT88 R0, R1", R1=words)["R0"], expected)
    np.testing.assert_array_equal(run("MOVM.16.MT88 R1, R1", R1=words)["R1"], expected)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_store_matrix(count: int, trans: bool) -> None:
    """Row r of matrix m goes to the address that lane 8 m + r gives; LDS then shows what lies where."""
    random = np.random.default_rng(4)
    rows = random.permutation(32)  # 16-byte places in shared memory
    words = random.integers(0, 1 << 32, (32, 4), np.uint32)
    memory = np.zeros((32, 8), np.uint16)
    for m in range(count):
        for lane in range(32):
            for j in range(2):
                row, column = lane // 4, 2 * (lane % 4) + j
                if trans:
                    row, column = column, row
                memory[rows[8 * m + row], column] = words[lane, m] >> 16 * j & 0xFFFF
    text = f"STSM.16.{'MT88' if trans else 'M88'}{f'.{count}' if count > 1 else ''} [R1], R4"
    given = {f"R{4 + i}": words[:, i] for i in range(4)}
    after = run([text, "LDS.128 R8, [R2]"], R1=16 * rows, R2=16 * np.arange(32), **given)
    loaded = np.stack([after[f"R{8 + i}"] for i in range(4)], axis=1)
    np.testing.assert_array_equal(loaded, memory.view(np.uint32).reshape(32, 4))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("HMMA.16816.F32.E5M2 R32, R8, R16, R24", "modifier .E5M2"),
        ("HMMA.884.F32 R32, R8, R16, R24", "shape"),
        ("BMMA.88128.XOR R32, R8.ROW, R16.COL, R24", "combination of bits"),
        ("STSM.8.MT168 [R1], R4", "modifier .8"),
        ("MOVM.U4TO8.M832 R1, R4", "modifier"),
        ("TEX.SCR.LZ RZ, R0, R2, R15, 0x0, 0x58, 2D, 0x1", r"opcode TEX \(textures and surfaces"),
        ("BGMMA.64x8x256.AND.POPC R24, gdesc[UR4], R24, gsb0", r"opcode BGMMA \(Hopper's asynchronous matrix"),
    ],
)
def test_what_has_no_semantics_is_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what):
        run(text)
