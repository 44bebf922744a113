"""Damages command lines and files, the same way for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

# What people and scripts put where a number, a name or a size belongs
ODD_WORDS = (
    *("", "0", "-1", "1e300", "nan", "inf", "1_0", "0x10", "9" * 40, "9" * 5000, "1,1,1,1", ",", "1x1", "a" * 300),
    *("%s", "{", "}", "{n}", "[", "f32[", "f32[4]=", "f32[-1]", "i32=", "i32=99999999999", "struct{", "&A", "\u03bb"),
    *("no.such", "1e18B", "0MiB", "-5us", "tiled", "k.cu", "k.cubin", "gpu.toml", "--size", "--help", "2147483648"),
    *("time_us <", "sectors at 99999 == 0", "'", '"', "a b", "=", "==", "4294967296,65536,65536", "1,0,1", "65535"),
)


def damaged_words(words: Sequence[str], rng: random.Random) -> list[str]:
    """Return a command line with one to three words replaced, dropped, doubled, swapped or joined."""
    words = list(words)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, other = rng.randrange(1, len(words)), rng.randrange(1, len(words))
        way = rng.randrange(6)
        if way <= 2:
            words[at] = rng.choice(ODD_WORDS)
        elif way == 3 and len(words) > 2:
            del words[at]
        elif way == 4:
            words.insert(at, words[other])
        else:
            words[at], words[other] = words[other], words[at]
    return words


def damaged_bytes(content: bytes, rng: random.Random) -> bytes:
    """Return a file with one to eight places changed, cut off, doubled or filled with zeros."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.choice((1, 1, 4, 16, 256))
        way = rng.randrange(7)
        if way == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif way == 1:
            data[at : at + length] = rng.randbytes(length)
        elif way == 2:
            data[at : at + length] = bytes(length)
        elif way == 3:
            del data[at : at + length]
        elif way == 4:
            data[at:at] = data[at : at + length] * rng.choice((1, 100))
        elif way == 5:
            data[at : at + 1] = rng.choice(
                (b"-1", b"1e999", b"\xff\xff\xff\xff", b"[" * 2000, b'"', b"\n", b"9" * 5000)
            )
        else:
            del data[at:]
    return bytes(data)
