"""Finds the files of a user's own that a C++ source includes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_FOLDER_OPTIONS = ("-I", "--include-path", "-isystem", "--system-include")


@dataclass(frozen=True)
class Header:
    """A header: its path, and the names by which includes find it."""

    path: Path
    names: tuple[str, ...]


def included_names(text: str) -> set[str]:
    """Return the names in the text's includes, in quotes or angle brackets."""
    return {quoted or angled for quoted, angled in _INCLUDE.findall(text)}


def include_folders(options: Sequence[str]) -> tuple[Path, ...]:
    """Return the folders that options of NVRTC or nvcc name: `-Ifolder`, `-I folder`, `--include-path=folder`."""
    folders, words = [], iter(options)
    for word in words:
        for option in _FOLDER_OPTIONS:
            if word == option:
                folders.append(Path(next(words, ".")))
                break
            if word.startswith(option):
                folders.append(Path(word[len(option) :].removeprefix("=")))
                break
    return tuple(folders)


def user_headers(text: str, path: Path, folders: Iterable[Path]) -> tuple[Header, ...]:
    """Return the headers that a source in the file `path` includes, directly or not, sorted by path.

    They are looked for in the folder of the file that includes them, for names in quotes, and in `folders`. A header
    that is in none of these belongs to a tool and is left out. Conditions are not looked at, so that a header counts
    even where an `#if` leaves it out.
    """
    names: dict[Path, set[str]] = {}
    waiting, searched = [(text, path.parent)], tuple(folders)
    while waiting:
        current, place = waiting.pop()
        for quoted, angled in _INCLUDE.findall(current):
            name = quoted or angled
            for folder in (place, *searched) if quoted else searched:
                file = (folder / name).resolve()
                if file.is_file() and file != path:
                    if file not in names:
                        waiting.append((file.read_text(encoding="utf-8", errors="replace"), file.parent))
                    names.setdefault(file, set()).add(name)
                    break
    return tuple(Header(file, tuple(sorted(found))) for file, found in sorted(names.items()))
