"""Parses the text of a SASS instruction, as nvdisasm prints it, to an `Instruction` with typed operands.

The grammar is what nvdisasm 13 prints for sm_75 to sm_120; the CUDA Binary Utilities documentation names the opcodes,
but not the operands. Text outside this grammar raises `GemmsimError`: an operand is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from gemmsim.isa.program import ADDRESS_BANK, ZERO, Control, Instruction, Operand, OperandKind, SourceLine
from gemmsim.support.errors import GemmsimError

_KINDS = {kind.value: kind for kind in (
    OperandKind.REGISTER, OperandKind.UNIFORM_REGISTER, OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE,
    OperandKind.BARRIER,
)}  # fmt: skip
_REGISTER = re.compile(r"(?P<kind>UR|UP|R|P|B)(?P<index>\d+|Z|T)(?P<suffix>(?:\.\w+)*)")
_SPECIAL = re.compile(
    r"(?:SR_\w+|SRZ|U?PR|U?SB\d+|gsb\d+|(?:ARRAY_)?(?:[123]D|CUBE)|Rpc|ATEXIT_PC|THREAD_STATE_ENUM)(?:\.\w+)*"
)
_INTEGER = re.compile(r"-?0x[0-9a-f]+")
_FLOAT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|INF|[QS]?NAN)")
_CONSTANT = re.compile(r"(?P<space>cx?)\[(?P<bank>[^\]]+)\]\[(?P<offset>[^\]]*)\](?P<suffix>(?:\.\w+)*)")
_ADDRESS = re.compile(
    r"(?:(?P<space>[a-z]+)\[UR(?P<descriptor>\d+|Z)\](?P<how>(?:\.[a-z]+[AB])*))?(?:\[(?P<body>[^\]]*)\])?"
)
_TARGET = re.compile(r"`\((?P<label>[^)]*)\)")
_HALF_ADDRESS = re.compile(r"32@(?:lo|hi)\(.*\)")  # half an address, which the linker or the loader writes
IN_ADDRESS_BANK = "address of "  # before the text of a half address that is not known before the launch, in `labels`
_BITS = re.compile(r"\{(?P<bits>\d+(?:,\d+)*)?\}")
# An operand whose brackets hold no others, and a list of such operands.
_WORD = re.compile(r"(?:[^\s,\[({\])}]|\[[^\[({\])}]*\]|\([^\[({\])}]*\)|\{[^\[({\])}]*\})+")
_WORDS = re.compile(rf"(?:{_WORD.pattern}|[\s,])*+")
_NOTE = re.compile(r"\s*\(\*.*?\*\)")  # nvdisasm's remarks: (*"SpillRefill"*), (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)
_BRANCH_TARGETS = re.compile(r"BRANCH_TARGETS (?P<labels>[^\"*]*)")
_GUARD = re.compile(r"@(!?)(U?P(?:\d|T))\s+")


def parse_instruction(
    offset: int,
    text: str,
    encoding: int,
    sources: tuple[SourceLine, ...] = (),
    labels: Mapping[str, int] | None = None,
) -> Instruction:
    """Return the instruction that `text` and `encoding` stand for.

    offset    byte offset from the start of the kernel
    text      the instruction without the semicolon at its end
    encoding  the 128-bit word
    sources   its source lines, innermost first
    labels    {branch label: byte offset in the kernel}, and for each half of an address (`32@lo(table)`) its text: the
              value or, with IN_ADDRESS_BANK before the text, its byte offset in `ADDRESS_BANK`

    Branch targets that nvdisasm lists after an indexed branch (BRX) become TARGET operands after the printed ones.
    """
    labels = labels or {}
    parts = _parts(text)
    opcode, *modifiers = parts.mnemonic.split(".")
    if not opcode.replace("_", "").isalnum():
        raise GemmsimError(f"cannot read instruction '{text}' at {offset:#x}: '{parts.mnemonic}' is no opcode")
    branches = tuple(parse_operand(f"`({label})", 0, labels) for label in parts.branches)
    try:
        operands = tuple(parse_operand(word, encoding, labels) for word in parts.words)
    except GemmsimError as error:
        raise GemmsimError(f"cannot read instruction '{text}' at {offset:#x}: {error}") from None
    control = decode_control(encoding)
    return Instruction(
        offset, opcode, tuple(modifiers), operands + branches, parts.guard, control, sources, text.strip(), encoding
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """An instruction's text in parts: its guard, the opcode with its modifiers, the texts of the operands that are
    printed, and the labels that nvdisasm lists after an indexed branch."""

    guard: Operand | None
    mnemonic: str
    words: tuple[str, ...]
    branches: tuple[str, ...]


@lru_cache(maxsize=1 << 13)
def _parts(text: str) -> _Parts:
    """Take an instruction's text apart. Programs, and the same one for several GPUs, have many instructions alike."""
    body, guard = text.strip(), None
    if found := _GUARD.match(body):
        guard = parse_operand(found[1] + found[2])
        body = body[found.end() :]
    mnemonic, _, rest = body.partition(" ")
    rest = rest.replace("] [", "][")  # HADD2 prints `c[0x2] [0x0]`
    listed = _BRANCH_TARGETS.search(rest)
    branches = tuple(label.strip() for label in listed["labels"].split(",")) if listed else ()
    words = _merge_halves(mnemonic.partition(".")[0], split_operands(_NOTE.sub("", rest)))
    return _Parts(guard, mnemonic, tuple(words), branches)


