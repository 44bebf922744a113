"""Programs of one kernel for several architectures in few bytes, for shipping: what nvdisasm printed, compressed.

Operands, control bits and basic blocks are not stored, because they can be read from the text and the encodings again.
A file is a magic word and a format version, and then, compressed with XZ, the length of a JSON document, the document
and all encodings. Source texts are not in it: they ship as files. No code runs when a file is read.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from typing import Any

from gemmsim.isa.blocks import basic_blocks
from gemmsim.isa.parse import branch_labels, parse_instruction
from gemmsim.isa.program import INSTRUCTION_BYTES, Instruction, Program
from gemmsim.isa.serialize import chains_of, numbered_chains, resources_document, resources_of
from gemmsim.support.errors import GemmsimError

MAGIC = b"gemmsim-programs"
FORMAT_VERSION = 1
_LENGTH_BYTES = 8


def programs_to_bytes(programs: Sequence[Program]) -> bytes:
    """The programs as bytes, without `Program.source`. Equal programs give equal bytes."""
    document = json.dumps([_document(program) for program in programs], separators=(",", ":"), sort_keys=True).encode()
    encodings = b"".join(
        one.encoding.to_bytes(INSTRUCTION_BYTES, "little") for program in programs for one in program.instructions
    )
    body = len(document).to_bytes(_LENGTH_BYTES, "little") + document + encodings
    return MAGIC + bytes([FORMAT_VERSION]) + lzma.compress(body, preset=9 | lzma.PRESET_EXTREME)


def program_from_bytes(data: bytes, arch: str) -> Program | None:
    """The program for `arch`, without source texts; None where the file has no program for it.

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
            if document["arch"] == arch:
                return _program(document, body[at : at + size])
            at += size
        return None
    except (lzma.LZMAError, ValueError, KeyError, IndexError, TypeError) as error:
        raise GemmsimError(f"the stored programs are damaged ({type(error).__name__}: {error})") from None


def _document(program: Program) -> dict[str, Any]:
    labels: dict[str, int] = {}
    for one in program.instructions:
        labels |= branch_labels(one)
    numbers, chains = numbered_chains(program)
    return resources_document(program) | {
        "text": "\n".join(one.text for one in program.instructions),
        "lines": numbers,
        "chains": chains,
        "labels": labels,
    }


def _program(document: dict[str, Any], encodings: bytes) -> Program:
    chains = chains_of(document)
    instructions: list[Instruction] = []
    for number, (text, chain) in enumerate(zip(document["text"].split("\n"), document["lines"], strict=True)):
        at = number * INSTRUCTION_BYTES
        encoding = int.from_bytes(encodings[at : at + INSTRUCTION_BYTES], "little")
        instructions.append(parse_instruction(at, text, encoding, chains[chain], document["labels"]))
    code = tuple(instructions)
    return Program(**resources_of(document), instructions=code, blocks=basic_blocks(code), source={})
