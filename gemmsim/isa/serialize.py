"""Writes the programs of one kernel, for one or several architectures, in few bytes: for the cache and for shipping.

A file is a magic word and a format version, and then, compressed with XZ, the length of a JSON document, the document
and all encodings. Operands, control bits and basic blocks are not stored, because they can be read from the text and
the encodings again. No code runs when a file is read.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from gemmsim.isa.blocks import basic_blocks
from gemmsim.isa.parse import branch_labels, parse_instruction
from gemmsim.isa.program import (
    INSTRUCTION_BYTES,
    Instruction,
    Parameter,
    Place,
    Program,
    Relocation,
    SourceLine,
    Symbol,
)
from gemmsim.support.errors import GemmsimError

MAGIC = b"gemmsim-programs"
FORMAT_VERSION = 1  # raise it with any change of what is stored: files of another version are refused
_PLAIN = (
    "name", "symbol", "arch", "abi", "registers", "static_shared_bytes", "local_bytes", "barriers", "parameter_base",
    "max_threads", "toolchain", "cubin_sha256", "reserved_shared_bytes",
)  # fmt: skip
_LENGTH_BYTES = 8


def programs_to_bytes(programs: Sequence[Program], *, smallest: bool = False) -> bytes:
    """Return the programs as bytes; equal programs give equal bytes.

    smallest  whether to compress as far as possible, which takes several times as long, and 700 MB of memory
    """
    document = json.dumps([_document(program) for program in programs], separators=(",", ":"), sort_keys=True).encode()
    encodings = b"".join(
        one.encoding.to_bytes(INSTRUCTION_BYTES, "little") for program in programs for one in program.instructions
    )
    body = len(document).to_bytes(_LENGTH_BYTES, "little") + document + encodings
    preset = 9 | lzma.PRESET_EXTREME if smallest else 1
    return MAGIC + bytes([FORMAT_VERSION]) + lzma.compress(body, preset=preset)


def program_from_bytes(data: bytes, arch: str | None = None) -> Program | None:
    """Return the program for `arch` in `data` (None: the first one); None where the data has no such program.

    Raises GemmsimError for data that `programs_to_bytes` of this version did not write.
    """
    header = len(MAGIC) + 1
    if data[: len(MAGIC)] != MAGIC or len(data) < header or data[len(MAGIC)] != FORMAT_VERSION:
        raise GemmsimError("not stored programs of this version of gemmsim")
    try:
        body = lzma.decompress(data[header:])
        at = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "little")
        for document in json.loads(body[_LENGTH_BYTES:at]):
            size = INSTRUCTION_BYTES * len(document["lines"])
            if arch in (None, document["arch"]):
                return _program(document, body[at : at + size])
            at += size
        return None
    except (lzma.LZMAError, ValueError, KeyError, IndexError, TypeError) as error:
        raise GemmsimError(f"the stored programs are damaged ({type(error).__name__}: {error})") from None


def _document(program: Program) -> dict[str, Any]:
    chains: dict[tuple[SourceLine, ...], int] = {}
    labels: dict[str, int] = {}
    for one in program.instructions:
        labels |= branch_labels(one)
    document = {name: getattr(program, name) for name in _PLAIN} | {
        "text": "\n".join(one.text for one in program.instructions),
        "lines": [chains.setdefault(one.sources, len(chains)) for one in program.instructions],
        "chains": [[(place.file, place.line) for place in chain] for chain in chains],
        "labels": labels,
        "parameters": [astuple(parameter) for parameter in program.parameters],
        "constants": {str(bank): _pack(data) for bank, data in sorted(program.constants.items())},
        "global_data": _pack(program.global_data),
        "relocations": [astuple(relocation) for relocation in program.relocations],
    }
    # What most programs lack is left out where it is empty, so that files written before it existed can still be read.
    rare: dict[str, Any] = {
        "source": program.source,
        "origin": program.origin,
        "global_bytes": program.global_bytes,
        "symbols": [
            (one.name, one.shown, one.size_bytes, [astuple(place) for place in one.places]) for one in program.symbols
        ],
        "externals": program.externals,
        "cluster": program.cluster,
        "max_cluster_blocks": program.max_cluster_blocks,
    }
    return document | {name: value for name, value in rare.items() if value}


def _program(document: dict[str, Any], encodings: bytes) -> Program:
    chains = [tuple(SourceLine(file, line) for file, line in chain) for chain in document["chains"]]
    instructions: list[Instruction] = []
    for number, (text, chain) in enumerate(zip(document["text"].split("\n"), document["lines"], strict=True)):
        at = number * INSTRUCTION_BYTES
        encoding = int.from_bytes(encodings[at : at + INSTRUCTION_BYTES], "little")
        instructions.append(parse_instruction(at, text, encoding, chains[chain], document["labels"]))
    code = tuple(instructions)
    return Program(
        **{name: document[name] for name in _PLAIN},
        instructions=code,
        blocks=basic_blocks(code),
        source=document.get("source", {}),
        origin=document.get("origin", ""),
        parameters=tuple(Parameter(*row) for row in document["parameters"]),
        constants={int(bank): _unpack(text) for bank, text in document["constants"].items()},
        global_data=_unpack(document["global_data"]),
        relocations=tuple(Relocation(*row) for row in document["relocations"]),
        global_bytes=document.get("global_bytes", 0),
        symbols=tuple(
            Symbol(name, shown, size, tuple(Place(*place) for place in places))
            for name, shown, size, places in document.get("symbols", ())
        ),
        externals=tuple(document.get("externals", ())),
        cluster=tuple(document["cluster"]) if "cluster" in document else None,
        max_cluster_blocks=document.get("max_cluster_blocks"),
    )


def _pack(data: bytes) -> str:
    return base64.b85encode(data).decode()


def _unpack(text: str) -> bytes:
    return base64.b85decode(text)
