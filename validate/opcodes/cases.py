"""Reads `instructions.txt` as cases, each a PTX instruction, and writes a kernel for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

INSTRUCTIONS = Path(__file__).with_name("instructions.txt")
SLOT_BYTES = 8  # of each value in the arrays of inputs and outputs
_CHOICE = re.compile(r"\{([^{}]*)\}")
_ARCHITECTURE = re.compile(r"sm_(\d+)\+ +")
_RESULTS, _SOURCES = "defg", "abc"
_CPP = {
    "f32": "float",
    "f64": "double",
    "b32": "unsigned",
    "s32": "int",
    "b64": "unsigned long long",
    "s64": "long long",
}
_BITS = {"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "f32": 32, "f64": 64, "pred": 1}
BLOCK_THREADS = 128


@dataclass(frozen=True)
class Case:
    """One instruction to try.

    symbol        name of its kernel
    instruction   the PTX instruction with its modifiers, such as "add.rz.f32"
    results       types of its results: "f16", "b32", "pred" and others
    sources       types of its sources
    body          PTX statements that compute registers d, e, f, g from registers a, b, c; empty where `instruction` is
                  an expression of CUDA C++
    architecture  the first architecture that has it: 80 of "sm_80"
    """

    symbol: str
    instruction: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    body: str
    architecture: int


def read_cases(text: str | None = None) -> tuple[Case, ...]:
    """Return the cases of `instructions.txt`, or of `text` in its format, in order. Each has a symbol of its own."""
    found: dict[str, Case] = {}
    for line in (INSTRUCTIONS.read_text(encoding="utf-8") if text is None else text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        at = _ARCHITECTURE.match(line)
        architecture = int(at[1]) if at else 80
        for expanded in _expansions(line[at.end() :] if at else line):
            case = _case(expanded, architecture)
            number, symbol = 1, case.symbol
            while symbol in found and replace(case, symbol=symbol) != found[symbol]:
                number += 1
                symbol = f"{case.symbol}_{number}"
            found[symbol] = replace(case, symbol=symbol)
    return tuple(found.values())


def _expansions(line: str) -> Iterator[str]:
    """Yield `line` for every combination of the choices in its braces."""
    parts = _CHOICE.split(line)  # text, choices, text, choices, ..., text
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    for words in product(*choices):
        yield "".join(words)


def _case(line: str, architecture: int) -> Case:
    instruction, types, *rest = (part.strip() for part in line.split(":", 2))
    results, sources = (tuple(side.split()) for side in types.split("="))
    if rest == ["C++"]:
        return Case(re.sub(r"\W+", "_", f"cuda {instruction}"), instruction, results, sources, "", architecture)
    names = [*_RESULTS[: len(results)], *_SOURCES[: len(sources)]]
    body = rest[0].replace("@ ", f"{instruction} ") if rest else f"{instruction} {', '.join(names)};"
    if instruction == "mov.u32":
        instruction = body.removesuffix(";")
    symbol = re.sub(r"\W+", "_", instruction)
    return Case(symbol, instruction, results, sources, body, architecture)


def bits_of(type_: str) -> int:
    """Return the width of a value of `type_` in bits; 1 of a predicate."""
    return _BITS[type_] if type_ in _BITS else int(type_[1:])


def source_text(cases: Iterable[Case], rows: int) -> str:
    """Return CUDA C++ with the kernels of `cases`, for inputs and outputs with `rows` values of each operand.

    A kernel's parameters are the addresses of the inputs, [sources, rows] slots of 8 bytes, and of the outputs,
    [results, rows] slots. Thread t computes row t.
    """
    return "".join(_kernel(case, rows) for case in cases)


def _kernel(case: Case, rows: int) -> str:
    head = (
        f'extern "C" __global__ void {case.symbol}(const unsigned long long* inputs, unsigned long long* outputs) {{\n'
    )
    head += f"    int t = blockIdx.x * {BLOCK_THREADS} + threadIdx.x;\n"
    return head + (_assembly(case, rows) if case.body else _expression(case, rows)) + "}\n"


def _expression(case: Case, rows: int) -> str:
    """Return the statements of a kernel that evaluates an expression of C++."""
    lines = [
        f"{_CPP[type_]} {name} = *reinterpret_cast<const {_CPP[type_]}*>(inputs + {number * rows} + t);"
        for number, (name, type_) in enumerate(zip(_SOURCES, case.sources, strict=False))
    ]
    lines.append(f"*reinterpret_cast<{_CPP[case.results[0]]}*>(outputs + t) = {case.instruction};")
    return "".join(f"    {line}\n" for line in lines)


def _assembly(case: Case, rows: int) -> str:
    """Return the statement of a kernel that executes PTX."""
    lines = [".reg .b32 bit;"]
    lines += [f".reg .{_register(t)} {n};" for n, t in zip(_RESULTS, case.results, strict=False)]
    lines += [f".reg .{_register(t)} {n};" for n, t in zip(_SOURCES, case.sources, strict=False)]
    for number, (name, type_) in enumerate(zip(_SOURCES, case.sources, strict=False)):
        where = f"[%0+{number * rows * SLOT_BYTES}]"
        if type_ == "pred":
            lines += [f"ld.global.b32 bit, {where};", f"setp.ne.s32 {name}, bit, 0;"]
        else:
            lines.append(f"ld.global.b{bits_of(type_)} {name}, {where};")
    lines.append(case.body.replace("%", "%%"))
    for number, (name, type_) in enumerate(zip(_RESULTS, case.results, strict=False)):
        where = f"[%1+{number * rows * SLOT_BYTES}]"
        if type_ == "pred":
            lines += [f"selp.b32 bit, 1, 0, {name};", f"st.global.b32 {where}, bit;"]
        else:
            lines.append(f"st.global.b{bits_of(type_)} {where}, {name};")
    text = "\n".join(f'        "{line}\\n"' for line in ["{", *lines, "}"])
    return f'    asm volatile(\n{text}\n        :: "l"(inputs + t), "l"(outputs + t) : "memory");\n'


def _register(type_: str) -> str:
    return "pred" if type_ == "pred" else f"b{max(bits_of(type_), 16)}"
