"""Places the shared arrays of a kernel in PTX apart from each other, with unused bytes before and behind each.

Once addresses are folded, machine code does not say which array an access was meant for. PTX does: it names the array.
So the arrays of a kernel become parts of one, with gaps between them, and an access beyond an array falls into a gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from gemmsim.compile.names import readable_name
from gemmsim.isa.shared_arrays import SharedArray
from gemmsim.support.errors import GemmsimError

_WHOLE = "gemmsim_arrays_apart"  # the one array of which the kernel's arrays become parts
_MOST_BYTES = 48 << 10  # of static shared memory: the assembler refuses more
_WIDEST_GAP_BYTES, _LEAST_GAP_BYTES = 4096, 16
_FUNCTION = re.compile(r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.(entry|func)\b")
_NAME = re.compile(r"([\w$%]+)\s*(?:\(|$)")
_DECLARATION = re.compile(
    r"^[ \t]*(?:\.(?:visible|weak|common)[ \t]+)?\.shared[ \t]+(?:\.align[ \t]+(\d+)[ \t]+)?"
    r"\.[busf](8|16|32|64)[ \t]+([\w$]+)((?:\[\d+\])*)[ \t]*;",
    re.MULTILINE,
)
_ANY_DECLARATION = re.compile(r"^[ \t]*(?:\.(?:visible|weak|common)[ \t]+)?\.shared\b.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Apart:
    """PTX of one kernel whose arrays have gaps between them.

    arrays       in ascending order
    total_bytes  of the kernel's static shared memory, gaps included
    """

    text: str
    arrays: tuple[SharedArray, ...]
    total_bytes: int


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    align: int
    size_bytes: int


def arrays_apart(ptx: str, symbol: str) -> Apart:
    """Return the PTX of the kernel `symbol` with gaps between its static shared arrays.

    A kernel that is the only one is found by any name: numba's names may have another number each time.
    Raises GemmsimError, with the reason as a part of a sentence, where it has none, where it declares one in a way that
    is not understood, or where there is no room for gaps.
    """
    pieces = list(_pieces(ptx))
    entries = [name for kind, name, _ in pieces if kind == "entry"]
    chosen = symbol if symbol in entries or len(entries) != 1 else entries[0]
    if chosen not in entries:
        raise GemmsimError("its PTX has no kernel of that name")
    pieces = [piece for piece in pieces if piece[0] != "entry" or piece[1] == chosen]
    code = _DECLARATION.sub("", "".join(text for kind, _, text in pieces if kind))
    declared: dict[tuple[int, str], _Declared] = {}  # by the piece that declares it, and its name
    for number, (_, _, text) in enumerate(pieces):
        found = [_declared(match) for match in _DECLARATION.finditer(text)]
        if len(found) != len(_ANY_DECLARATION.findall(text)):
            raise GemmsimError("its PTX declares a shared array in a way that is not understood")
        declared |= {(number, one.name): one for one in found if _mention(one.name).search(code)}
    if not declared:
        raise GemmsimError("its PTX declares no shared array that its code names")
    begins, total = _placed(list(declared.values()))
    at = dict(zip(declared, begins, strict=True))
    everywhere = {name: begin for (number, name), begin in at.items() if not pieces[number][0]}
    align = max(one.align for one in declared.values())
    whole = f".shared .align {align} .b8 {_WHOLE}[{total}];\n"
    parts, begun = [], False
    for number, (kind, _, text) in enumerate(pieces):
        own = {name: begin for (where, name), begin in at.items() if where == number}
        if kind and not begun:
            parts.append(whole)
            begun = True
        parts.append(_moved(_DECLARATION.sub("", text), everywhere | own))
    arrays = [
        SharedArray(readable_name(name), at[number, name], declared[number, name].size_bytes)
        for number, name in declared
    ]
    return Apart("".join(parts), tuple(sorted(arrays, key=lambda one: one.begin)), total)


def _pieces(ptx: str) -> Iterator[tuple[str, str, str]]:
    """Yield the text in pieces, in order: ("entry" or "func", its name, its text), or ("", "", what is between)."""
    lines: list[str] = []
    kind, name, depth, begun = "", "", 0, False
    for line in ptx.splitlines(keepends=True):
        head = None if kind else _FUNCTION.match(line)
        if head:
            yield "", "", "".join(lines)
            lines, kind, name, depth, begun = [], head[1], "", 0, False
        lines.append(line)
        if not kind:
            continue
        bare = re.sub(r'"[^"]*"', "", line.partition("//")[0])
        if not name:
            after = bare[head.end() :] if head else bare
            after = re.sub(r"^\s*\([^)]*\)", "", after)  # what a function returns
            found = _NAME.search(after.strip())
            name = found[1] if found else ""
        depth += bare.count("{") - bare.count("}")
        begun |= "{" in bare
        if (begun and depth == 0) or (not begun and bare.rstrip().endswith(";")):
            yield kind, name, "".join(lines)
            lines, kind = [], ""
    yield kind, name, "".join(lines)


def _declared(match: re.Match[str]) -> _Declared:
    size = int(match[2]) // 8
    align = max(int(match[1] or 1), size)
    for dimension in re.findall(r"\d+", match[4]):
        size *= int(dimension)
    return _Declared(match[3], align, size)


def _placed(arrays: Sequence[_Declared]) -> tuple[list[int], int]:
    """Return where each array begins, and how long all are together. Raises GemmsimError where no gaps fit.

    A gap is as long as the longer array beside it, where there is room: a whole row or tile beyond falls into it.
    """
    widest = _WIDEST_GAP_BYTES
    while widest >= _LEAST_GAP_BYTES:
        begins, end, before = [], 0, 0
        for one in arrays:
            gap = min(max(one.size_bytes, before, _LEAST_GAP_BYTES), widest)
            begins.append(-(-(end + gap) // one.align) * one.align)
            end, before = begins[-1] + one.size_bytes, one.size_bytes
        end += min(max(before, _LEAST_GAP_BYTES), widest)
        if end <= _MOST_BYTES:
            return begins, end
        widest //= 2
    size = sum(one.size_bytes for one in arrays)
    raise GemmsimError(f"arrays of {size:,} bytes leave no room for gaps in {_MOST_BYTES >> 10} KiB")


def _mention(name: str) -> re.Pattern[str]:
    """Match a name and what is added to it."""
    return re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])(?:\s*\+\s*(-?\d+))?")


def _moved(text: str, begins: dict[str, int]) -> str:
    """Replace the names of arrays, and numbers added to them, by places in the array that holds them all."""
    for name, begin in begins.items():
        text = _mention(name).sub(partial(_place, begin), text)
    return text


def _place(begin: int, mention: re.Match[str]) -> str:
    return f"{_WHOLE}+{begin + int(mention[1] or 0)}"
