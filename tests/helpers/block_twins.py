"""The kernels of `expressions.cu` in which threads work together, in Python: results [result][thread] of one block."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np
from twins import M32, signed

Row = list[int]


def _shuffled(values: Row, source: Callable[[int], int], width: int = 32) -> Row:
    """Lane l gets the value of lane `source(l)` where that is in its group of `width` lanes, else keeps its own."""
    return [
        values[source(lane)] if source(lane) // width == lane // width and 0 <= source(lane) < 32 else values[lane]
        for lane in range(32)
    ]


def warp(arch: str, a: Row, b: Row, c: Row) -> list[Row]:
    lanes = range(32)

    def ballot(holds: Callable[[int], bool], among: int = M32) -> int:
        return sum(1 << lane for lane in lanes if among >> lane & 1 and holds(lane))

    thirds = 0x49249249
    odd = ballot(lambda i: bool(a[i] & 1))
    low = [v & 3 for v in b]
    same = [ballot(lambda j, i=i: low[j] == low[i]) for i in lanes]
    all_same = len(set(low)) == 1
    results = [
        [a[b[i] & 31] for i in lanes],
        [a[5]] * 32,
        [a[i // 8 * 8 + (b[i] & 7)] for i in lanes],
        _shuffled(a, lambda i: i - 3),
        _shuffled(a, lambda i: i - (b[i] & 31), 16),
        _shuffled(a, lambda i: i + 7),
        _shuffled(a, lambda i: i + (b[i] & 31), 4),
        _shuffled(a, lambda i: i ^ 9),
        # PTX ISA, shfl.bfly: the limit is the segment's last lane, so a partner in an earlier segment is valid
        [a[i ^ (b[i] & 31)] if i ^ (b[i] & 31) <= (i | 7) else a[i] for i in lanes],
        [odd] * 32,
        [int(any(x > y for x, y in zip(a, b, strict=True)))] * 32,
        [int(all(x > 3 for x in a))] * 32,
        [int(odd in (0, M32))] * 32,
        same,
        [M32 if all_same else 0] * 32,
        [int(all_same)] * 32,
        [
            ballot(lambda j: bool(a[j] & 2), thirds) if i % 3 == 0 else ballot(lambda j: bool(a[j] & 4), M32 ^ thirds)
            for i in lanes
        ],
        [0x3FF if i < 10 else (M32 ^ 0x3FF) ^ 1 for i in lanes],
        [(odd & ((1 << i) - 1)).bit_count() for i in lanes],
    ]
    if arch != "sm_75":
        folds: tuple[int, ...] = (
            sum(a),
            min(a),
            max(map(signed, a)),
            reduce(lambda x, y: x & y, a),
            reduce(lambda x, y: x | y, [x & y for x, y in zip(a, b, strict=True)]),
            reduce(lambda x, y: x ^ y, a),
        )
        results += [[fold] * 32 for fold in folds]
    return results


_TABLE = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]


def memory(block: int, a: Row, b: Row, c: Row) -> list[Row]:
    threads = range(64)
    u = [(13 * t + 5) % 64 for t in threads]
    vector = [a[t] + 3 * b[t] + 5 * c[t] + 7 * (a[t] ^ c[t]) for t in threads]
    other = [c[t] + 3 * a[t] + 5 * b[t] + 7 * (b[t] + c[t] & M32) for t in threads]

    def tile_word(t: int) -> int:  # word t of the tile after 16-byte stores
        v = t // 4
        return [a[v], b[v], c[v], a[v] ^ c[v]][t % 4]

    def stacked(t: int) -> Row:
        stack = [a[t] * k + b[t] & M32 for k in range(16)]
        for k in range(c[t] & 15):
            stack[k * 5 + a[t] & 15] ^= stack[k + b[t] & 15]
        return stack

    stacks = [stacked(t) for t in threads]
    head = [a[t] & 0xFF | (b[t] & 0xFF) << 8 | (c[t] & 0xFFFF) << 16 for t in threads]
    return [
        [a[u[t]] & 0xFF for t in threads],
        [signed(a[u[t]], 8) for t in threads],
        [b[u[t]] & 0xFFFF for t in threads],
        [signed(b[u[t]], 16) for t in threads],
        [b[u[t]] for t in threads],
        [a[u[t]] for t in threads],
        [vector[u[t]] for t in threads],
        [a[u[t]] & 0xFF for t in threads],
        [signed(b[u[t]], 8) for t in threads],
        [signed(c[u[t]], 16) for t in threads],
        [head[u[t]] for t in threads],
        [c[u[t]] for t in threads],
        [other[u[t]] for t in threads],
        [_TABLE[a[t] & 31] for t in threads],
        [_TABLE[block & 31]] * 64,
        [stacks[t][c[t] & 15] for t in threads],
        [tile_word(t) if c[t] & 1 else stacks[t][a[t] & 15] for t in threads],
        [tile_word(u[t]) if c[t] & 2 else a[t] for t in threads],
        [a[t] >> (b[t] % 24 & 7) & 0xFF for t in threads],
    ]


def atomics_of_block(a: Row, b: Row) -> list[Row]:
    """Results that do not depend on the order of blocks."""
    threads, n = range(len(a)), len(a)
    increments = n % 21  # atomicInc wraps after 20
    near = [
        sum(a),
        n,
        max(a),
        min(0, *map(signed, a)),
        reduce(lambda x, y: x | y, a),
        reduce(lambda x, y: x ^ y, b),
        increments,
    ]
    wide = [sum(a) << 8, max(0, *(signed(y << 32 | x, 64) for x, y in zip(a, b, strict=True)))]
    return [
        [1] * n,
        [0] * n,
        a,
        b,  # the second compare fails, or exchanges nothing that is looked at
        [1] * n,
        [0] * n,
        [0] * n,
        a,
        [7] * n,
        [0] * n,
        [1] * n,
        [1] * n,
        [near[t % 7] for t in threads],
        [n] * n,
        [77] * n,
        [wide[0] >> 16] * n,
        [wide[1] >> 32] * n,
        [2 * n] * n,
    ]


def cells(a: Row, b: Row) -> list[int]:
    """The 13 shared cells that every thread of the grid combines into, from zero."""
    counts = [sum(x & 3 == k for x in a) for k in range(4)]
    xor = reduce(lambda x, y: x ^ y, a)
    bits = reduce(lambda x, y: x | y, a)
    return [
        *(sum(a), *counts, max(a), min(0, *map(signed, a)), 0, bits, xor),
        *(-sum(b), max(0, *map(signed, b)), 0, len(a), len(a)),
    ]


def _collatz(n: int, limit: int) -> int:
    steps = 0
    while n != 1 and steps < limit:
        n, steps = (3 * n + 1 & M32 if n % 2 else n // 2), steps + 1
    return steps


def _ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else _ackermann(m - 1, 1 if n == 0 else _ackermann(m, n - 1))


def _switched(a: int, b: int, c: int) -> int:
    falls = (b ^ c) + b.bit_count() if a % 11 == 2 else 0
    return [
        lambda: b + c,
        lambda: b * c,
        lambda: falls + (b & ~c),
        lambda: b & ~c,
        lambda: _collatz((b & 127) + 1, 50),
        lambda: 32 - c.bit_length(),
        lambda: sum(b >> k for k in range(c & 7)),
        lambda: b - c,
        lambda: b // (c | 1),
        lambda: b | c,
        lambda: 99,
    ][a % 11]()


def _looped(a: int, b: int, c: int) -> int:
    r = 0
    for k in range(a & 7, 20):
        if k == b & 15:
            continue
        for j in range(k):
            if j * k > c & 63:
                break
            r += j ^ k
            if r > 500:
                return r
    return r


def control(block: int, blocks: int, a: Row, b: Row, c: Row) -> list[Row]:
    threads, n = range(len(a)), len(a)
    early = [t >= n - 5 for t in threads]
    untouched = 0xABCDEF
    return [
        [_collatz((a[t] & 1023) + 1, 200) for t in threads],
        [_ackermann(a[t] & 1, b[t] & 3) for t in threads],
        [_switched(a[t], b[t], c[t]) for t in threads],
        [_looped(a[t], b[t], c[t]) for t in threads],
        [2 * b[t] if a[t] & 1 else b[t] + 5 for t in threads],
        [sum(x & 1 for x in a)] * n,
        [int(all(x != 1 for x in a))] * n,
        [int(any(x == 12345 for x in a))] * n,
        [1 if early[t] else 2 for t in threads],
        [untouched if early[t] else block + blocks + t * n for t in threads],
    ]


def matrix(rows: list[Row]) -> np.ndarray:
    return np.array([[int(v) & M32 for v in row] for row in rows], np.uint32)
