"""What the expressions of `expressions.cu` mean, in Python: one function a kernel, results in the same order."""

from __future__ import annotations

M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(x: int, y: int) -> int:
    """Division as C has it: toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def remainder(x: int, y: int) -> int:
    return x - quotient(x, y) * y


def _ffs(x: int) -> int:
    return (x & -x).bit_length()


def _reversed(x: int, bits: int) -> int:
    return int(format(x, f"0{bits}b")[::-1], 2)


def byte_perm(a: int, b: int, selector: int) -> int:
    """CUDA Math API: bit 3 of a selector has no effect in __byte_perm."""
    pair = b << 32 | a
    return sum((pair >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i for i in range(4))


def _dp4a(a: int, b: int, c: int, sign: bool) -> int:
    def byte(x: int, i: int) -> int:
        value = x >> 8 * i & 0xFF
        return signed(value, 8) if sign else value

    return c + sum(byte(a, i) * byte(b, i) for i in range(4))


def integer32(a: int, b: int, c: int) -> list[int]:
    x, y, z, n = signed(a), signed(b), signed(c), c & 31
    divides = y != 0 and not (x == -(1 << 31) and y == -1)
    shifts = c & 31
    clamped = min(c, 32)
    pair = a << 32 | b  # of __funnelshift: hi:lo is b:a
    pair = b << 32 | a
    byte_c = [c >> 8 * i & 0xFF for i in range(4)]
    assert len(byte_c) == 4
    return [
        a + b + c,
        a - b,
        a - b - c,
        -x - y,
        x * y + z,
        x * y - z,
        z - x * y,
        -(x * 24) + y,
        x * 9,
        a * b >> 32,
        x * y >> 32,
        a // b if b else 7,
        a % b if b else 7,
        quotient(x, y) if divides else 7,
        remainder(x, y) if divides else 7,
        a // 7,
        a % 10,
        quotient(x, 7),
        remainder(x, 24),
        quotient(x, 8),
        quotient(x, -5),
        a << n,
        a >> n,
        x >> n,
        (pair << shifts) >> 32,
        pair >> shifts,
        (pair << clamped) >> 32,
        pair >> clamped,
        a & b,
        a | b,
        a ^ b,
        ~a & b | c,
        (a & b) | (a & c) | (b & c),
        a ^ b ^ c,
        (a & 0xFF00) | (b & ~0xFF00),
        min(x, y),
        max(x, y),
        min(a, b),
        max(a, b),
        min(max(x, y), z),
        max(signed(x + y), z),
        min(a + b & M32, c),
        max(min(x, y), z),
        abs(x),
        a.bit_count(),
        32 - a.bit_length(),
        _ffs(a),
        _reversed(a, 32),
        byte_perm(a, b, c),
        byte_perm(a, b, 0x9D3A),
        byte_perm(a, 0, 0x4140),
        _dp4a(a, b, c, True),
        _dp4a(a, b, c, False),
        abs(x - y) + c,
        abs(a - b) + c,
        signed(a, 8),
        signed(a, 16),
        a & 0xFFFF,
        signed(x << 11) >> 15,
        (a << 3 & M32) >> 7,
        x + y >> 1,
        x + y + 1 >> 1,
        a + (b << 2),
        a - (b << 5),
        (a << 4) - b,
        ((a << 33 & M64) >> 32) + b,
        x < y,
        a <= b,
        x > y and b != c,
        (x < y) != (y < z),
        b if x == y else c,
        (1 if b > c else 2) if a > b else (3 if b > c else 4),
        b if a & 1 else c,
        (a & 4 != 0) + (b & 8 != 0) + (c & 16 != 0),
        (x < 0) | (y < 0) << 1 | (z < 0) << 2 | (x < y) << 3 | (y < z) << 4,
        a == b or b == c,
        a * b >> 13,
        signed(x << 8) // 256 * (signed(y << 8) // 256),
        (a & 0xFFFFFF) * (b & 0xFFFFFF),
        a * 0x10001 + 0xDEADBEEF,
        1 << n,
        (1 << n) - 1,
    ]


def integer64(a: int, b: int, c: int) -> list[int]:
    x, y, z, n = signed(a, 64), signed(b, 64), signed(c, 64), c & 63
    low, low_b, low_c = signed(a), signed(b), signed(c)
    divides = y != 0 and not (x == -(1 << 63) and y == -1)
    return [
        a + b,
        a - b,
        a + b + c,
        a - b - c,
        -x,
        a * b,
        a * b + c,
        a * b >> 64,
        x * y >> 64,
        (a & M32) * (b & M32),
        low * low_b,
        low * low_b + z,
        (a & M32) * (b & M32) + c,
        z - low * low_b,
        a // b if b else 7,
        a % b if b else 7,
        quotient(x, y) if divides else 7,
        remainder(x, y) if divides else 7,
        a // 1000000007,
        quotient(x, 24),
        a << n,
        a >> n,
        x >> n,
        a << 7,
        a >> 39,
        x >> 33,
        a + (b << 3),
        a + low_c * 4,
        a + (c & M32) * 16,
        a - (b << 2),
        a & b,
        a | b,
        a ^ ~b,
        min(x, y),
        max(x, y),
        min(a, b),
        max(a, b),
        abs(x),
        x < y,
        x <= y,
        x > y,
        x >= y,
        a < b,
        a <= b,
        a > b,
        a >= b,
        a == b,
        a != b,
        x < y and a > c,
        x == y or a >= c,
        b if x < 0 else c,
        b if x < y else c,
        a.bit_count(),
        64 - a.bit_length(),
        _ffs(a),
        _reversed(a, 64),
        low,
        a & M32,
        a >> 20 & M32,
    ]
