"""Renders what `gemmsim decode` found in a file, as text and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from gemmsim.report.layout.text import INDENT, width
from gemmsim.support.plurals import plural
from gemmsim.support.version import __version__

SCHEMA_VERSION = 1
_LABEL = 12  # columns of the labels


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A kernel parameter. `type` is its type in C++, empty where the symbol does not say it."""

    type: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A variable of the kernel's module: `space` is "constant" (`__constant__`) or "global" (`__device__`)."""

    name: str
    space: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class MissingRow:
    """Something without semantics that a kernel needs, and how many of its instructions need it.

    what     "opcode LEPC", "modifier .COS of MUFU.COS"
    example  the first such instruction
    """

    what: str
    instructions: int
    example: str


@dataclass(frozen=True, slots=True)
class DecodedKernel:
    """A kernel of a file. Where it cannot be decoded, `problem` says why, and what follows `problem` has no meaning.

    name                      its name in C++
    origin                    which part of the file holds it; empty where the file was compiled
    toolchain                 {tool: version} of the tools that made it
    maximal_dynamic_shared_bytes   what a launch may ask for on a GPU of this architecture; None where gemmsim knows no
                              such GPU
    local_bytes               stack and spills of a thread
    barriers                  named barriers of a block
    max_threads               most threads of a block, its launch bound; None where there is none
    constant_bytes            {bank: bytes} of constant banks with data of the kernel's own
    variables                 those of the kernel's module
    calls                     functions of the system that it may call: vprintf, malloc, ...
    missing                   what gemmsim cannot execute; empty where it can execute the kernel
    """

    name: str
    symbol: str
    arch: str
    origin: str
    toolchain: dict[str, str]
    problem: str = ""
    instructions: int = 0
    registers: int = 0
    static_shared_bytes: int = 0
    maximal_dynamic_shared_bytes: int | None = None
    local_bytes: int = 0
    barriers: int = 0
    max_threads: int | None = None
    parameters: tuple[ParameterRow, ...] = ()
    constant_bytes: dict[int, int] | None = None
    variables: tuple[VariableRow, ...] = ()
    calls: tuple[str, ...] = ()
    missing: tuple[MissingRow, ...] = ()


def render_json(file: str, kernels: Sequence[DecodedKernel]) -> str:
    """Return the kernels of `file` as a JSON document."""
    document = {"schema": SCHEMA_VERSION, "gemmsim": __version__, "file": file}
    return json.dumps(document | {"kernels": [asdict(kernel) for kernel in kernels]}, indent=2)


def render_text(file: str, kernels: Sequence[DecodedKernel]) -> str:
    """Return the kernels of `file` as text of at most 80 columns, and how many of them gemmsim can execute."""
    able = sum(not kernel.problem and not kernel.missing for kernel in kernels)
    count = plural(len(kernels), "kernel")
    lines = [f"{file}: {count}, of which gemmsim executes {able}"]
    for kernel in kernels:
        lines += ["", *textwrap.wrap(kernel.name, width(), subsequent_indent=INDENT * 2)]
        if kernel.symbol != kernel.name:
            lines += _labelled("symbol", kernel.symbol)
        lines += _labelled("code", _code(kernel))
        lines += _problem(kernel) if kernel.problem else _content(kernel)
    return "\n".join(lines) + "\n"


def _code(kernel: DecodedKernel) -> str:
    tools = ", ".join(f"{tool} {version}" for tool, version in kernel.toolchain.items())
    where = kernel.origin or f"compiled here for {kernel.arch}"
    return where + (f"; {tools}" if tools else "")


def _problem(kernel: DecodedKernel) -> list[str]:
    return _labelled("problem", kernel.problem)


def _size(size_bytes: int, columns: int) -> str:
    """Write a size as an entry of a column, whose numbers are this wide."""
    return f"{size_bytes:{columns},} {'byte ' if size_bytes == 1 else 'bytes'} "


def _content(kernel: DecodedKernel) -> list[str]:
    dynamic = kernel.maximal_dynamic_shared_bytes
    threads = f", at most {plural(kernel.max_threads, 'thread')} a block" if kernel.max_threads else ""
    lines = _labelled(
        "resources",
        f"{plural(kernel.instructions, 'instruction')}, {plural(kernel.registers, 'register')}, "
        f"{plural(kernel.local_bytes, 'byte')} of stack, "
        f"{plural(kernel.barriers, 'barrier')}{threads}",
    )
    more = "" if dynamic is None else f", and at most {dynamic:,} bytes of dynamic"
    lines += _labelled("shared", f"{plural(kernel.static_shared_bytes, 'byte')} of static{more}")
    rows = [f"{row.offset_bytes:#06x} {_size(row.size_bytes, 6)} {row.type}".rstrip() for row in kernel.parameters]
    lines += _labelled("parameters", *(rows or ["none"]))
    if kernel.constant_bytes:
        banks = (f"bank {bank}: {plural(size, 'byte')}" for bank, size in kernel.constant_bytes.items())
        lines += _labelled("constants", ", ".join(banks))
    variables = [f"{_size(row.size_bytes, 13)} {row.space} {row.name}" for row in kernel.variables]
    lines += _labelled("variables", *variables) if variables else []
    lines += _labelled("calls", ", ".join(kernel.calls)) if kernel.calls else []
    missing = [f"{row.what} ({row.instructions}), as in '{row.example}'" for row in kernel.missing]
    return lines + _labelled("missing", *(missing or ["nothing: gemmsim executes it"]))


def _labelled(label: str, *texts: str) -> list[str]:
    """Lay out texts, each on lines of its own, behind a label, which stands before the first of them."""
    lead, lines = f"{INDENT}{label:<{_LABEL}}", []
    for text in texts:
        lines += textwrap.wrap(
            text, width(), initial_indent=lead, subsequent_indent=" " * (len(lead) + 2), break_on_hyphens=False
        )
        lead = " " * len(lead)
    return lines
