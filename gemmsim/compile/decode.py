"""Decodes a cubin to a Program: code and resources come from the ELF file, text and source lines from nvdisasm."""

from __future__ import annotations

import hashlib
import linecache
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gemmsim.compile.addresses import Addresses
from gemmsim.compile.elf import Cubin, Kernel, read_cubin
from gemmsim.compile.entries import find_entry
from gemmsim.compile.names import is_numba_symbol, readable_name
from gemmsim.compile.toolchain import disassemble, header_folders, tool_versions
from gemmsim.isa.blocks import basic_blocks
from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import INSTRUCTION_BYTES, Instruction, Program, SourceLine
from gemmsim.support.errors import GemmsimError

_SECTION = re.compile(r"\s*\.section\s+\.text\.([^,\s]+)")
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*$")
_LABEL = re.compile(r"([.$\w][^\s:]*):\s*$")
_SOURCE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<inlined>.*)')
_INLINED = re.compile(r'inlined at "(?P<file>[^"]*)", line (?P<line>\d+)')
_NUMBA = ("/numba_cuda/numba/", "/numba/cuda/")  # folders of numba's own files


def decode_cubin(
    cubin: bytes,
    entry: str | None = None,
    arch: str | None = None,
    abi: str | None = None,
    name: str | None = None,
    toolchain: dict[str, str] | None = None,
) -> Program:
    """Decode one kernel of a cubin.

    entry      the kernel, as `entries.find_entry` takes it; None where the cubin holds only one
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
    sections = _sections(_disassembled(cubin, [function.symbol_index for function in kernel.functions]))
    program = _program(parsed, kernel, sections, hashlib.sha256(cubin).hexdigest(), abi)
    tools = tool_versions() if toolchain is None else toolchain
    return replace(program, name=name or program.name, toolchain=dict(sorted(tools.items())))


def decode_kernels(cubin: bytes, symbols: Collection[str]) -> Iterator[tuple[str, Program | GemmsimError]]:
    """Yield each of the kernels `symbols` of a cubin, decoded, or the error that says why it cannot be.

    The cubin is disassembled only once, and `Program.toolchain` stays empty. Raises GemmsimError for a damaged cubin or
    where nvdisasm is not installed.
    """
    parsed = read_cubin(cubin)
    kernels = [kernel for kernel in parsed.kernels if kernel.symbol in symbols]
    functions = {function.symbol_index for kernel in kernels for function in kernel.functions}
    sections = _sections(_disassembled(cubin, sorted(functions) if len(kernels) == 1 else None))
    digest = hashlib.sha256(cubin).hexdigest()
    for kernel in kernels:
        try:
            yield kernel.symbol, _program(parsed, kernel, sections, digest, None)
        except GemmsimError as error:
            yield kernel.symbol, error


def _disassembled(cubin: bytes, symbol_indices: Sequence[int] | None) -> str:
    with tempfile.TemporaryDirectory(prefix="gemmsim-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        return disassemble(path, symbol_indices)


def _sections(listing: str) -> dict[str, list[str]]:
    """Return {symbol: lines of its code's section} of nvdisasm's listing."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in listing.splitlines():
        if section := _SECTION.match(line):
            lines = sections.setdefault(section[1].strip('"'), [])
        lines.append(line)
    return sections


def _program(parsed: Cubin, kernel: Kernel, sections: Mapping[str, list[str]], digest: str, abi: str | None) -> Program:
    """Decode one kernel. `sections` are those of the cubin, listed by `_sections`; `digest` is the cubin's hash."""
    rows, labels = _rows(kernel, sections)
    addresses = Addresses(labels, kernel.variables)
    for _, text, _ in rows:
        addresses.note(text)
    instructions = _instructions(kernel, rows, addresses.labels)
    return Program(
        name=readable_name(kernel.symbol),
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
        constants=kernel.constants | addresses.bank,
        max_threads=kernel.max_threads,
        source=_sources(instructions),
        cubin_sha256=digest,
        reserved_shared_bytes=kernel.reserved_shared_bytes,
        global_data=kernel.global_data,
        relocations=(*kernel.relocations, *addresses.relocations),
        global_bytes=kernel.global_bytes,
        symbols=kernel.variables,
        externals=kernel.externals,
        cluster=kernel.cluster,
        max_cluster_blocks=kernel.max_cluster_blocks,
    )


def _select(cubin: Cubin, entry: str | None) -> Kernel:
    symbol = find_entry(entry, [kernel.symbol for kernel in cubin.kernels], "the cubin")
    return next(kernel for kernel in cubin.kernels if kernel.symbol == symbol)


_Row = tuple[int, str, tuple[SourceLine, ...]]  # byte offset of an instruction, its text, and its source lines


def _rows(kernel: Kernel, sections: Mapping[str, list[str]]) -> tuple[list[_Row], dict[str, int]]:
    """Find the instructions of the kernel and of its functions in nvdisasm's listing, in the order of `kernel.code`.

    Returns the instructions, and {label: byte offset in `kernel.code`}. All labels are collected before the first
    instruction is parsed, since branches go forward too.
    """
    labels, rows = dict(kernel.symbols), list[_Row]()
    for function in kernel.functions:
        rows += _listed(sections.get(function.name, []), function.start, labels)
    return rows, labels


def _listed(listing: list[str], start: int, labels: dict[str, int]) -> list[_Row]:
    """Find the instructions in the listing of a section of code, which begins at byte offset `start`.

    Adds the section's labels to `labels`.
    """
    rows: list[_Row] = []
    waiting: list[str] = []
    sources: tuple[SourceLine, ...] = ()
    fresh = True  # whether the next source comment starts a new chain of inlined calls
    for line in listing:
        if match := _INSTRUCTION.match(line):
            offset = start + int(match[1], 16)
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
    return rows


def _instructions(kernel: Kernel, rows: list[_Row], labels: Mapping[str, int]) -> tuple[Instruction, ...]:
    """Parse the instructions. Raises GemmsimError, which names all that cannot be read."""
    if [offset for offset, _, _ in rows] != list(range(0, len(kernel.code), INSTRUCTION_BYTES)):
        count = len(kernel.code) // INSTRUCTION_BYTES
        raise GemmsimError(f"nvdisasm listed {len(rows)} instructions of '{kernel.symbol}', its code holds {count}")
    parsed, problems = [], []
    for offset, text, lines in rows:
        encoding = int.from_bytes(kernel.code[offset : offset + INSTRUCTION_BYTES], "little")
        try:
            parsed.append(parse_instruction(offset, text, encoding, lines, labels))
        except GemmsimError as error:
            problems.append(str(error))
    if problems:
        raise GemmsimError("; ".join(problems))
    return tuple(parsed)


def _sources(instructions: tuple[Instruction, ...]) -> dict[str, str]:
    """Return {file: text} of every file that a source line of `instructions` names and that can be read here. Files of
    the compilers (CUDA's headers, numba's own arithmetic) are left out: a line of theirs counts for that which uses it.

    A notebook keeps the text of its cells where tracebacks find it (`linecache`), in no file.
    """
    found = {}
    compilers = (*map(str, header_folders()), *_NUMBA)
    for file in sorted({place.file for instruction in instructions for place in instruction.sources}):
        if any(folder in file for folder in compilers):
            continue
        try:
            found[file] = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            if lines := linecache.getlines(file):
                found[file] = "".join(lines)
    return found


def rename_sources(program: Program, shown: Mapping[str, str]) -> Program:
    """Return a copy of the program in which source files have other names: `shown` is {file: new name}."""

    def renamed(places: tuple[SourceLine, ...]) -> tuple[SourceLine, ...]:
        return tuple(SourceLine(shown.get(place.file, place.file), place.line) for place in places)

    instructions = tuple(replace(one, sources=renamed(one.sources)) for one in program.instructions)
    texts = {shown.get(name, name): text for name, text in program.source.items()}
    return replace(program, instructions=instructions, source=texts)
