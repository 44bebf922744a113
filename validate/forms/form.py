"""Describes one form of a PTX instruction as a kernel of one warp that executes it on given words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LANES = 32


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction in one form, and the kernel `form(in, out, reads, writes)` that executes it.

    name    what the form is called in lists: the instruction in PTX
    source  CUDA C++ of the kernel
    reads   for each word that a lane reads from `in`, how it is drawn: a key of `gemmsim_validate.forms.inputs.DRAWN`
    words   number of words of `out` that a lane owns; `out` starts with the first words of `in`
    since   least compute capability that has the form, as 10 * major + minor
    target  suffix of the architecture that the form needs: "a" for what only one architecture has, else ""
    """

    name: str
    source: str
    reads: tuple[str, ...]
    words: int
    since: int = 75
    target: str = ""


def kernel(body: str) -> str:
    """Return the kernel with this body. There `i` is the lane's input, `o` its output, `lane` its number."""
    return f"""\
#include <cuda_fp16.h>
extern "C" __global__ void form(const unsigned *in, unsigned *out, unsigned reads, unsigned writes) {{
    in += blockIdx.x * 32 * reads;
    out += blockIdx.x * 32 * writes;
    const unsigned lane = threadIdx.x, *i = in + lane * reads;
    unsigned *o = out + lane * writes;
{body}
}}
"""


def assembly(text: str, results: Sequence[tuple[str, int]], operands: Sequence[tuple[str, int]], tail: str = "") -> str:
    """Return an asm statement that executes the PTX instruction `text` on words of `i`, with results in words of `o`.

    results   (letter, count) of each group of results: letter "r", "f" or "d" as in an asm constraint
    operands  (letter, count) of each group of operands
    tail      what follows the last operand

    A group of one is written without braces where its count is given as 0.
    """
    number = 0
    groups: list[str] = []
    outs: list[str] = []
    ins: list[str] = []
    for given, out in ((results, True), (operands, False)):
        word = 0
        for letter, count in given:
            names = []
            for _ in range(max(count, 1)):
                names.append(f"%{number}")
                number += 1
                place = f"(({_TYPES[letter]} *){'o' if out else 'i'})" if letter != "r" else ("o" if out else "i")
                place = place if out or letter == "r" else f"((const {_TYPES[letter]} *)i)"
                size = 2 if letter in "dl" else 1
                (outs if out else ins).append(f'"{"=" if out else ""}{letter}"({place}[{word // size}])')
                word += size
            groups.append(names[0] if count == 0 else "{" + ", ".join(names) + "}")
    return f'    asm volatile("{text} {", ".join(groups)}{tail};" : {", ".join(outs)} : {", ".join(ins)} : "memory");'


_TYPES = {"r": "unsigned", "f": "float", "d": "double", "l": "unsigned long long"}
