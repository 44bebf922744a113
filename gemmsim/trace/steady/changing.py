"""Remembers which rows may be others in other blocks where a period begins, though they are not at first.

A walk finds rows that become others behind the period, and must then be taken again with these from its beginning on,
until it finds no more. Any rows will do with which it finds no more: so those of a neighbouring instruction are tried,
and one walk is enough where a loop is cut at another instruction in each tile.
"""

from __future__ import annotations


class Changing:
    """Those of one leader, by the first instruction of the period."""

    def __init__(self) -> None:
        self._rows: dict[int, set[int]] = {}
        self._tried: set[int] = set()  # instructions whose rows were found at another one

    def begin(self) -> None:
        """Forget all, as another leader begins."""
        self._rows.clear()
        self._tried.clear()

    def at(self, instruction: int) -> set[int]:
        """Return the rows with which a walk is to begin, to which it adds those that it finds."""
        if instruction not in self._rows:
            nearest = min(self._rows, key=lambda other: abs(other - instruction), default=instruction)
            self._rows[instruction] = set(self._rows.get(nearest, ()))
            if self._rows[instruction]:
                self._tried.add(instruction)
        return self._rows[instruction]

    def gives_up(self, instruction: int) -> bool:
        """Note that nothing is proved; return whether it is to be tried again, as fewer rows may do."""
        if instruction not in self._tried:
            return False
        self._tried.remove(instruction)
        self._rows[instruction].clear()
        return True
