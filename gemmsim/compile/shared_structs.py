"""Finds the structs of CUDA C++ source text that lie in shared memory: what is in one is a single array in PTX."""

from __future__ import annotations

import re

from gemmsim.compile.includes import include_folders, user_headers
from gemmsim.compile.source import CudaKernel

_REMARK = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ALIGNED = re.compile(r"\b(?:alignas|__align__|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
_DECLARED = re.compile(r"(?<!enum )\b(?:struct|class|union)\s+(\w+)\s*(?:final\s*)?[:{]")
_TYPEDEF = re.compile(r"\btypedef\s+(?:struct|union)\b[^{;]*\{[^{}]*\}\s*(\w+)")
_SHARED = re.compile(r"\b__shared__\s+([^;={(\[]+)")
_KEYWORDS = frozenset(("struct", "class", "union"))


def shared_structs(source: CudaKernel) -> tuple[str, ...]:
    """Return the names of the user's structs, classes and unions of which static shared variables are.

    Types that a macro, `using` or a template's parameter stands for are not followed. All variables of the file and of
    the headers beside it count, whichever kernel uses them.
    """
    folders = (source.path.parent, *include_folders(source.options))
    headers = [one.path.read_text(errors="replace") for one in user_headers(source.text, source.path, folders)]
    text = _ALIGNED.sub("", _REMARK.sub("", "\n".join([source.text, *headers])))
    known = {*_DECLARED.findall(text), *_TYPEDEF.findall(text)}
    found: dict[str, None] = {}
    for variable in _SHARED.finditer(text):
        if text[: variable.start()].rstrip().endswith("extern"):
            continue
        words = re.findall(r"\w+", variable[1])
        names = [word for word in words[:-1] if word in known]
        if not names and _KEYWORDS & set(words):
            names = ["without a name"]
        found |= dict.fromkeys(names)
    return tuple(found)
