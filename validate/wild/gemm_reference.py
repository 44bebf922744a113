"""Computes what a kernel should have stored that multiplies matrices."""

from __future__ import annotations

import numpy as np

from .reference import Array, Before, Expected, roundoff, smallest

# Tensor cores of sm_89 and sm_90 add so many products of fp8 at once, with so many places below the largest of them; as
# many places of the sum remain (gemmsim/isa/tensor_sums.toml).
_FP8_STEP, _FP8_PLACES = 32, 13


def gemm(before: Before) -> list[Expected]:
    """Compute C = f(alpha A B + beta C + bias) for one or more products.

    m, n, k                   sizes
    a_order, b_order, c_order "row" (default) or "col", how the matrices lie in memory
    alpha, beta               default 1 and 0
    bias                      position of a vector of n
    activation                "relu", or "leaky_relu" (0.01 x below 0)
    accumulator               type in which products are summed, default f32, or C's where that is wider
    operand_roundoff          unit roundoff to which operands are rounded first (tf32: 2^-11)
    batch                     number of products, one behind the other
    slack                     by how much integers may differ, where the kernel scales them as floats; default 0
    c_in                      position of the C that beta multiplies, where it is another argument
    """
    m, n, k, batch = before.size("m"), before.size("n"), before.size("k"), before.size("batch", 1)
    a = _matrices(before, "a", batch, m, k)
    b = _matrices(before, "b", batch, k, n)
    alpha, beta = before.number("alpha", 1), before.number("beta", 0)
    product, magnitude = alpha * (a @ b), abs(alpha) * (np.abs(a) @ np.abs(b))
    result, terms = product, magnitude.copy()
    if beta:
        old = _matrices(before, "c_in" if "c_in" in before.check else "c", batch, m, n, "c")
        result, terms = result + beta * old, terms + np.abs(beta * old)
    if "bias" in before.check:
        bias = before.array("bias")[:n]
        result, terms = result + bias, terms + np.abs(bias)
    activation = before.check.get("activation")
    if activation == "relu":
        result = np.maximum(result, 0)
    elif activation == "leaky_relu":
        result = np.where(result >= 0, result, 0.01 * result)
    stored = before.dtype("c")
    own = roundoff(stored)
    accumulator = roundoff(str(before.check.get("accumulator", "f64" if stored == "f64" else "f32")))
    operand = before.number("operand_roundoff", 0)
    if stored in ("i32", "i8", "u32", "i64"):
        allowed: Array = np.full_like(terms, before.number("slack", 0))
    else:
        # The tensor cores cut off where the scalar units round, which is twice the error of rounding.
        allowed = 2 * (k + 3) * accumulator * terms + own * np.abs(result) + 2 * operand * magnitude + smallest(stored)
    if before.dtype("a") in ("e4m3", "e5m2"):
        allowed = allowed + abs(alpha) * _cut_of_fp8(a, b)
    order = before.check.get("c_order", "row")
    if order == "col":
        result, allowed = result.swapaxes(1, 2), allowed.swapaxes(1, 2)
    return [Expected(before.position("c"), stored, result.ravel(), allowed.ravel())]


def _cut_of_fp8(a: Array, b: Array) -> Array:
    """Return the most that tensor cores can cut of the sums of a product of fp8 matrices."""
    total = lost = np.zeros((a.shape[0], a.shape[1], b.shape[2]))
    for first in range(0, a.shape[2], _FP8_STEP):
        some = slice(first, first + _FP8_STEP)
        largest = np.abs(a[:, :, some, None] * b[:, None, some, :]).max(axis=2)
        lost = lost + (_FP8_STEP + 1) * 2.0**-_FP8_PLACES * np.maximum(largest, np.abs(total) + lost)
        total = total + a[:, :, some] @ b[:, some, :]
        lost = lost + 2.0**-_FP8_PLACES * (np.abs(total) + lost)
    return lost


def _matrices(before: Before, key: str, batch: int, rows: int, columns: int, order_of: str | None = None) -> Array:
    flat = before.array(key)[: batch * rows * columns]
    if before.check.get(f"{order_of or key}_order", "row") == "col":
        return flat.reshape(batch, columns, rows).swapaxes(1, 2)
    return flat.reshape(batch, rows, columns)
