"""Reads a short text from left to right, the common part of readers of one notation or another."""

from __future__ import annotations

import re

from gemmsim.support.errors import GemmsimError

_INTEGER = re.compile(r"0[xX][0-9a-fA-F]{1,16}\b|[0-9]{1,18}\b")  # what fits 64 bits


class TextReader:
    """Holds a text and how far it was read.

    text  the text, without spaces around it
    what  how messages begin
    at    index of the next character
    """

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what, self.at = text.strip(), what, 0

    def malformed(self, why: str) -> GemmsimError:
        return GemmsimError(f"{self.what} is malformed: {why}")

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what the pattern matches here, and the spaces behind it."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
            self.spaces()
        return match

    def spaces(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def sign(self, sign: str) -> bool:
        """Read `sign`, where it stands here; say whether it does."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        self.spaces()
        return True

    def need(self, sign: str, where: str) -> None:
        if not self.sign(sign):
            raise self.malformed(f"'{sign}' is missing {where}")

    def integer(self, where: str) -> int:
        match = self.take(_INTEGER)
        if match is None:
            raise self.malformed(f"expected an integer {where}")
        return int(match[0], 0)
