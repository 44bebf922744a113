"""Calls NVRTC, NVIDIA's compiler of CUDA C++ as a library. It compiles code of the GPU only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.compile.toolchain import missing
from gemmsim.support.errors import GemmsimError

_ERROR = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error\b.*", re.MULTILINE)


@dataclass(frozen=True)
class SourceError:
    """An error in a source file. `line` counts from 1, `column` from 0; it is None where it is not known."""

    message: str
    file: Path
    line: int
    column: int | None


@dataclass(frozen=True)
class Outcome:
    """What NVRTC made of a source.

    cubin   the machine code; None where there are errors
    symbol  of the entry; None where none was asked for
    log     what NVRTC says, errors included
    ptx     the PTX that the machine code was made of; None where there are errors
    """

    cubin: bytes | None
    symbol: str | None
    log: str
    ptx: str | None = None

    @property
    def errors(self) -> tuple[SourceError, ...]:
        """The errors in the log that have a place in a file."""
        return tuple(_located(self.log, found) for found in _ERROR.finditer(self.log))

    @property
    def first_error(self) -> str:
        """The first line of the log that tells of an error."""
        lines = [line.strip() for line in self.log.splitlines() if line.strip()]
        telling = [line for line in lines if re.search(r"\berror\b", line)]
        return (telling or lines or ["no message"])[0]


def nvrtc_compile(
    text: str, path: Path, entry: str | None, options: Sequence[str], headers: Mapping[str, str]
) -> Outcome:
    """Compile the source `text` with NVRTC.

    path     its name in messages and source lines
    entry    a kernel's name expression, which instantiates a template; None: none
    headers  {name in an include: text} of headers that go before those on disk

    Raises GemmsimError where NVRTC is not installed or fails by itself.
    """
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise missing("NVRTC (cuda.bindings)") from None
    names, texts = [name.encode() for name in headers], [one.encode() for one in headers.values()]
    try:
        made = nvrtc.nvrtcCreateProgram(text.encode(), str(path).encode(), len(names), texts, names)
    except RuntimeError:  # cuda.bindings found no library to load
        raise missing("NVRTC") from None
    program = _checked(nvrtc, made)
    try:
        if entry is not None:
            _checked(nvrtc, nvrtc.nvrtcAddNameExpression(program, entry.encode()))
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            return Outcome(None, None, log)
        symbol = None
        if entry is not None:
            symbol = _checked(nvrtc, nvrtc.nvrtcGetLoweredName(program, entry.encode())).decode()
        cubin = b" " * _checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program))
        if cubin:
            _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
        return Outcome(cubin, symbol, log, _text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise GemmsimError(f"NVRTC failed: {status.name}")
    return values[0] if values else None


def _text(nvrtc: Any, program: Any, size_of: Any, content_of: Any) -> str:
    data = b" " * _checked(nvrtc, size_of(program))
    _checked(nvrtc, content_of(program, data))
    return data.rstrip(b"\0").decode(errors="replace")


def _located(log: str, found: re.Match[str]) -> SourceError:
    """Read an error's place. Below its message stand the source line and a caret, both indented by two spaces."""
    column = None
    for line in log[found.end() :].splitlines()[1:4]:
        if line.strip() == "^":
            column = line.index("^") - 2
            break
    return SourceError(found[0].strip(), Path(found["file"]), int(found["line"]), column)
