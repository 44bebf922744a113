"""An mbarrier as the PTX ISA describes it, to hold the executor's against."""

from __future__ import annotations

from dataclasses import dataclass

COUNT = (1 << 20) - 1


@dataclass
class Mbarrier:
    """`expected` arrivals a phase, `pending` of them missing, `tx` bytes expected and not come, completed phases."""

    expected: int
    pending: int = -1
    tx: int = 0
    phase: int = 0

    def __post_init__(self) -> None:
        self.pending = self.expected if self.pending < 0 else self.pending

    def arrive(self, count: int = 1, expect: int = 0, drop: bool = False) -> None:
        self.tx += expect
        self.expected -= count if drop else 0
        self.pending -= count
        self._end()

    def complete(self, count: int) -> None:
        self.tx -= count
        self._end()

    def _end(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected

    @property
    def words(self) -> tuple[int, int]:
        """The low and the high word, with the fields where the compiler's code puts and reads them."""
        tx = self.tx & ((1 << 22) - 1)
        whole = (-self.expected & COUNT) << 1 | tx << 21 | (-self.pending & COUNT) << 43 | (self.phase & 1) << 63
        return whole & 0xFFFFFFFF, whole >> 32
