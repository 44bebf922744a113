"""Notes what a walk through a period asks of the words, and what it does to them (`gemmsim.trace.steady.tapes`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Says of states, which import this module, whether a question has the answer that it had. The second argument says by
# which numbers words differ in other blocks now, by those when it was asked.
Question = Callable[[Any, dict[int, int]], bool]
# Raises NotProvedError as a walk does where a row has another answer
Otherwise = Callable[[Any], object]


class Tape:
    """What one walk has asked and done so far.

    rows       those of the compiled loop, see `tape_words`; columns that they lack are 0
    questions  (how many rows come before it, the question) of those that the compiled loop does not know
    moves      (instruction, bytes) by which addresses move in a period; None where the access is on the chip
    otherwise  what raises NotProvedError as a walk does, by the rows whose answer is then another
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.questions: list[tuple[int, Question]] = []
        self.moves: list[tuple[int | None, int]] = []
        self.otherwise: dict[int, Otherwise] = {}

    def note(self, kind: int, at: int, mask: int, *answers: int, otherwise: Otherwise | None = None) -> None:
        """Note a row. `otherwise` raises NotProvedError as a walk does where the answer is another."""
        if otherwise is not None:
            self.otherwise[len(self.rows)] = otherwise
        self.rows.append((kind, at, mask, *answers))

    def ask(self, question: Question) -> None:
        self.questions.append((len(self.rows), question))

    def ask_instead(self, rows: int, question: Question) -> None:
        """Let one question stand for all that was noted behind so many rows."""
        del self.rows[rows:]
        self.otherwise = {row: what for row, what in self.otherwise.items() if row < rows}
        self.ask(question)
