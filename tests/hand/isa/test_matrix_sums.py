"""Sums of tensor cores, cut below the largest term, step by step: by hand, and against a slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from matrix_twin import BITS, c_places, cut_sum, cut_to_single, matrix_a, matrix_b, sparse_a, to_half
from numpy.typing import NDArray
from opcode_harness import f32, run

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.isa.tensor_sums import sum_roundoff, tensor_sum

INF, NAN = float("inf"), float("nan")
TINY = 2.0**-24  # the least binary16


def halves(values: list[float]) -> NDArray[np.uint32]:
    """Pairs of binary16 as words."""
    return np.ascontiguousarray(np.array(values, np.float16)).view(np.uint32)


def one_sum(a: list[float], b: list[float], c: float, arch: str = "sm_90", text: str = "HMMA.16816.F32") -> int:
    """The word of C's first element after row 0 of A (16 elements) was multiplied by column 0 of B."""
    row, column = (halves(values + [0.0] * (16 - len(values))) for values in (a, b))
    given = {}
    for half in range(2):  # registers 0 and 2 of A hold columns 0 to 7 and 8 to 15 of row 0, in lanes 0 to 3
        for first, words, step in ((8, row, 2), (16, column, 1)):
            lanes = np.zeros(32, np.uint32)
            lanes[:4] = words[4 * half : 4 * half + 4]
            given[f"R{first + step * half}"] = lanes
    own = f32(c) if "F32" in text else int(np.float16(c).view(np.uint16))
    after = run(f"{text} R32, R8, R16, R24", arch, R24=np.where(np.arange(32), 0, own), **given)
    return int(after["R32"][0]) & (0xFFFFFFFF if "F32" in text else 0xFFFF)


CASES = [  # row of A, column of B, C, sum on sm_90
    ([2.0**13] + [0.5] * 15, [2.0**13] + [1.0] * 15, 0.0, 2.0**26),  # halves lie below the 25 places, and are cut
    ([2.0**13] + [-0.5] * 15, [2.0**13] + [1.0] * 15, 0.0, 2.0**26),  # towards zero
    ([2.0**12] + [1.0] * 15, [2.0**12] + [1.0] * 15, 0.0, 2.0**24 + 14),  # 2**24 + 15 has 25 digits
    ([1.0], [-1.0], 2.0**-24, -(1 - 2.0**-24)),
    ([1.0], [-1.0], 2.0**-26, -1.0),  # C lies below them
    ([1.5, 1.0], [1.5, 2.0**-14], 2.0**-25, 2.25 + 2.0**-14),  # 2.25 has exponent 0, so 2**-25 counts, and is cut last
    ([TINY], [1.0], 2.0**-40, TINY),  # a subnormal number has the exponent -14
    ([2.0**-14], [1.0], 2.0**-39, 2.0**-14),
    ([-0.0], [1.0], -0.0, 0.0),
    ([0.0], [0.0], 2.0**-149, 2.0**-149),
    ([INF], [1.0], 1.0, INF), ([INF], [-1.0], 1.0, -INF), ([1.0], [1.0], -INF, -INF),
    ([INF], [0.0], 1.0, NAN), ([INF, 1.0], [1.0, 1.0], -INF, NAN), ([NAN], [0.0], 0.0, NAN),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "c", "expected"), CASES)
def test_one_sum(a: list[float], b: list[float], c: float, expected: float) -> None:
    assert one_sum(a, b, c) == (0x7FFFFFFF if np.isnan(expected) else f32(expected))


def test_half_accumulators_round_to_nearest() -> None:
    text = "HMMA.16816.F16"
    assert one_sum([2.0**-11], [1.0], 1.0, text=text) == 0x3C00  # a tie, to even
    assert one_sum([2.0**-11, TINY], [1.0, 1.0], 1.0, text=text) == 0x3C01
    assert one_sum([2.0**8], [2.0**8], 0.0, text=text) == 0x7C00
    assert one_sum([INF, -INF], [1.0, 1.0], 0.0, text=text) == 0x7FFF


def test_steps_and_places_of_architectures() -> None:
    """Sixteen products are one step on sm_90 and two on sm_80, which keeps a place less."""
    far = [2.0**13, 0, 0, 0, 0, 0, 0, 0, 1.0], [2.0**13, 0, 0, 0, 0, 0, 0, 0, 1.0]
    back = [2.0**13, -(2.0**13), *[0] * 6, 1.0], [2.0**13, 2.0**13, *[0] * 6, 1.0]
    assert [one_sum(*back, 0.0, arch) for arch in ("sm_80", "sm_90", "sm_120")] == [f32(1.0), 0, 0]
    assert [one_sum(*far, -(2.0**26), arch) for arch in ("sm_80", "sm_90")] == [f32(1.0), 0]
    near = [2.0**12, -(2.0**12), 0.5], [2.0**12, 2.0**12, 1.0]
    assert [one_sum(*near, 0.0, arch) for arch in ("sm_75", "sm_86", "sm_90")] == [0, 0, f32(0.5)]


@pytest.mark.parametrize(
    ("text", "arch", "expected"),
    [
        ("QMMA.16832.F32.E4M3.E4M3 R0, R4.ROW, R8.COL, R0", "sm_89", 2.0**-13),
        ("QMMA.16832.F32.E4M3.E4M3 R0, R4.ROW, R8.COL, R0", "sm_120", 0.0),
        ("QGMMA.64x8x32.F32.E4M3.E4M3 R24, gdesc[UR4], R24", "sm_90", 2.0**-13),
        ("HMMA.16816.F32 R0, R4, R8, R0", "sm_89", 0.0),
        ("FFMA R0, R1, R2, R3", "sm_89", 0.0),
    ],
)
def test_how_far_off_a_kernels_sums_may_be(text: str, arch: str, expected: float) -> None:
    instructions = (parse_instruction(0, text, 0),)
    assert sum_roundoff(Program("test", "test", arch, "c", instructions, (), 64, 0, 0, 1, (), 0x210)) == expected


