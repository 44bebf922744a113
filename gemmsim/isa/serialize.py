"""Program <-> bytes: a magic word, a format version, zlib-compressed JSON. No code runs when a file is read.

Equal operands, predicates and source chains are stored once and shared after loading: a program has thousands of
operands, of which few differ. Control bits are not stored: the encoding holds them.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import astuple
from typing import Any

from gemmsim.isa.parse import decode_control
from gemmsim.isa.program import (
    INSTRUCTION_BYTES,
    BasicBlock,
    Instruction,
    Operand,
    OperandKind,
    Parameter,
    Program,
    Relocation,
    SourceLine,
)  # fmt: skip
from gemmsim.support.errors import GemmsimError

MAGIC = b"gemmsim-program"
FORMAT_VERSION = 1  # raise it with any change of what is stored: files of another version are refused
_PLAIN = (
    "name", "symbol", "arch", "abi", "registers", "static_shared_bytes", "local_bytes", "barriers", "parameter_base",
    "max_threads", "toolchain", "cubin_sha256", "reserved_shared_bytes",
)  # fmt: skip


def resources_document(program: Program) -> dict[str, Any]:
    """All of a program but its code and its source texts, as JSON can hold it."""
    return {name: getattr(program, name) for name in _PLAIN} | {
        "parameters": [astuple(parameter) for parameter in program.parameters],
        "constants": {str(bank): _pack(data) for bank, data in sorted(program.constants.items())},
        "global_data": _pack(program.global_data),
        "relocations": [astuple(relocation) for relocation in program.relocations],
    }


def resources_of(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of `Program`, by name, that `resources_document` stored in a document."""
    return {name: document[name] for name in _PLAIN} | {
        "parameters": tuple(Parameter(*row) for row in document["parameters"]),
        "constants": {int(bank): _unpack(text) for bank, text in document["constants"].items()},
        "global_data": _unpack(document["global_data"]),
        "relocations": tuple(Relocation(*row) for row in document["relocations"]),
    }


def numbered_chains(program: Program) -> tuple[list[int], list[list[tuple[str, int]]]]:
    """A number for each instruction's chain of source lines, and the (file, line) pairs of each number's chain."""
    chains: dict[tuple[SourceLine, ...], int] = {}
    numbers = [chains.setdefault(one.sources, len(chains)) for one in program.instructions]
    return numbers, [[(place.file, place.line) for place in chain] for chain in chains]


def chains_of(document: dict[str, Any]) -> list[tuple[SourceLine, ...]]:
    """The chains that `numbered_chains` numbered, from a document's "chains"."""
    return [tuple(SourceLine(file, line) for file, line in chain) for chain in document["chains"]]


class _Table:
    """Numbers distinct values in the order of their first use."""

    def __init__(self) -> None:
        self.index: dict[Any, int] = {}

    def add(self, value: Any) -> int:
        return self.index.setdefault(value, len(self.index))


def program_to_bytes(program: Program) -> bytes:
    """The program as bytes. Equal programs give equal bytes."""
    operands, mnemonics = _Table(), _Table()
    numbers, chains = numbered_chains(program)
    rows = [
        (
            mnemonics.add((one.opcode, *one.modifiers)),
            operands.add(one.predicate),
            chain,
            one.text,
            *map(operands.add, one.operands),
        )
        for one, chain in zip(program.instructions, numbers, strict=True)
    ]
    document = resources_document(program) | {
        "source": program.source,
        "instructions": rows,
        "offsets": [one.offset for one in program.instructions],
        "encodings": _pack(b"".join(i.encoding.to_bytes(INSTRUCTION_BYTES, "little") for i in program.instructions)),
        "mnemonics": list(mnemonics.index),
        "operands": [None if operand is None else astuple(operand) for operand in operands.index],
        "chains": chains,
        "blocks": [astuple(block) for block in program.blocks],
    }
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return MAGIC + bytes([FORMAT_VERSION]) + zlib.compress(text.encode(), 6)


def program_from_bytes(data: bytes) -> Program:
    """The program that `program_to_bytes` stored. Raises GemmsimError for what this version of it did not write."""
    header = len(MAGIC) + 1
    if data[: len(MAGIC)] != MAGIC or len(data) < header:
        raise GemmsimError("not a stored gemmsim program")
    if data[len(MAGIC)] != FORMAT_VERSION:
        raise GemmsimError(f"the stored program has format {data[len(MAGIC)]}, this gemmsim reads {FORMAT_VERSION}")
    try:
        return _build(json.loads(zlib.decompress(data[header:])))
    except (zlib.error, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise GemmsimError(f"the stored program is damaged ({type(error).__name__}: {error})") from None


def _build(document: dict[str, Any]) -> Program:
    operands = [row and Operand(OperandKind(row[0]), *row[1:]) for row in document["operands"]]
    chains = chains_of(document)
    mnemonics = [(row[0], tuple(row[1:])) for row in document["mnemonics"]]
    words = _unpack(document["encodings"])
    instructions = []
    for number, (mnemonic, predicate, chain, text, *used) in enumerate(document["instructions"]):
        start = number * INSTRUCTION_BYTES
        encoding = int.from_bytes(words[start : start + INSTRUCTION_BYTES], "little")
        opcode, modifiers = mnemonics[mnemonic]
        instructions.append(
            Instruction(
                document["offsets"][number], opcode, modifiers, tuple([operands[index] for index in used]),
                operands[predicate], decode_control(encoding), chains[chain], text, encoding,
            )
        )  # fmt: skip
    return Program(
        **resources_of(document),
        source=document["source"],
        instructions=tuple(instructions),
        blocks=tuple(BasicBlock(start, stop, tuple(successors)) for start, stop, successors in document["blocks"]),
    )


def _pack(data: bytes) -> str:
    return base64.b85encode(data).decode()


def _unpack(text: str) -> bytes:
    return base64.b85decode(text)
