"""Decodes a cubin to a Program: code and resources come from the ELF file, text and source lines from nvdisasm."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gemmsim.compile.elf import Cubin, Kernel, read_cubin
from gemmsim.compile.names import is_numba_symbol, readable_name
from gemmsim.compile.toolchain import disassemble, tool_versions
from gemmsim.isa.blocks import basic_blocks
from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import INSTRUCTION_BYTES, Instruction, Program, SourceLine
from gemmsim.support.errors import GemmsimError, nearest

_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*$")
_LABEL = re.compile(r"([.$\w][^\s:]*):\s*$")
_SOURCE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<inlined>.*)')
_INLINED = re.compile(r'inlined at "(?P<file>[^"]*)", line (?P<line>\d+)')


def decode_cubin(
    cubin: bytes,
    entry: str | None = None,
    arch: str | None = None,
    abi: str | None = None,
    name: str | None = None,
    toolchain: dict[str, str] | None = None,
) -> Program:
    """Decode one kernel of a cubin.

    entry      symbol or readable name of the kernel; needed where the cubin holds several
    arch       the architecture that the caller expects ("sm_90"); a cubin for another one is an error
    abi        "c" or "numba": how array arguments are passed (`Program.abi`); None: the symbol decides it
    name       name to show to people; None: the readable part of the symbol
    toolchain  {tool: version} to record in the program; None: the installed versions

    Raises GemmsimError for a damaged cubin, an unknown entry, another architecture, or where nvdisasm is not installed.
    """
    parsed = read_cubin(cubin)
    if arch is not None and parsed.arch != arch.rstrip("af"):
        raise GemmsimError(f"the cubin is for {parsed.arch}, but the GPU asked for is {arch}: compile it for {arch}")
    kernel = _select(parsed, entry)
    with tempfile.TemporaryDirectory(prefix="gemmsim-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        listing = disassemble(path, kernel.symbol_index)
    instructions = _instructions(kernel, listing)
    return Program(
        name=name or readable_name(kernel.symbol),
        symbol=kernel.symbol,
        arch=parsed.arch,
        abi=abi or ("numba" if is_numba_symbol(kernel.symbol) else "c"),
        instructions=instructions,
        blocks=basic_blocks(instructions),
        registers=kernel.registers,
        static_shared_bytes=kernel.static_shared_bytes,
        local_bytes=kernel.local_bytes,
        barriers=kernel.barriers,
        parameters=kernel.parameters,
        parameter_base=kernel.parameter_base,
        constants=kernel.constants,
        max_threads=kernel.max_threads,
        toolchain=tool_versions() if toolchain is None else toolchain,
        source=_sources(instructions),
        cubin_sha256=hashlib.sha256(cubin).hexdigest(),
        reserved_shared_bytes=kernel.reserved_shared_bytes,
        global_data=parsed.global_data,
        relocations=kernel.relocations,
    )


def _select(cubin: Cubin, entry: str | None) -> Kernel:
    listed = ", ".join(kernel.symbol for kernel in cubin.kernels)
    if entry is None:
        if len(cubin.kernels) > 1:
            raise GemmsimError(f"the cubin holds {len(cubin.kernels)} kernels, choose one as the entry: {listed}")
        return cubin.kernels[0]
    for kernel in cubin.kernels:
        if kernel.symbol == entry:
            return kernel
    named = [kernel for kernel in cubin.kernels if readable_name(kernel.symbol) == entry]
    if len(named) == 1:
        return named[0]
    if named:
        symbols = ", ".join(kernel.symbol for kernel in named)
        raise GemmsimError(f"'{entry}' names {len(named)} kernels, choose by symbol: {symbols}")
    known = [readable_name(kernel.symbol) for kernel in cubin.kernels]
    raise GemmsimError(f"the cubin has no kernel '{entry}'{nearest(entry, known)}; it holds: {listed}")


def _instructions(kernel: Kernel, listing: str) -> tuple[Instruction, ...]:
    """Parse the instructions in the kernel's part of nvdisasm's listing.

    All labels are collected before the first instruction is parsed, since branches go forward too.
    """
    labels = dict(kernel.symbols)
    rows: list[tuple[int, str, tuple[SourceLine, ...]]] = []
    waiting: list[str] = []
    sources: tuple[SourceLine, ...] = ()
    fresh = True  # whether the next source comment starts a new chain of inlined calls
    inside = False
    for line in listing.splitlines():
        if section := _SECTION.match(line):
            inside = section[1].strip('"') == kernel.symbol
        elif not inside:
            continue
        elif match := _INSTRUCTION.match(line):
            offset = int(match[1], 16)
            labels.update((label, offset) for label in waiting)
            waiting.clear()
            rows.append((offset, match[2], sources))
            fresh = True
        elif match := _SOURCE.search(line):
            here = SourceLine(match["file"], int(match["line"]))
            outer = _INLINED.search(match["inlined"])
            chain = (here,) + ((SourceLine(outer["file"], int(outer["line"])),) if outer else ())
            # Each frame names its caller, and then the caller's own comment follows: keep each place once.
            sources = chain if fresh else sources + tuple(place for place in chain if place not in sources)
            fresh = False
        elif match := _LABEL.match(line):
            waiting.append(match[1])
    if [offset for offset, _, _ in rows] != list(range(0, len(kernel.code), INSTRUCTION_BYTES)):
        count = len(kernel.code) // INSTRUCTION_BYTES
        raise GemmsimError(f"nvdisasm listed {len(rows)} instructions of '{kernel.symbol}', its code holds {count}")
    return tuple(
        parse_instruction(
            offset, text, int.from_bytes(kernel.code[offset : offset + INSTRUCTION_BYTES], "little"), lines, labels
        )
        for offset, text, lines in rows
    )


def _sources(instructions: tuple[Instruction, ...]) -> dict[str, str]:
    """Return {file: text} of every file that a source line of `instructions` names and that can be read here."""
    found = {}
    for file in sorted({place.file for instruction in instructions for place in instruction.sources}):
        try:
            found[file] = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def rename_sources(program: Program, shown: Mapping[str, str]) -> Program:
    """Return a copy of the program in which source files have other names: `shown` is {file: new name}."""

    def renamed(places: tuple[SourceLine, ...]) -> tuple[SourceLine, ...]:
        return tuple(SourceLine(shown.get(place.file, place.file), place.line) for place in places)

    instructions = tuple(replace(one, sources=renamed(one.sources)) for one in program.instructions)
    texts = {shown.get(name, name): text for name, text in program.source.items()}
    return replace(program, instructions=instructions, source=texts)
