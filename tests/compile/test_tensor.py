"""Matrix instructions, executed: fragments as the PTX ISA's tables place them, results against NumPy.

The layouts here are written down from the tables, instruction by instruction ("Matrix fragments for mma.m16n8k16" and
the others), not from the rule that the executor uses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cubins import SM_86
from numpy.typing import NDArray

pytest.importorskip("cuda.bindings")

from gemmsim.analysis.code.operations import floating_point_operations
from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin
from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import access_of
from gemmsim.memory.requests.shapes import shapes_of
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Execution, Launch

SOURCE = Path(__file__).parents[1] / "sources" / "tensor.cu"
ARCHITECTURES = ("sm_80", SM_86, "sm_89", "sm_90", "sm_120")
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4  # "groupID" and "threadID_in_group"


@cache
def cubin(arch: str) -> bytes:
    return compile_cuda(CudaKernel(SOURCE.read_text(), SOURCE), arch)[0]


@cache
def program_of(entry: str, arch: str) -> Program:
    return decode_cubin(cubin(arch), entry, arch, abi="c")


def run(entry: str, arch: str, *arrays: NDArray, threads: int = 32) -> tuple[Program, Execution]:
    program = program_of(entry, arch)
    dtypes = {"uint16": "u32", "uint32": "u32", "float64": "f64"}
    args = []
    for array in arrays:
        words = array.view(np.uint32) if array.dtype == np.uint16 else array
        args.append(Argument(dtypes[array.dtype.name], words.shape, words))
    return program, execute(program, Launch((1, 1, 1), (threads, 1, 1), tuple(args)))


# (row, column) of element i of a lane's fragments of A; B's are (row, column) likewise. PTX ISA 8.x, section 9.7.14.
LAYOUTS: dict[str, tuple[Callable[[int], tuple], Callable[[int], tuple], int]] = {
    # shape: A's, B's, elements of 32 bits or less that a register holds
    "16x16 half": (
        lambda i: (G + (0 if i < 2 or 4 <= i < 6 else 8), 2 * T + (i & 1) + (8 if i >= 4 else 0)),
        lambda i: (2 * T + (i & 1) + (8 if i >= 2 else 0), G),
        2,
    ),
    "16x8 half": (lambda i: (G + (0 if i < 2 else 8), 2 * T + (i & 1)), lambda i: (2 * T + i, G), 2),
    "16x8 word": (lambda i: (G + (0, 8, 0, 8)[i], T + (0, 0, 4, 4)[i]), lambda i: (T + 4 * i, G), 1),
    "16x4 word": (lambda i: (G + 8 * i, T), lambda i: (T, G), 1),
    "16x32 byte": (
        lambda i: (G + (0 if i < 4 or 8 <= i < 12 else 8), 4 * T + (i & 3) + (16 if i >= 8 else 0)),
        lambda i: (4 * T + (i & 3) + (16 if i >= 4 else 0), G),
        4,
    ),
    "16x16 byte": (lambda i: (G + (0 if i < 4 else 8), 4 * T + (i & 3)), lambda i: (4 * T + i, G), 4),
}
C_ROWS, C_COLUMNS = (np.array([G + 8 * (i >= 2) for i in range(4)]).T, np.array([2 * T + (i & 1) for i in range(4)]).T)


def f16(x: NDArray) -> NDArray[np.uint32]:
    return x.astype(np.float16).view(np.uint16).astype(np.uint32)


def bf16(x: NDArray) -> NDArray[np.uint32]:
    return x.astype(np.float32).view(np.uint32) >> 16


def tf32(x: NDArray) -> NDArray[np.uint32]:
    return x.astype(np.float32).view(np.uint32)


def byte(x: NDArray) -> NDArray[np.uint32]:
    return x.astype(np.int64).astype(np.uint8).astype(np.uint32)


# In the order of tensor.cu: layout, element's bits, depth, name of the instruction, value range of A and of B
FORMS = (
    ("16x16 half", f16, 16, "HMMA.16816.F32"),
    ("16x16 half", bf16, 16, "HMMA.16816.F32.BF16"),
    ("16x8 word", tf32, 8, "HMMA.1688.F32.TF32"),
    ("16x32 byte", byte, 32, "IMMA.16832.S8.S8"),
    ("16x32 byte", byte, 32, "IMMA.16832.U8.S8.SAT"),
    ("16x8 half", f16, 8, "HMMA.1688.F32"),
    ("16x8 half", bf16, 8, "HMMA.1688.F32.BF16"),
    ("16x4 word", tf32, 4, "HMMA.1684.F32.TF32"),
    ("16x16 byte", byte, 16, "IMMA.16816.S8.S8"),
)


def fragment(matrix: NDArray, place: Callable[[int], tuple], packed: int, bits: Callable, registers: int) -> NDArray:
    """uint32 [32, registers]: what each lane holds of `matrix`."""
    words = np.zeros((32, registers), np.uint32)
    elements = matrix.size // 32
    for i in range(elements):
        words[:, i // packed] |= bits(matrix[place(i)]) << np.uint32(32 // packed * (i % packed))
    return words


def multiply(arch: str, draw: Callable[[str, tuple[int, int], str], NDArray]) -> list[tuple[str, NDArray, NDArray]]:
    """(instruction, result, A, B, C) of each form; draw(instruction, shape, which) makes the matrices."""
    inputs, a_all, b_all, c_all = [], [], [], []
    for layout, bits, depth, name in FORMS:
        a, b, c = draw(name, (16, depth), "A"), draw(name, (depth, 8), "B"), draw(name, (16, 8), "C")
        place_a, place_b, packed = LAYOUTS[layout]
        a_all.append(fragment(a, place_a, packed, bits, 4))
        b_all.append(fragment(b, place_b, packed, bits, 2))
        own = c.astype(np.int32 if name.startswith("I") else np.float32)
        c_all.append(own[C_ROWS, C_COLUMNS].view(np.uint32))
        inputs.append((name, a, b, c))
    stacked = [np.stack(one) for one in (a_all, b_all, c_all)]
    program, execution = run("multiply", arch, *stacked, np.zeros((len(FORMS), 32, 4), np.uint32))
    names = {i.mnemonic for i in program.instructions if i.opcode in ("HMMA", "IMMA")}
    assert names == {name for *_, name in FORMS}
    out = execution.outputs[3]
    assert out is not None
    results = []
    for (name, a, b, c), words in zip(inputs, out, strict=True):
        d = np.zeros((16, 8))
        d[C_ROWS, C_COLUMNS] = words.view(np.int32 if name.startswith("I") else np.float32)
        results.append((name, d, a, b, c))
    return results


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_small_integers_are_exact(arch: str) -> None:
    """Sums of 32 products of up to 8 x 8 are integers below 2**24: every format holds them, whatever the order."""
    random = np.random.default_rng(1)

    def draw(name: str, shape: tuple[int, int], which: str) -> NDArray:
        low = 0 if which == "A" and "U8" in name else -8
        return random.integers(low, 9, shape).astype(float)

    for name, d, a, b, c in multiply(arch, draw):
        np.testing.assert_array_equal(d, a @ b + c, err_msg=f"{name} {arch}")


def test_fractions_within_what_is_cut() -> None:
    """Each term is cut 25 places below the largest one, and the sum to fp32. tests/hand/isa/test_matrix_sums.py has the
    bits."""
    random = np.random.default_rng(2)

    def draw(name: str, shape: tuple[int, int], which: str) -> NDArray:
        if name.startswith("I"):
            return random.integers(0, 100, shape).astype(float)
        values = (random.random(shape) - 0.5).astype(np.float32)
        return (values.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(float)  # exact in bf16, tf32

    for name, d, a, b, c in multiply("sm_90", draw):
        a, b = (
            x.astype(np.float16).astype(float) if name in ("HMMA.16816.F32", "HMMA.1688.F32") else x for x in (a, b)
        )
        error = np.abs(d - (a @ b + c))
        largest = np.maximum((np.abs(a)[:, :, None] * np.abs(b)).max(1), np.abs(c))
        assert (error <= (a.shape[1] + 1) * 2.0**-25 * largest + 2.0**-23 * np.abs(d)).all(), name
        assert name.startswith("I") or error.max() > 0


def test_integers_wrap_or_saturate() -> None:
    """32 products of 127 * 127 on top of 2**31 - 1; the saturating form is the one with unsigned A."""
    top = 2**31 - 1
    values = {"A": 127, "B": 127, "C": top}
    results = multiply("sm_80", lambda name, shape, which: np.full(shape, float(values[which] if "I" in name else 1)))
    found = {name: d for name, d, *_ in results}
    assert (found["IMMA.16832.U8.S8.SAT"] == top).all()
    assert (found["IMMA.16832.S8.S8"] == top + 32 * 127 * 127 - 2**32).all()


def test_half_subnormals_and_infinity() -> None:
    values = {"A": 2.0**-24, "B": 1.0, "C": 0.0}
    found = {name: d for name, d, *_ in multiply("sm_80", lambda _, shape, which: np.full(shape, values[which]))}
    assert (found["HMMA.16816.F32"] == 16 * 2.0**-24).all()
    values = {"A": np.inf, "B": 1.0, "C": 0.0}
    safe = lambda name, shape, which: np.full(shape, values[which] if "H" in name else 1.0)  # noqa: E731
    found = {name: d for name, d, *_ in multiply("sm_80", safe)}
    assert np.isinf(found["HMMA.16816.F32"]).all()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_double(arch: str) -> None:
    """Fused multiply-adds in the order of k: within 4 roundings, and exact for integers."""
    random = np.random.default_rng(3)
    for integers in (True, False):
        a, b, c = (random.integers(-99, 99, s) if integers else random.random(s) for s in ((8, 4), (4, 8), (8, 8)))
        a, b, c = (np.asarray(x, np.float64) for x in (a, b, c))
        c_lanes = np.stack([c[G, 2 * T], c[G, 2 * T + 1]], axis=1)
        _, done = run("multiply_double", arch, a[G, T], b[T, G], c_lanes, np.zeros((32, 2)))
        d = np.zeros((8, 8))
        assert done.outputs[3] is not None
        d[G, 2 * T], d[G, 2 * T + 1] = done.outputs[3].T
        np.testing.assert_allclose(d, a @ b + c, rtol=0 if integers else 1e-15)


@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_double_16x8x16(arch: str) -> None:
    """One instruction on sm_90; sm_120 does it in 8x8x4 steps."""
    random = np.random.default_rng(4)
    a, b, c = (random.integers(-99, 99, s).astype(float) for s in ((16, 16), (16, 8), (16, 8)))
    a_lanes = np.stack([a[G + 8 * (i & 1), T + 4 * (i >> 1)] for i in range(8)], axis=1)
    b_lanes = np.stack([b[T + 4 * i, G] for i in range(4)], axis=1)
    _, done = run("multiply_double_16", arch, a_lanes, b_lanes, c[C_ROWS, C_COLUMNS], np.zeros((32, 4)))
    np.testing.assert_array_equal(done.outputs[3], (a @ b + c)[C_ROWS, C_COLUMNS])


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_load_matrix(arch: str) -> None:
    """Rows at random places; lane 4 r + c holds elements (r, 2 c) and (r, 2 c + 1), or (2 c, r) and (2 c + 1, r)."""
    random = np.random.default_rng(5)
    memory = random.integers(0, 1 << 16, 1024).astype(np.uint16)
    rows = (16 * random.permutation(128)[:32]).astype(np.uint32)
    _, done = run("load", arch, memory, rows, np.zeros((32, 14), np.uint32))
    matrices = np.stack([memory[row // 2 : row // 2 + 8] for row in rows]).reshape(4, 8, 8).astype(np.uint32)
    straight = np.stack([m[G, 2 * T] | m[G, 2 * T + 1] << 16 for m in matrices], axis=1)
    turned = np.stack([m[2 * T, G] | m[2 * T + 1, G] << 16 for m in matrices], axis=1)
    chosen = [0, 0, 1, 0, 1, 2, 3]
    np.testing.assert_array_equal(done.outputs[2], np.concatenate([straight[:, chosen], turned[:, chosen]], axis=1))


def ldsm_costs(rows: NDArray) -> dict[str, tuple[int, int]]:
    """Mnemonic -> (wavefronts, conflicts) of each LDSM, for lanes that give those byte offsets."""
    memory = np.zeros(1024, np.uint16)
    program, done = run("load", "sm_80", memory, rows.astype(np.uint32), np.zeros((32, 14), np.uint32))
    accesses = {i.index: a for i in program.instructions if (a := access_of(i)) is not None}
    found = shapes_of(done.trace, accesses)
    names = [program.instructions[pc].mnemonic for pc in found.pc]
    waves = found.lanes.wavefronts
    measured = zip(names, waves.tolist(), np.maximum(waves - found.least, 0).tolist(), strict=True)
    return {name: (waves, conflicts) for name, waves, conflicts in measured if name.startswith("LDSM")}


def test_load_matrix_wavefronts() -> None:
    """A matrix is 128 bytes: one wavefront where its 8 rows lie in different banks.

    Rows 128 bytes apart share their four banks: 8 wavefronts a matrix, 7 of them conflicts. Rows 144 bytes apart, the
    padding that tiles of 64 halves get, do not.
    """
    for stride, a_matrix in ((16, 1), (128, 8), (144, 1), (32, 2)):
        costs = ldsm_costs(
            np.arange(32) % 8 * stride + LANE // 8 * 16 * (stride > 16) + LANE // 8 * 128 * (stride == 16)
        )
        for name, matrices in (("LDSM.16.M88", 1), ("LDSM.16.M88.2", 2), ("LDSM.16.MT88.4", 4)):
            assert costs[name] == (a_matrix * matrices, (a_matrix - 1) * matrices), (stride, name)


def test_faults() -> None:
    arrays = np.zeros(1024, np.uint16), np.full(32, 8, np.uint32), np.zeros((32, 14), np.uint32)
    with pytest.raises(GemmsimError, match=r"misaligned access by lane 0.*LDSM"):
        run("load", "sm_80", *arrays)
    with pytest.raises(GemmsimError, match=r"leaves the \d+ bytes of shared memory.*LDSM"):
        run("load", "sm_80", arrays[0], np.full(32, 4096, np.uint32), arrays[2])
    with pytest.raises(GemmsimError, match="all 32 lanes must execute a matrix instruction together"):
        run("load", "sm_80", arrays[0], np.zeros(32, np.uint32), arrays[2], threads=16)


def test_operations_are_counted_by_precision() -> None:
    """A warp's m16n8k16 is 2 * 16 * 8 * 16 = 4096 operations; tensor.cu has one m16n8k16 and one k8 of f16 and bf16."""
    a, b, c = (np.zeros((len(FORMS), 32, words), np.uint32) for words in (4, 2, 4))
    program, done = run("multiply", "sm_80", a, b, c, c.copy())
    found = floating_point_operations(program, done.trace).by_precision
    assert found["tensor_fp16"] == found["tensor_bf16"] == 4096 + 2048
    assert found["tensor_tf32"] == 2048 + 1024
    assert found["tensor_int8"] == 2 * 8192 + 4096