def branch_labels(instruction: Instruction) -> dict[str, int]:
    """Return {label: byte offset} for the labels in an instruction's text. With them the text can be parsed again."""
    listed = _BRANCH_TARGETS.search(instruction.text)
    names = _TARGET.findall(_NOTE.sub("", instruction.text))
    names += [label.strip() for label in listed["labels"].split(",")] if listed else []
    targets = [operand.value for operand in instruction.operands if operand.kind is OperandKind.TARGET]
    halves = {
        (IN_ADDRESS_BANK if one.bank == ADDRESS_BANK else "") + one.name: one.value
        for one in instruction.operands
        if one.kind is OperandKind.IMMEDIATE and _HALF_ADDRESS.fullmatch(one.name)
    }
    return dict(zip(names, targets, strict=False)) | halves


def decode_control(encoding: int) -> Control:
    """Return the scheduling bits of a 128-bit encoding.

    Their places are stall [108:105], yield [109], write barrier [112:110], read barrier [115:113], wait mask [121:116]
    and reuse [125:122], a layout that has not changed since Jia et al., "Dissecting the NVIDIA Volta GPU Architecture
    via Microbenchmarking", 2018, section 2.1. The yield bit is active low: 0 asks the scheduler to prefer another warp,
    which is `yield_hint=True` here. Barrier number 7 means that there is none.
    """
    return _control(encoding >> 105 & 0x1FFFFF)


@lru_cache(maxsize=1 << 12)
def _control(bits: int) -> Control:
    """Return what bits [125:105] of an encoding say; a program has few different ones."""
    write, read = bits >> 5 & 7, bits >> 8 & 7
    return Control(
        stall_cycles=bits & 15,
        yield_hint=not bits >> 4 & 1,
        write_barrier=None if write == 7 else write,
        read_barrier=None if read == 7 else read,
        wait_mask=bits >> 11 & 63,
        reuse_mask=bits >> 17 & 15,
    )


def split_operands(text: str) -> list[str]:
    """Split at the commas and spaces outside brackets. A space alone separates, too: `RET R2 \\`(f)` has no comma."""
    if _WORDS.fullmatch(text):
        return _WORD.findall(text)
    words, word, depth = [], "", 0
    for char in text:
        if depth == 0 and (char == "," or char.isspace()):
            if word:
                words.append(word)
            word = ""
            continue
        depth += (char in "[({") - (char in "])}")
        word += char
    return [*words, word] if word else words


def _merge_halves(opcode: str, words: list[str]) -> list[str]:
    """Merge two neighbouring literals into one operand's text: "1" and "-2" become "1,-2".

    Packed half instructions print a 32-bit immediate as two 16-bit literals.
    """
    merged: list[str] = []
    for word in words:
        packed = opcode.startswith("H") and merged and _FLOAT.fullmatch(word) and _FLOAT.fullmatch(merged[-1])
        if packed:
            merged[-1] += "," + word
        else:
            merged.append(word)
    return merged


def parse_operand(text: str, encoding: int = 0, labels: Mapping[str, int] | None = None) -> Operand:
    """Return the operand that `text` stands for.

    A hexadecimal immediate keeps its printed sign: `-0x14` is -20, to be masked to the width that the opcode wants. A
    literal printed as floating point takes its bits from the immediate field of the encoding, bits [63:32], and keeps
    its printed form in `name`. For FP64 opcodes that field is the upper half of the double, for packed halves both.
    """
    operand = _by_text_alone(text)
    if operand is not None:
        return operand
    if target := _TARGET.fullmatch(text):
        return Operand(OperandKind.TARGET, value=_label("branch target", target["label"], labels or {}))
    if _HALF_ADDRESS.fullmatch(text):
        at = (labels or {}).get(IN_ADDRESS_BANK + text)
        if at is not None:
            return Operand(OperandKind.IMMEDIATE, value=at, bank=ADDRESS_BANK, name=text)
        return Operand(OperandKind.IMMEDIATE, value=_label("address", text, labels or {}), name=text)
    return Operand(OperandKind.IMMEDIATE, value=encoding >> 32 & 0xFFFFFFFF, name=text)


