"""Compiles CUDA C++ with NVRTC although there is host code beside the kernels, which NVRTC refuses.

What NVRTC cannot compile and is not marked as code of the GPU is left out, one declaration after another, until the
rest compiles. Functions without a mark that do compile, such as `constexpr` ones, count as the GPU's. Code of the GPU
is never left out, so a kernel either means what it means to nvcc or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gemmsim.compile.declarations import Declaration, declarations, device_macros, removable_at, without
from gemmsim.compile.host_headers import PRELUDE, stand_ins
from gemmsim.compile.includes import Header, included_names
from gemmsim.compile.nvrtc import Outcome, SourceError

OPTIONS = ("-default-device", f"--pre-include={PRELUDE}")
_ROUNDS = 20  # in each of which NVRTC tells of up to a hundred errors


def compile_beside_host_code(
    text: str, path: Path, headers: Iterable[Header], compile_once: Callable[[str, Mapping[str, str]], Outcome]
) -> tuple[Outcome, str]:
    """Compile a source in the file `path`, leaving out host code in it and in the user's headers.

    compile_once  compiles a text with {name: text} of headers, and with `OPTIONS`

    Returns the first outcome without errors or, where code of the GPU has errors, the last one, and words for the end
    of the error's message: what was left out that this code may need.
    """
    state = _Sources({header.path: header for header in headers}, {path: text}, {path: text})
    texts = [text, *map(_read, state.headers)]
    macros = device_macros(texts)
    state.included = {name for one in texts for name in included_names(one)}
    outcome = _compile(path, state, macros, compile_once, large=False)
    if outcome.cubin is None and "std" in outcome.log:
        state.texts, state.reasons = dict(state.without_functions), []
        outcome = _compile(path, state, macros, compile_once, large=True)
    return outcome, _explained(outcome, state.reasons)


def _explained(outcome: Outcome, reasons: Sequence[tuple[str, SourceError]]) -> str:
    """Say why the declaration of what the first error names was left out, where it was."""
    if outcome.cubin is not None or not reasons:
        return ""
    named = re.findall(r'"(\w+)"', outcome.first_error)
    for text, error in reasons:
        if any(re.search(rf"\b{name}\b", text) for name in named):
            return f", as it was left out for {error.message}; --compiler nvcc compiles host code, too"
    return "; --compiler nvcc compiles host code, too"


@dataclass
class _Sources:
    """The texts of the files that have changed.

    headers            the user's headers, by path
    texts              without all that has been left out
    without_functions  without the functions among that, which no code of the GPU can call. What was left out for want
                       of a header of the C++ library may come back once that is there; functions need not
    included           the names in all includes
    reasons            what has been left out, and the error because of which
    """

    headers: dict[Path, Header]
    texts: dict[Path, str]
    without_functions: dict[Path, str]
    included: set[str] = field(default_factory=set)
    reasons: list[tuple[str, SourceError]] = field(default_factory=list)

    def replaced(self) -> dict[str, str]:
        """Return {name in an include: text} of the changed headers."""
        return {
            name: f'#line 1 "{file}"\n{self.texts[file]}'
            for file, header in self.headers.items()
            if file in self.texts
            for name in header.names
        }

    def remove(self, file: Path, found: list[Declaration]) -> None:
        functions = [one for one in found if one.kind == "function" and not one.constant]
        self.without_functions[file] = without(self.without_functions[file], functions)
        self.texts[file] = without(self.texts[file], found)


def _compile(
    path: Path,
    state: _Sources,
    macros: frozenset[str],
    compile_once: Callable[[str, Mapping[str, str]], Outcome],
    large: bool,
) -> Outcome:
    for _ in range(_ROUNDS):
        outcome = compile_once(state.texts[path], stand_ins(large, state.included) | state.replaced())
        if outcome.cubin is not None:
            return outcome
        removed: dict[Path, list[Declaration]] = {}
        for error in outcome.errors:
            file = path if error.file == path else error.file.resolve()
            if file not in state.texts and file in state.headers:
                state.texts[file] = state.without_functions[file] = _read(file)
            if file in state.texts and (found := _removable(state.texts[file], macros, error)):
                removed.setdefault(file, []).append(found)
                state.reasons.append((state.texts[file][found.start : found.stop], error))
        if not removed:
            break
        for file, found_there in removed.items():
            state.remove(file, found_there)
    return outcome


def _removable(text: str, macros: frozenset[str], error: SourceError) -> Declaration | None:
    lines = text.splitlines(keepends=True)
    if not 0 < error.line <= len(lines):
        return None
    start = sum(map(len, lines[: error.line - 1]))
    stop = start + len(lines[error.line - 1])
    if error.column is not None:
        start = min(start + error.column, stop - 1)
        stop = start + 1
    return removable_at(text, declarations(text, macros), start, stop)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
