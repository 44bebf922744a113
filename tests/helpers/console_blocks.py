"""Console blocks of a page: commands, and the lines of their output that the page quotes.

    % times within 5 %
    ```console
    $ gemmsim analyze --kernel tiled --size 128
    [...]
    time      : 13.4 us
    ```

A quoted line must appear in the output, spaces and bars aside. Counts are as quoted; after the comment what follows
from a time may differ by that much, and by one in the last digit: numbers with a point, percents, and cycles,
bandwidths and times without one.
`$ echo $?` quotes an exit status; that of every other command is 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"(?:^(?:% |<!-- )times within (\d+) %(?: -->)?\n+)?^```console\n(\$ gemmsim.*?)^```$", re.M | re.S)
_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_OF_TIME = re.compile(
    r"\s*(?:%|[mun]?s\b|cycles\b|of [\d,]+ GB/s|GB/s)"
)  # what follows a whole number that is no count
LEFT_OUT = "[...]"


@dataclass(frozen=True)
class Command:
    """words: the command line; tolerance: of times, 0.05 for 5 %; quoted: lines of what it prints."""

    line: str
    tolerance: float
    status: int
    quoted: tuple[str, ...]


def files_of(page: str) -> dict[str, str]:
    """Name -> text of the files that the page has its reader write."""
    return dict(_FILE.findall(page))


def commands_of(page: str) -> list[Command]:
    found = []
    for within, block in _BLOCK.findall(page):
        parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        for part, behind in zip(parts, [*parts[1:], ""], strict=True):
            line, _, printed = re.sub(r"\\\n\s*", "", part).partition("\n")
            if line == "echo $?":
                continue
            status = int(behind.split()[2]) if behind.startswith("echo $?") else 0
            quoted = tuple(text for text in printed.splitlines() if text.strip() not in ("", LEFT_OUT))
            found.append(Command(line, int(within or 0) / 100, status, quoted))
    return found


def missing(command: Command, printed: str) -> list[str]:
    """Quoted lines that are not in what was printed."""
    lines = [_parts(line) for line in printed.splitlines()]
    return [
        line for line in command.quoted if not any(_same(_parts(line), other, command.tolerance) for other in lines)
    ]


@dataclass(frozen=True)
class _Number:
    """A number, and one in its last digit; that is 0 for a count, which is exact."""

    value: float
    last: float


def _parts(line: str) -> tuple[list[str], list[_Number]]:
    """The words between numbers, and the numbers."""
    plain = re.sub(r"#+", "", line)
    words = [" ".join(part.split()) for part in _NUMBER.split(plain)]
    return words, [_number(found[0], plain[found.end() :]) for found in _NUMBER.finditer(plain)]


def _number(text: str, behind: str) -> _Number:
    digits, _, exponent = text.replace(",", "").partition("e")
    last = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return _Number(float(text.replace(",", "")), last if "." in text or _OF_TIME.match(behind) else 0.0)


def _same(quoted: tuple[list[str], list[_Number]], line: tuple[list[str], list[_Number]], tolerance: float) -> bool:
    if quoted[0] != line[0]:
        return False
    return all(
        abs(a.value - b.value) <= (tolerance * abs(a.value) + 1.001 * a.last if tolerance and a.last else 0.0)
        for a, b in zip(quoted[1], line[1], strict=True)
    )


def pages(root: Path) -> list[Path]:
    """Those that show commands."""
    candidates = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in candidates if commands_of(page.read_text(encoding="utf-8"))]
