"""A slow readable twin of wgmma: where the PTX ISA says that each element of a factor lies, one element after another.

The executor reads whole chunks of 16 bytes, by one formula for all layouts; here each layout is written down by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matrix_twin import BITS, DECODE
from numpy.typing import NDArray
from wgmma_forms import Case, Form, Layout


def byte_of(layout: Layout, line: int, k: int, element_bytes: int, base: int) -> int:
    """The address of an element. `line` is a row of A or a column of B.

    base  address of the image, of which the swizzle knows ("the address of the repeating pattern")
    """
    width, at = layout.swizzle, base + layout.start
    eight, one = divmod(line, 8)
    if not layout.transposed and width == 0:  # core matrices of 8 rows of 16 bytes
        core, byte = divmod(k * element_bytes, 16)
        at += eight * layout.stride + core * layout.leading + 16 * one + byte
    elif not layout.transposed:  # eight rows, as wide as the swizzle, follow one another
        at += eight * layout.stride + one * width + k * element_bytes
    elif width == 0:  # core matrices of 8 values of k, for each 8 halves
        at += eight * layout.stride + k // 8 * layout.leading + k % 8 * 16 + 2 * one
    else:  # for 8 values of k, one after the other, as many halves as the swizzle is wide
        block, half = divmod(line, width // 2)
        at += block * layout.leading + k // 8 * layout.stride + k % 8 * width + 2 * half
    rows = (at - 128 * layout.base) >> 7
    chunks = {0: 1, 32: 2, 64: 4, 128: 8}[width]  # of 16 bytes, which change places
    return at ^ rows % chunks << 4


def factor(layout: Layout, image: NDArray[np.uint32], lines: int, depth: int, type_: str, base: int) -> NDArray:
    """[lines, depth] of Python numbers: A, or B transposed."""
    size = BITS[type_] // 8
    memory = image.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[size])
    found = np.zeros((lines, depth), object)
    for line in range(lines):
        for k in range(depth):
            found[line, k] = DECODE[type_](int(memory[(byte_of(layout, line, k, size, base) - base) // size]))
    return found


def registers_of_a(words: NDArray[np.uint32], type_: str, depth: int) -> NDArray:
    """[64, depth]: A from four registers of each of the 128 threads."""
    each = 32 // BITS[type_]
    found = np.zeros((64, depth), object)
    for thread in range(128):
        warp, group, place = thread // 32, thread % 32 // 4, thread % 4
        for register in range(4):
            for j in range(each):
                row = 16 * warp + group + 8 * (register % 2)
                k = each * place + j + 4 * each * (register // 2)
                code = int(words[4 * thread + register]) >> j * BITS[type_] & (1 << BITS[type_]) - 1
                found[row, k] = DECODE[type_](code)
    return found


def places(form: Form) -> list[list[tuple[int, int]]]:
    """[thread][i]: row and column of element i of a thread's accumulators."""
    return [
        [
            (16 * (thread // 32) + thread % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (thread % 4) + i % 2)
            for i in range(form.n // 2)
        ]
        for thread in range(128)
    ]


def accumulators(words: NDArray[np.uint32], form: Form) -> NDArray:
    """[128, n / 2] numbers of the registers of accumulators."""
    type_ = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[form.d]
    return np.ascontiguousarray(words).view(type_).reshape(128, form.n // 2)


def expected(case: Case, base: int, total: Callable[[list, float], object]) -> list[list[object]]:
    """[thread][i]: total(products of one row and column, accumulator before) of each element."""
    form, (image, a_words, c_words) = case.form, case.operands()
    if form.a_in_registers:
        a = registers_of_a(a_words, form.a, form.depth)
    else:
        a = factor(case.a, image, 64, form.depth, form.a, base)
    b = factor(case.b, image, form.n, form.depth, form.b, base)
    a, b = (-x if negated else x for x, negated in ((a, form.negated_a), (b, form.negated_b)))
    before = accumulators(c_words, form)
    return [
        [
            total(list(zip(a[row], b[column], strict=True)), before[thread, i].item() if case.scale_d else 0)
            for i, (row, column) in enumerate(own)
        ]
        for thread, own in enumerate(places(form))
    ]
