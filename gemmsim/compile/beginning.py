"""Finds the line of its file at which a kernel begins, without compiling it."""

from __future__ import annotations

import re
from pathlib import Path

from gemmsim.compile.source import CudaKernel, KernelSource, PtxKernel, PythonKernel
from gemmsim.isa.program import SourceLine
from gemmsim.support.errors import GemmsimError


def beginning(source: KernelSource) -> SourceLine:
    """Return the line of its file at which a kernel begins; line 1 where the text does not tell, as in a binary."""
    if isinstance(source, PythonKernel):
        return SourceLine(source.shown_path, _first(rf"^[ \t]*def {re.escape(source.function)}\b", _text(source.path)))
    path = source.shown_names([str(source.path)]) if isinstance(source, CudaKernel) else {}
    shown = path.get(str(source.path), str(source.path))
    if not isinstance(source, CudaKernel | PtxKernel):
        return SourceLine(shown, 1)
    name = re.match(r"\w*", (source.entry or "").rpartition("::")[2])
    marks = [rf"\b{name[0]}\s*\("] if name and name[0] else []
    lines = (_first(mark, source.text) for mark in [*marks, r"__global__|^\s*\.(visible\s+)?\.entry"])
    return SourceLine(shown, next((line for line in lines if line > 1), 1))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror}") from None


def _first(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1
