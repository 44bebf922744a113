"""Puts the elements of a sparse A in their places among zeros.

A sparse A holds, of each chunk of four columns, two (PTX ISA, "Sparse matrix storage"). Its registers are those of a
matrix half as wide. Metadata take four bits of each chunk, the places of its two elements. Of each four lanes one, two
or all hold metadata, which the selector names; they hold the chunks in order. Where elements have 16 bits or more, a
lane describes four chunks of row g in the low half of its word, and of row g + 8 in the high half. Where they have
fewer, a lane describes eight chunks of one row: of row g where it is even, of row g + 8 where it is odd. A place of
four-bit integers is that of two neighbours in a chunk of eight. A chunk of TF32 has two columns, of which one is held;
a place is that of half a number. The code that compilers make of fp8's sparse form on sm_90 moves metadata so.
"""

from __future__ import annotations

import numpy as np

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, subroutine
from gemmsim.trace import micro
from gemmsim.trace.engine.cut_sum import cut_places
from gemmsim.trace.llvm.cut_sums import ABSENT
from gemmsim.trace.llvm.primitives import get_n32, get_u32, get_u64, moved, set_i32, set_u32, set_u64
from gemmsim.trace.lower.tensor import FORMAT_MASK, SELECTOR_MASK, SELECTOR_SHIFT
from gemmsim.trace.micro import BF16, S4, S8, TF32

# mypy: disable-error-code="no-untyped-def"


@subroutine(INDEX, INDEX)
def elements_shift(format_):
    """Return the logarithm to base 2 of how many elements of a format a register holds."""
    return 0 if format_ == TF32 else 1 if format_ <= BF16 else 2 if format_ < S4 else 3


@subroutine(INDEX, ADDRESS, INDEX, INDEX, INDEX, INDEX, INDEX)
def _column(metadata, detail, depth, row, group, k):
    """Return the column of element `k` among those that A holds of a row (0 to 7) of its eight rows `group`."""
    format_, selector = detail & FORMAT_MASK, (detail >> SELECTOR_SHIFT) & SELECTOR_MASK
    chunk_shift = 1 if format_ == TF32 else 3 if format_ >= S4 else 2
    lanes = (depth >> chunk_shift) >> 2  # lanes of four that hold metadata: each holds eight chunks
    chunk = k >> (chunk_shift - 1)
    if format_ >= S8:
        lane, field = 2 * (chunk >> 3) + group, chunk & 7
    else:
        lane, field = chunk >> 2, 4 * group + (chunk & 3)
    places = (get_n32(metadata, 4 * row + selector * lanes + lane) >> 4 * field) & 15
    if format_ == TF32:
        return 2 * chunk + ((places >> 1) & 1)
    if format_ >= S4:
        return 8 * chunk + 2 * ((places >> (k & 2)) & 3) + (k & 1)
    return 4 * chunk + ((places >> (2 * (k & 1))) & 3)


@subroutine(NOTHING, ADDRESS, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)
def put_in_places(op, metadata, to, a, group, register_bytes):
    """Write eight rows of a sparse A to the address `to` as if A were dense.

    metadata        address of the 32 lanes' words
    a               address of the elements of the group's first register, as `multiply` has spread them; the registers
                    of both groups alternate
    group           number of these eight rows: 0 for rows 0 to 7, 1 for rows 8 to 15
    register_bytes  bytes that a register's elements take
    """
    detail, depth = get_n32(op, micro.DETAIL), get_n32(op, micro.IMMEDIATE)
    format_, cut = detail & FORMAT_MASK, cut_places(detail) != 0
    shift = elements_shift(format_)
    within, block, registers = (1 << shift) - 1, register_bytes >> shift, depth >> 2 + shift
    wide = not cut or format_ in (TF32, BF16)
    exponents = np.int64(256 if wide else 128)  # bytes from a block's numbers to its exponents
    for word in range(register_bytes * registers >> 3):
        set_u64(to, word, np.uint64(0))
    if cut:
        for number in range(registers << shift):
            for lane in range(32):
                set_i32(moved(to, block * number + exponents), lane, ABSENT)
    for row in range(8):
        for k in range(depth >> 1):
            column = _column(metadata, detail, depth, row, group, k)
            old, new = 4 * row + ((k >> shift) & 3), 4 * row + ((column >> shift) & 3)
            source = moved(a, 2 * register_bytes * (k >> 2 + shift) + block * (k & within))
            place = moved(to, register_bytes * (column >> 2 + shift) + block * (column & within))
            if wide:
                set_u64(place, new, get_u64(source, old))
            else:
                set_u32(place, new, get_u32(source, old))
            if cut:
                set_u32(moved(place, exponents), new, get_u32(moved(source, exponents), old))
