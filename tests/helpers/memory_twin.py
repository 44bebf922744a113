"""The memory models once more, slow and readable: what the fast ones must equal."""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from l2_twin import L2Half, Request, run_l2

from gemmsim.isa.program import Program
from gemmsim.memory.requests.access import access_of
from gemmsim.trace.types import WarpTrace

Lanes = list[int | None]


def sectors(lanes: Lanes) -> list[int]:
    return sorted({a // 32 for a in lanes if a is not None})


def lines(lanes: Lanes) -> list[int]:
    return sorted({a // 128 for a in lanes if a is not None})


def packets(lanes: Lanes) -> list[set[int]]:
    """What an atomic operation sends to L2: the addresses in each of its packets."""
    sent, open_packet = [], {}
    for address in lanes:
        if address is None:
            continue
        line = address // 128
        if line not in open_packet or address in open_packet[line]:
            open_packet[line] = set()
            sent.append(open_packet[line])
        open_packet[line].add(address)
    return sent


def sectors_of_packets(lanes: Lanes) -> int:
    return sum(len({address // 32 for address in packet}) for packet in packets(lanes))


def used_bytes(lanes: Lanes, width: int) -> int:
    return len({a + i for a in lanes if a is not None for i in range(width)})


def wavefronts(lanes: Lanes, width: int, merges: bool) -> int:
    groups = {8: 2, 16: 4}.get(width, 1)
    total = sum(passes(group, width) for group in split(lanes, groups))
    if merges and groups > 1 and (shares_with(lanes, 1) or shares_with(lanes, 2)):
        merged = [passes(group, width) for group in split(lanes, groups // 2)]
        if max(merged) <= 1:
            return sum(merged)
    return total


def split(lanes: Lanes, groups: int) -> list[Lanes]:
    size = len(lanes) // groups
    return [lanes[i : i + size] for i in range(0, len(lanes), size)]


def passes(lanes: Lanes, width: int) -> int:
    words = {(a + i) // 4 for a in lanes if a is not None for i in range(width)}
    banks = Counter(word % 32 for word in words)
    return max(banks.values(), default=0)


def shares_with(lanes: Lanes, step: int) -> bool:
    return all(a is None or lanes[i ^ step] in (None, a) for i, a in enumerate(lanes))


L1Numbers = tuple[int, int, int, int, Sequence[int], int, Sequence[int]]  # as of L1Cache


@dataclass
class Line:
    valid: set[int]
    turn: int  # in which it came
    number: int  # of the look-up that brought it
    kept: bool = False


class L1Cache:
    """Sets of lines in order of use, the most recent last; each bank of sets has room for fewer lines than it has tags.

    A line is under way in the turn in which it comes, for `fetch_lookups` look-ups. `flips`: which bits of a set's
    number each bit of a line's number inverts. `lost`: how many lines a full bank loses at a hit, at a line that takes
    another one's place and at one that finds a tag to spare.
    """

    def __init__(
        self,
        size_bytes: int,
        unified_bytes: int,
        ways: int,
        fetch_lookups: int,
        flips: Sequence[int],
        spare_lines: int,
        lost: Sequence[int],
    ) -> None:
        self.ways, self.fetch_lookups, self.flips, self.lost = ways, fetch_lookups, flips, lost
        self.number = self.turn = 0
        count = 1
        while count * ways * 128 < unified_bytes:
            count *= 2
        self.sets: list[OrderedDict[int, Line]] = [OrderedDict() for _ in range(count)]
        self.banks = [self.sets[bank::4] for bank in range(min(4, count))]
        self.hands = [0] * len(self.banks)
        self.room = size_bytes // 128 // len(self.banks)
        self.full = max(1, self.room - spare_lines, self.room * 3 // 4)

    def set_number(self, line: int) -> int:
        number = 0
        for bit, flipped in enumerate(self.flips):
            if line >> bit & 1:
                number ^= flipped
        return number % len(self.sets)

    def under_way(self, line: Line) -> bool:
        return line.turn == self.turn and self.number - line.number < self.fetch_lookups

    def victim(self, of_set: OrderedDict[int, Line]) -> int:
        there = [number for number, line in of_set.items() if not self.under_way(line)]
        others = [number for number in there if not of_set[number].kept]
        return next(iter(others or there or of_set))

    def lose(self, bank: int, lines: int, coming: int = 0) -> None:
        """The hand of a bank goes to so many sets that have lines. A set whose lines are all under way loses none, if
        there is room for them and for those that are coming."""
        sets = self.banks[bank]
        while lines and any(sets):
            of_set = sets[self.hands[bank] % len(sets)]
            self.hands[bank] += 1
            if of_set:
                lines -= 1
                victim = self.victim(of_set)
                if not self.under_way(of_set[victim]) or sum(map(len, sets)) + coming > self.room:
                    del of_set[victim]

    def use_again(self, of_set: OrderedDict[int, Line], line: int) -> None:
        of_set[line].kept = True
        kept = [number for number in of_set if of_set[number].kept]
        if 2 * len(kept) > self.ways:
            of_set[kept[0]].kept = False
            of_set.move_to_end(kept[0])

    def look_up(self, op: str, line: int, wanted: list[int], whole: list[int], turn: int) -> list[int]:
        """Sectors that miss. `whole`: those of which all bytes are asked for."""
        if self.room == 0 or op in ("atom", "red", "past"):
            return wanted
        self.number, self.turn = self.number + 1, turn
        number = self.set_number(line)
        of_set, bank = self.sets[number], number % len(self.banks)
        known = line in of_set
        lost = 0
        if sum(map(len, self.banks[bank])) >= self.full:
            lost = self.lost[0 if known else 1 if len(of_set) == self.ways else 2]
        if not known:
            if len(of_set) == self.ways:
                del of_set[self.victim(of_set)]
            elif lost:
                self.lose(bank, 1, coming=1)
                lost -= 1
            of_set[line] = Line(set(), turn, self.number)
        of_set.move_to_end(line)
        if known and not self.under_way(of_set[line]):
            self.use_again(of_set, line)
        valid = of_set[line].valid
        missing = [s for s in wanted if s not in valid]
        valid.update(whole if op == "st" else wanted)
        self.lose(bank, lost)
        return ([] if known else wanted) if op == "st" else missing


def replay(
    program: Program,
    trace: WarpTrace,
    place: Mapping[int, tuple[int, int]],
    l1: L1Numbers,
    l2: tuple[int, int],
    resident: int,
    warm: bool = False,
    near: Sequence[int] = (0,) * 99,
    partitions: int = 1,
    lines_of_set: tuple[int, int] = (99, 1),
) -> tuple[list[int], list[int], int]:
    """Sectors of each record that hit L1, and that DRAM read for it; dirty sectors that L2 gave to DRAM.

    place: (SM, generation) of each block. l1: as of L1Cache. l2: bytes, ways. resident: places of an SM. warm:
    L2 begins as the launch leaves it; its hits and misses are those of the second time. near: the partition of L2 that
    each SM is near to. lines_of_set: how many lines of a set of L2 may be dirty, and how many are for what is evicted
    first.
    """
    hits = [0] * len(trace.record_pc)
    waves: dict[int, dict[int, list[int]]] = {}
    for row, block in sorted(enumerate(trace.blocks.tolist()), key=lambda x: x[1]):
        sm, generation = place[block]
        waves.setdefault(sm, {}).setdefault(generation, []).append(row)
    requests = []  # of each SM in use, in order
    for sm in sorted(waves):
        generations = [waves[sm].get(g, []) for g in range(max(waves[sm]) + 1)]
        requests.append(run_sm(program, trace, generations, resident, L1Cache(*l1), hits))
    halves = [L2Half(l2[0] // partitions, l2[1]) for _ in range(partitions)]
    for _ in range(2 if warm else 1):
        for half in halves:
            half.written_back = 0
        missed = run_l2(requests, halves, [near[sm] for sm in sorted(waves)], len(hits), lines_of_set)
    return hits, missed, sum(half.written_back for half in halves)


def run_sm(
    program: Program,
    trace: WarpTrace,
    generations: list[list[int]],
    resident: int,
    cache: L1Cache,
    hits: list[int],
) -> list[Request]:
    """Each place runs a block of each generation; those of the second wait until their place is due."""
    turns: list[list[list[int]]] = [[] for _ in range(resident)]  # of each place, turn by turn: records
    for generation, rows in enumerate(generations):
        for place, row in enumerate(rows):
            warps = [through_l1(program, trace, row * trace.warps_per_block + w) for w in range(trace.warps_per_block)]
            longest = max((len(warp) for warp in warps), default=0)
            if generation == 1:
                turns[place] += [[]] * int(place / resident * longest)
            turns[place] += [[warp[turn] for warp in warps if turn < len(warp)] for turn in range(max(longest, 1))]
    out = []
    for turn, at_once in enumerate(itertools.zip_longest(*turns, fillvalue=[])):
        for record in itertools.chain(*at_once):
            access = access_of(program.instructions[trace.record_pc[record]])
            assert access is not None
            lanes = lanes_of(trace, record)
            for line in lines(lanes):
                wanted = [s for s in sectors(lanes) if s // 4 == line]
                op = "past" if access.bypasses else access.op
                whole = [s for s in wanted if len(bytes_of(lanes, access.width_bytes, s)) == 32]
                missing = cache.look_up(op, line, wanted, whole, turn)
                hits[record] += len(wanted) - len(missing)
                to_l2 = missing if access.op in ("ld", "ldgsts") else wanted
                if to_l2:
                    out.append((access.op, line, to_l2, record, access.evict_first))
    return out


def bytes_of(lanes: Lanes, width: int, sector: int) -> set[int]:
    """Bytes of a sector that an access touches."""
    return {a + i for a in lanes if a is not None for i in range(width) if (a + i) // 32 == sector}


def through_l1(program: Program, trace: WarpTrace, warp: int) -> list[int]:
    records = range(trace.record_start[warp], trace.record_start[warp + 1])
    accesses = {r: access_of(program.instructions[trace.record_pc[r]]) for r in records}
    return [r for r, access in accesses.items() if access and access.space != "shared"]


def lanes_of(trace: WarpTrace, record: int) -> Lanes:
    pattern = trace.record_pattern[record]
    base = int(trace.record_base[record])
    mask = int(trace.patterns.active_mask[pattern])
    offsets = trace.patterns.offsets_bytes[pattern].tolist()
    return [base + offset if mask >> lane & 1 else None for lane, offset in enumerate(offsets)]
