"""Computes what kernels should have stored that do something else than multiply matrices."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gemmsim.support.errors import GemmsimError

from .reference import Array, Before, Expected, roundoff, smallest


def close(before: Before, values: Array, magnitude: Array | float | None = None) -> list[Expected]:
    """Allow `tolerance` (default: eight roundings of the result's type) of each value's magnitude."""
    dtype = before.dtype("out")
    tolerance = before.number("tolerance", 8 * roundoff(dtype))
    scale = np.broadcast_to(np.abs(values) if magnitude is None else magnitude, values.shape)
    allowed = tolerance * scale.ravel() + smallest(dtype)
    return [Expected(before.position("out"), dtype, values.ravel(), allowed)]


def elementwise(before: Before) -> list[Expected]:
    """Compute `function` of x (and y) over n elements: copy, add, multiply, saxpy, gelu, relu, sqrt and others."""
    x = before.array("x")
    n = before.size("n", x.size)
    x = x[:n]
    y = before.array("y")[:n] if "y" in before.check else np.zeros(n)
    alpha = before.number("alpha", 1)
    functions: dict[str, Callable[[], tuple[Array, Array]]] = {
        "copy": lambda: (x, np.abs(x)),
        "add": lambda: (x + y, np.abs(x) + np.abs(y)),
        "subtract": lambda: (x - y, np.abs(x) + np.abs(y)),
        "multiply": lambda: (x * y, np.abs(x * y)),
        "axpy": lambda: (alpha * x + y, np.abs(alpha * x) + np.abs(y)),
        "scale": lambda: (alpha * x, np.abs(alpha * x)),
        "gelu": lambda: (_gelu(x), np.abs(x) + 1e-6),
        "asin": lambda: (np.arcsin(x), np.abs(x) + 1e-6),
        "sin": lambda: (np.sin(x), np.abs(x) + 1e-6),
        "increment": lambda: (x + 1, np.abs(x) + 1),
    }
    name = str(before.check["function"])
    if name not in functions:
        raise GemmsimError(f"manifest: unknown function '{name}'")
    values, magnitude = functions[name]()
    return close(before, values, magnitude)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def transpose(before: Before) -> list[Expected]:
    """Expect the transpose of x, [rows, columns]."""
    rows, columns = before.size("rows"), before.size("columns")
    return close(before, before.array("x")[: rows * columns].reshape(rows, columns).T)


def sum(before: Before) -> list[Expected]:
    """Expect the sums of `groups` (default 1) equal runs of the n elements of x, or one sum at the beginning."""
    n, groups = before.size("n"), before.size("groups", 1)
    x = before.array("x")[:n].reshape(groups, -1)
    return close(before, x.sum(axis=1), np.abs(x).sum(axis=1))


def softmax(before: Before) -> list[Expected]:
    """Expect the softmax of each row of x, [rows, columns]; `causal` leaves out what lies right of the diagonal."""
    rows, columns = before.size("rows"), before.size("columns")
    x = before.array("x")[: rows * columns].reshape(rows, columns) * before.number("scale", 1)
    if before.check.get("causal"):
        row = np.arange(rows) % columns
        x = np.where(np.arange(columns) <= row[:, None], x, -np.inf)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    values = powers / powers.sum(axis=1, keepdims=True)
    if before.check.get("logarithm"):
        values = np.log(values)
    return close(before, values)


def layernorm(before: Before) -> list[Expected]:
    """Expect (x - mean) / deviation * weight + bias of each row of x, [rows, columns]."""
    rows, columns = before.size("rows"), before.size("columns")
    x = before.array("x")[: rows * columns].reshape(rows, columns)
    deviation = np.sqrt(x.var(axis=1, keepdims=True) + before.number("epsilon", 1e-5))
    normal = (x - x.mean(axis=1, keepdims=True)) / deviation
    weight, bias = before.array("weight")[:columns], before.array("bias")[:columns]
    return close(before, normal * weight + bias, np.abs(normal * weight) + np.abs(bias))


def column_sums(before: Before) -> list[Expected]:
    """Expect the sum of each column of x, [rows, columns]."""
    rows, columns = before.size("rows"), before.size("columns")
    x = before.array("x")[: rows * columns].reshape(rows, columns)
    return close(before, x.sum(axis=0), np.abs(x).sum(axis=0))


def row_dots(before: Before) -> list[Expected]:
    """Expect the dot product of each row of x and y, [rows, columns]."""
    rows, columns = before.size("rows"), before.size("columns")
    x, y = (before.array(key)[: rows * columns].reshape(rows, columns) for key in ("x", "y"))
    return close(before, (x * y).sum(axis=1), np.abs(x * y).sum(axis=1))


def dropout(before: Before) -> list[Expected]:
    """Expect x / (1 - p) where `keep` is not 0, and 0 elsewhere."""
    x = before.array("x")
    return close(before, np.where(before.array("keep") != 0, x / (1 - before.number("p", 0.5)), 0))


def philox_dropout(before: Before) -> list[Expected]:
    """Expect x / (1 - p) where Philox's random number of the element's index exceeds p, and 0 elsewhere.

    Philox 4x32 with ten rounds: Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The counter
    is (index, 0, 0, 0), the key (seed, 0). The first word is read as a signed number; a negative one is replaced by its
    complement, and the result is scaled to [0, 1).
    """
    x, p = before.array("x"), before.number("p", 0.5)
    counter = [np.arange(x.size, dtype=np.uint64), *(np.zeros(x.size, np.uint64) for _ in range(3))]
    key = [before.size("seed"), 0]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = counter[2] * np.uint64(0xCD9E8D57), counter[0] * np.uint64(0xD2511F53)
        shift = np.uint64(32)
        counter = [
            (first >> shift) ^ counter[1] ^ np.uint64(key[0]),
            first & low,
            (second >> shift) ^ counter[3] ^ np.uint64(key[1]),
            second & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    signed = counter[0].astype(np.uint32).view(np.int32).astype(np.int64)
    uniform = np.where(signed < 0, -signed - 1, signed) * 4.6566127342e-10
    return close(before, np.where(uniform > p, x / (1 - p), 0))


def layernorm_backward(before: Before) -> list[Expected]:
    """Expect the gradient of a layer normalisation to its input, and its parts to weight and bias, summed by group.

    Row r belongs to group r % groups. dx, dw [groups, columns] and db are stored; dy, x, weight, mean, rstd are read.
    """
    rows, columns, groups = before.size("rows"), before.size("columns"), before.size("groups")
    dy, x = (before.array(key).reshape(rows, columns) for key in ("dy", "x"))
    normal = (x - before.array("mean")[:, None]) * before.array("rstd")[:, None]
    weighted = before.array("weight") * dy
    slope = (normal * weighted).mean(axis=1, keepdims=True)
    dx = (weighted - (normal * slope + weighted.mean(axis=1, keepdims=True))) * before.array("rstd")[:, None]
    found = [Expected(before.position("dx"), "f32", dx.ravel(), 1e-5)]
    for key, part in (("dw", dy * normal), ("db", dy)):
        sums = np.stack([part[group::groups].sum(axis=0) for group in range(groups)])
        found.append(Expected(before.position(key), "f32", sums.ravel(), 1e-5))
    return found


def attention(before: Before) -> list[Expected]:
    """Expect softmax(scale Q K^T) V of each of `heads`; q, k, v and out are [heads, length, width].

    `causal`, or `causal_stage` 3 as Triton's tutorial calls it, lets a row see the columns up to its own.
    """
    heads, length, width = before.size("heads"), before.size("length"), before.size("width")
    q, k, v = (before.array(key)[: heads * length * width].reshape(heads, length, width) for key in ("q", "k", "v"))
    scores = q @ k.swapaxes(1, 2) * before.number("scale", 1 / math.sqrt(width))
    if before.check.get("causal") or before.size("causal_stage", 1) == 3:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights = powers / powers.sum(axis=2, keepdims=True)
    return close(before, weights @ v, weights @ np.abs(v))


def scan(before: Before) -> list[Expected]:
    """Expect the running sum of each `run` elements of x, without or (`inclusive`) with the element itself."""
    x = before.array("x")[: before.size("n")].reshape(-1, before.size("run"))
    sums = np.cumsum(x, axis=1)
    return close(before, sums if before.check.get("inclusive") else sums - x, np.cumsum(np.abs(x), axis=1))


def byte_histogram(before: Before) -> list[Expected]:
    """Expect how often each value occurs among the bytes of the 32-bit words of x."""
    words = np.asarray(before.args[before.position("x")].value, np.uint32)
    return close(before, np.bincount(words.view(np.uint8).ravel(), minlength=256).astype(np.float64))


def in_order(before: Before) -> list[Expected]:
    """Expect each `run` elements of x in ascending order."""
    return close(before, np.sort(before.array("x")[: before.size("n")].reshape(-1, before.size("run")), axis=1))


def count_positive(before: Before) -> list[Expected]:
    """Expect the number of positive elements of x."""
    return close(before, np.array([np.count_nonzero(before.array("x") > 0)], np.float64))


def walsh(before: Before) -> list[Expected]:
    """Expect the Walsh-Hadamard transform of each row of x, [rows, columns], in natural order."""
    rows, columns = before.size("rows"), before.size("columns")
    x = before.array("x").reshape(rows, columns)
    matrix = np.ones((1, 1))
    while len(matrix) < columns:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return close(before, x @ matrix, np.broadcast_to(np.abs(x).sum(axis=1, keepdims=True), x.shape))


def black_scholes(before: Before) -> list[Expected]:
    """Expect the prices of European options by the formula of Black and Scholes: `out` of calls, `put` of puts."""
    stock, strike, years = (before.array(key) for key in ("stock", "strike", "years"))
    rate, volatility = before.number("rate", 0), before.number("volatility", 0)
    root = volatility * np.sqrt(years)
    first = (np.log(stock / strike) + (rate + volatility**2 / 2) * years) / root
    chance = [np.array([0.5 * (1 + math.erf(d / math.sqrt(2))) for d in part]) for part in (first, first - root)]
    later = strike * np.exp(-rate * years)
    call = stock * chance[0] - later * chance[1]
    # The samples approximate the normal distribution by a polynomial, whose error is below 7.5e-8.
    allowed = 1e-5 * (stock + strike)
    put = call - stock + later
    return [Expected(before.position(key), "f32", values, allowed) for key, values in (("out", call), ("put", put))]


def split_heads(before: Before) -> list[Expected]:
    """Expect q, k and v, [batch, heads, length, width], that x, [batch, length, 3, heads, width], holds."""
    batch, length, heads, width = (before.size(key) for key in ("batch", "length", "heads", "width"))
    parts = before.array("x").reshape(batch, length, 3, heads, width).transpose(2, 0, 3, 1, 4)
    return [Expected(before.position(key), "f32", part.ravel(), 0.0) for key, part in zip("qkv", parts, strict=True)]


def same_tiles(before: Before) -> list[Expected]:
    """Expect, in each tile of row r of tiles, the sum of products of the tiles of x and y at the places of row r.

    x is [m, k]; y is read with rows of k, too.
    """
    m, n, k, tile = (before.size(key) for key in ("m", "n", "k", "tile"))
    x, y = (before.array(key)[: m * k].reshape(m // tile, tile, k // tile, tile) for key in ("x", "y"))
    products = np.einsum("risk,rksj->rij", x, y)
    magnitudes = np.einsum("risk,rksj->rij", np.abs(x), np.abs(y))
    values, sizes = (np.tile(part, (1, 1, n // tile)).reshape(m, n) for part in (products, magnitudes))
    return close(before, values, k * sizes)


def nothing(before: Before) -> list[Expected]:
    """Expect no result, of a kernel that stores none."""
    return []


def heat(before: Before) -> list[Expected]:
    """Expect `steps` steps of heat conduction along x, whose ends are held at 0."""
    x = before.array("x")
    for _ in range(before.size("steps")):
        padded = np.pad(x, 1)
        x = x + before.number("factor", 0.25) * (padded[:-2] - 2 * x + padded[2:])
    return close(before, x, 1.0)


def row_numbers(before: Before) -> list[Expected]:
    """Expect each element of [rows, columns] to be the number of its row."""
    rows, columns = before.size("rows"), before.size("columns")
    return close(before, np.repeat(np.arange(rows, dtype=np.float64), columns))


def given(before: Before) -> list[Expected]:
    """Expect the `values` of the manifest."""
    return close(before, np.asarray(before.check["values"], dtype=np.float64))


def business(before: Before) -> list[Expected]:
    """Expect 4 z (2 x - 2 pi y), which numba's documentation computes on CPU and GPU with one function."""
    x, y, z = (before.array(key) for key in ("x", "y", "z"))
    values = 4 * z * (2 * x - 2 * y * math.pi)
    return close(before, values, np.abs(values) + 1)
