"""L2 once more, slow and readable: what its replay must equal."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

Request = tuple[str, int, list[int], int, bool]  # op, line, sectors, record, whether it is evicted first


class L2Half:
    """A partition of L2: its sets are lists of lines, the most recent first, with None for each way that is empty.
    Neighbouring lines fall into all sets evenly. `written_back` counts sectors that DRAM was given."""

    def __init__(self, size_bytes: int, ways: int) -> None:
        count = max(1, size_bytes // (128 * ways))
        self.sets: list[list[L2Line | None]] = [[None] * ways for _ in range(count)]
        self.written_back = 0

    def set_of(self, line: int) -> list[L2Line | None]:
        return self.sets[(line * 0x9E3779B97F4A7C15 % 2**64 >> 32) * len(self.sets) >> 32]

    def find(self, line: int) -> L2Line | None:
        return next((found for found in self.set_of(line) if found and found.number == line), None)

    def use(self, line: int, second: bool, first: int) -> L2Line:
        """The line, now the most recent, or (`second`) next to it. first: it is replaced before others, and new
        ones like it take the room of others while they are fewer than so many; 0: it is not."""
        of_set, known = self.set_of(line), self.find(line)
        place = of_set.index(known) if known else len(of_set) - 1
        if not known and first and None not in of_set:
            of_them = [found for found in of_set if found and found.first]
            if len(of_them) < first:
                place -= len(of_them)
        old = of_set.pop(place)
        if not known and old:
            self.clean(old)
        used = known or L2Line(line, {})
        others = [found for found in of_set if found and not found.first]
        to = len(others) if first else min(place, 1 if second and others else 0)
        of_set.insert(to, used)
        used.first = first > 0
        return used

    def clean(self, line: L2Line) -> None:
        self.written_back += sum(line.sectors.values())
        line.sectors = dict.fromkeys(line.sectors, False)

    def clean_oldest(self, line: int, most: int) -> None:
        """Where more lines of the set are dirty than `most`, write the one that was used longest ago."""
        dirty = [found for found in self.set_of(line) if found and any(found.sectors.values())]
        if len(dirty) > most:
            self.clean(dirty[-1])


@dataclass(eq=False)
class L2Line:
    number: int
    sectors: dict[int, bool]  # sector: dirty
    first: bool = False


def home_of(line: int, partitions: int) -> int:
    mixed = (line ^ line >> 33) * 0xFF51AFD7ED558CCD % 2**64
    mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 % 2**64
    return (mixed >> 59) % partitions


def run_l2(
    requests: list[list[Request]],
    halves: list[L2Half],
    near: list[int],
    records: int,
    lines_of_set: tuple[int, int],
) -> list[int]:
    """Sectors of each record that DRAM read."""
    missed = [0] * records
    most_dirty, most_first = lines_of_set
    step = next(n for n in itertools.count(len(requests) * 618 // 1000 + 1) if math.gcd(n, len(requests)) == 1)
    for turn in range(max((len(r) for r in requests), default=0)):
        order = [(turn + i * step) % len(requests) for i in range(len(requests))]
        for sm, (op, line, wanted, record, first) in [
            (sm, requests[sm][turn]) for sm in order if turn < len(requests[sm])
        ]:
            home, close = halves[home_of(line, len(halves))], halves[near[sm]]
            reads, far = op in ("ld", "ldgsts"), halves[near[sm]] is not home
            needed = wanted
            copy = close.find(line) if reads and far else None
            if copy:
                needed = [s for s in wanted if s not in copy.sectors]
                if not needed:
                    close.use(line, False, most_first if first else 0)
                    continue
            copies = far and (reads or (op == "st" and not first))
            lines_first = most_first if first and reads else 0
            state = home.use(line, copies, lines_first).sectors
            if op != "st":
                missed[record] += sum(s not in state for s in needed)
            for s in needed:
                state[s] = state.get(s, False) or not reads
            if any(state.values()):
                home.clean_oldest(line, most_dirty)
            if copies:
                state = close.use(line, False, lines_first).sectors
                state.update(dict.fromkeys(needed, False))
    return missed
