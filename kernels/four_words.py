"""Four neighbouring words of a matrix at once: 128 bits where the matrices allow it, word by word where not."""

from __future__ import annotations

from typing import Any


def access() -> tuple[Any, Any, Any, Any]:
    """Device functions (aligned, load, store, store_one), new ones at each call. Imports numba.

    aligned(A, B, C)           whether every row of all three starts at a multiple of 16 bytes
    load(X, at, count, fast)   words at, at + 1, ... at + 3 of the flat X; zeros from the count-th on
    store(C, at, alpha, beta, w, x, y, z)   writes alpha * (w, x, y, z) + beta * C to words at, ... at + 3 of the flat C
    store_one(C, at, inside, alpha, beta, w)   writes alpha * w + beta * C to word at, if it is inside

    With `fast`, and for `store`, the matrix is aligned and at a multiple of 4; a positive count then stands for 4, as
    rows are whole fours. What lies outside is predicated, not branched around: NVVM unrolls no loop with many branches.
    """
    from numba import cuda, float32, uint32, uint64

    from .intrinsics import (
        global_address,
        load_global_f32_if,
        load_global_f32x4,
        store_global_f32_if,
        store_global_f32x4,
    )

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def aligned(A, B, C):
        rows = uint64(uint32(A.shape[1]) | uint32(B.shape[1])) & uint64(3)  # in words
        starts = (global_address(A) | global_address(B) | global_address(C)) & uint64(15)  # in bytes
        return (rows | starts) == uint64(0)

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def load(X, at, count, fast):
        w, x, y, z = float32(0), float32(0), float32(0), float32(0)
        address = global_address(X) + uint64(at) * uint64(4)
        if fast:
            if count > 0:
                w, x, y, z = load_global_f32x4(address)
        else:
            w = load_global_f32_if(address, uint32(count > 0))
            x = load_global_f32_if(address + uint64(4), uint32(count > 1))
            y = load_global_f32_if(address + uint64(8), uint32(count > 2))
            z = load_global_f32_if(address + uint64(12), uint32(count > 3))
        return w, x, y, z

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def store(C, at, alpha, beta, w, x, y, z):
        address = global_address(C) + uint64(at) * uint64(4)
        w, x, y, z = alpha * w, alpha * x, alpha * y, alpha * z
        if beta != 0:  # BLAS: where beta is 0, C is not read and may hold anything
            c0, c1, c2, c3 = load_global_f32x4(address)
            w, x, y, z = w + beta * c0, x + beta * c1, y + beta * c2, z + beta * c3
        store_global_f32x4(address, (w, x, y, z))

    @cuda.jit(device=True, fastmath=True, forceinline=True)
    def store_one(C, at, inside, alpha, beta, w):
        address = global_address(C) + uint64(at) * uint64(4)
        old = load_global_f32_if(address, uint32(inside and beta != 0))
        store_global_f32_if(address, alpha * w + beta * old, uint32(inside))

    return aligned, load, store, store_one