# instruction, types of A and B, rows, depth, accumulator, architecture
WIDE = [
    ("HMMA.1688.F32", "f16", "f16", 8, "f32", "sm_75"),
    ("HMMA.16816.F32", "f16", "f16", 16, "f32", "sm_90"),
    ("HMMA.16816.F16", "f16", "f16", 16, "f16", "sm_86"),
    ("HMMA.16816.F32.BF16", "bf16", "bf16", 16, "f32", "sm_80"),
    ("HMMA.1688.F32.TF32", "tf32", "tf32", 8, "f32", "sm_90"),
    ("HMMA.1684.F32.TF32", "tf32", "tf32", 4, "f32", "sm_80"),
    ("QMMA.16832.F32.E4M3.E5M2", "e4m3", "e5m2", 32, "f32", "sm_89"),
    ("QMMA.16832.F32.E4M3.E4M3", "e4m3", "e4m3", 32, "f32", "sm_120"),
    ("QMMA.16816.F16.E5M2.E4M3", "e5m2", "e4m3", 16, "f16", "sm_120"),
    ("HMMA.SP.16832.F32 1", "f16", "f16", 32, "f32", "sm_80"),
    ("HMMA.SP.16816.F32.BF16 2", "bf16", "bf16", 16, "f32", "sm_90"),
    ("QMMA.SP.16864.F32.E5M2.E4M3 0", "e5m2", "e4m3", 64, "f32", "sm_89"),
]
_NIBBLES = np.array([4, 8, 9, 12, 13, 14], np.uint32)


def draw(kind: str, registers: int, random: np.random.Generator) -> NDArray[np.uint32]:
    """Any words, where numbers of eight exponent bits are near each other or near the ends; few are not finite."""
    words = random.integers(0, 1 << 32, (32, registers), np.uint32)
    if kind in ("bf16", "tf32", "f32"):
        centre = int(random.choice([3, 64, 127, 190, 251]))
        fields = np.clip(centre + random.integers(-15, 16, (2, 32, registers)), 0, 254).astype(np.uint32)
        words = (words & np.uint32(0x807FFFFF)) | fields[0] << np.uint32(23)
        if kind == "bf16":
            words = (words & np.uint32(0xFFFF807F)) | fields[1] << np.uint32(7)
    elif kind == "f16":
        words = np.where(random.random(words.shape) < 0.97, words & np.uint32(0xBFFFBFFF), words)
    else:
        words = np.where(random.random(words.shape) < 0.97, words & np.uint32(0xBFBFBFBF), words)
    return np.where(random.random(words.shape) < 0.05, np.uint32(0x80000000), words)


@pytest.mark.parametrize(("name", "kind_a", "kind_b", "depth", "kind_c", "arch"), WIDE)
@pytest.mark.parametrize("seed", [1, 2])
def test_wide_exponents(name: str, kind_a: str, kind_b: str, depth: int, kind_c: str, arch: str, seed: int) -> None:
    random, sparse, (opcode, *selector) = np.random.default_rng(seed), ".SP." in name, name.split()
    a = draw(kind_a, 16 * depth * BITS[kind_a] // (2048 if sparse else 1024), random)
    b = draw(kind_b, 8 * depth * BITS[kind_b] // 1024, random)
    c = draw(kind_c, 4 if kind_c == "f32" else 2, random)
    words = np.bitwise_or.reduce(random.choice(_NIBBLES, (32, 8)) << np.arange(0, 32, 4, dtype=np.uint32), axis=1)
    given = {f"R{first + i}": w[:, i] for first, w in ((8, a), (16, b), (24, c)) for i in range(w.shape[1])}
    suffixes = (".ROW", ".COL") if name[0] == "Q" else ("", "")
    tail = f", R40, 0x{selector[0]}" if sparse else ""
    after = run(f"{opcode} R32, R8{suffixes[0]}, R16{suffixes[1]}, R24{tail}", arch, R40=words, **given)
    bits = np.uint32 if kind_c == "f32" else np.uint16
    found = np.stack([after[f"R{32 + i}"] for i in range(c.shape[1])], axis=1).view(bits)
    own = c.view(np.float32 if kind_c == "f32" else np.float16)
    left = sparse_a(a, kind_a, depth, words, int(selector[0])) if sparse else matrix_a(a, kind_a, 16, depth)
    right, how = matrix_b(b, kind_b, depth), tensor_sum(arch, "tensor_fp8" if name[0] == "Q" else "tensor_fp16")
    step = 8 * how.step_bytes // BITS[kind_a] * (2 if sparse else 1)
    for lane, places in enumerate(c_places(16)):
        for i, (row, column) in enumerate(places):
            value = float(own[lane, i])
            for first in range(0, depth, step):
                chosen = range(first, min(first + step, depth))
                pairs = [(left[row, k], right[k, column]) for k in chosen if left[row, k] is not None]
                total = cut_sum(pairs, value, (kind_a, kind_b, kind_c), how.fraction_bits)
                if kind_c == "f32":
                    word = cut_to_single(total, min(23, how.fraction_bits))
                    value = float(np.uint32(word).view(np.float32))
                else:
                    word = to_half(total)
                    value = float(np.uint16(word).view(np.float16))
            assert found[lane, i] == word, (lane, i, hex(found[lane, i]), hex(word))
