"""Console blocks of a page: commands, and the lines of their output that the page quotes.

    % numbers within 30 %
    ```console
    $ gemmsim analyze --kernel tiled --size 128
    [...]
    time      : 13.4 us
    ```

A quoted line must appear in the output, spaces and bars aside; after the comment its numbers may differ by that much.
`$ echo $?` quotes an exit status; that of every other command is 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^(?:% |<!-- )numbers within (\d+) %(?: -->)?\n+)?^```console\n(\$ gemmsim.*?)^```$", re.M | re.S
)
_FILE = re.compile(r"^`([^`\n]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
LEFT_OUT = "[...]"


@dataclass(frozen=True)
class Command:
    """words: the command line; tolerance: of the numbers, 0.3 for 30 %; quoted: lines of what it prints."""

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


def _parts(line: str) -> tuple[list[str], list[float]]:
    """The words between numbers, and the numbers."""
    plain = re.sub(r"#+", "", line)
    words = [" ".join(part.split()) for part in _NUMBER.split(plain)]
    return words, [float(number.replace(",", "")) for number in _NUMBER.findall(plain)]


def _same(quoted: tuple[list[str], list[float]], line: tuple[list[str], list[float]], tolerance: float) -> bool:
    if quoted[0] != line[0]:
        return False
    return all(abs(a - b) <= tolerance * abs(a) for a, b in zip(quoted[1], line[1], strict=True))


def pages(root: Path) -> list[Path]:
    """Those that show commands."""
    candidates = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in candidates if commands_of(page.read_text(encoding="utf-8"))]