@lru_cache(maxsize=1 << 14)
def _by_text_alone(text: str) -> Operand | None:
    """Return the operand that `text` stands for; None for labels, addresses and float literals, which need more.

    A program has few different operands, so the results are kept.
    """
    if _INTEGER.fullmatch(text):
        return Operand(OperandKind.IMMEDIATE, value=int(text, 16))
    if (
        _TARGET.fullmatch(text)
        or _HALF_ADDRESS.fullmatch(text)
        or all(_FLOAT.fullmatch(part) for part in text.split(","))
    ):
        return None
    if bits := _BITS.fullmatch(text):  # a set of scoreboards, as in DEPBAR {2,1}
        numbers = [int(bit) for bit in bits["bits"].split(",")] if bits["bits"] else []
        return Operand(OperandKind.IMMEDIATE, value=sum(1 << number for number in numbers), name="set")
    return _parse_named(text)


def _label(what: str, label: str, labels: Mapping[str, int]) -> int:
    if label in labels:
        return labels[label]
    if _INTEGER.fullmatch(label):
        return int(label, 16)
    raise GemmsimError(f"{what} '{label}' is not in the kernel")


def _parse_named(text: str) -> Operand:
    """Parse a register, predicate, constant, address or special operand, which may have a sign, complement or bars."""
    body, negate, invert, absolute = text, False, False, False
    if body[:1] == "-":
        body, negate = body[1:], True
    elif body[:1] in ("~", "!"):
        body, invert = body[1:], True
    if body[:1] == "|":
        inner, bar, tail = body[1:].partition("|")
        if not bar:
            raise GemmsimError(f"cannot read operand '{text}'")
        body, absolute = inner + tail, True
    operand = _parse_plain(body.replace(".reuse", ""))
    if operand is None:
        raise GemmsimError(f"cannot read operand '{text}'")
    if not (negate or invert or absolute):
        return operand
    return replace(operand, negate=negate, absolute=absolute, invert=invert)


def _parse_plain(body: str) -> Operand | None:
    if match := _REGISTER.fullmatch(body):
        return Operand(_KINDS[match["kind"]], _index(match["index"]), suffix=match["suffix"][1:])
    if match := _SPECIAL.fullmatch(body):
        return Operand(OperandKind.SPECIAL, name=body)
    if match := _CONSTANT.fullmatch(body):
        return _parse_constant(match)
    match = _ADDRESS.fullmatch(body)
    if match and (match["body"] is not None or match["space"]):
        return _parse_address(match)
    return None


def _index(digits: str) -> int:
    return ZERO if digits in ("Z", "T") else int(digits)


def _parse_constant(match: re.Match[str]) -> Operand | None:
    base, uniform, value = ZERO, ZERO, 0
    for term in match["offset"].split("+"):
        register = _REGISTER.fullmatch(term)
        if register and register["kind"] == "R":
            base = _index(register["index"])
        elif register and register["kind"] == "UR":
            uniform = _index(register["index"])
        elif _INTEGER.fullmatch(term):
            value = int(term, 16)
        else:
            return None
    bindless = _REGISTER.fullmatch(match["bank"])  # cx[UR4][0x10]: the bank is named by a uniform register
    if bindless:
        bank = _index(bindless["index"])
    elif _INTEGER.fullmatch(match["bank"]):
        bank = int(match["bank"], 16)
    else:
        return None
    name = "cx" if bindless else ""
    return Operand(OperandKind.CONSTANT, base, value, bank, uniform, suffix=match["suffix"][1:], name=name)


def _parse_address(match: re.Match[str]) -> Operand | None:
    base, uniform, value, scale, wide, suffix = ZERO, ZERO, 0, 1, False, (match["how"] or "")[1:]
    for term in (match["body"] or "0x0").split("+"):
        register = _REGISTER.fullmatch(term)
        if register and register["kind"] == "R":
            base = _index(register["index"])
            for part in filter(None, register["suffix"].split(".")):
                if part == "64":
                    wide = True
                elif part[0] == "X" and part[1:].isdigit():
                    scale = int(part[1:])
                else:
                    suffix = part
        elif register and register["kind"] == "UR" and not register["suffix"]:
            uniform = _index(register["index"])
        elif _INTEGER.fullmatch(term):
            value = int(term, 16)
        else:
            return None
    space, descriptor = match["space"] or "", _index(match["descriptor"]) if match["space"] else 0
    return Operand(OperandKind.ADDRESS, base, value, descriptor, uniform, scale, wide, suffix=suffix, name=space)
