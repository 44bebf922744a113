"""Draws one access of a warp in ASCII: which lane touches which sector, or which bank serves which lane."""

from __future__ import annotations

from gemmsim.analysis.accesses.types import AccessSample, ArrayArgument, WarpAccess
from gemmsim.memory.requests.banks import BANKS
from gemmsim.support.plurals import plural
from gemmsim.support.warp import WARP_LANES

WIDTH = 74  # leaves room for the indentation below a heading
MOST_ROWS = 12
_WORD_BYTES = 4


def draw(sample: AccessSample, arrays: tuple[ArrayArgument, ...] = (), worst: bool = True) -> list[str]:
    """Draw one access of a sample below a heading, in lines of at most 74 columns.

    arrays  the launch's arrays, so that elements can be named
    worst   whether to draw the sample's worst access; else its most frequent one is drawn
    """
    access = sample.worst if worst else sample.representative
    active = sum(address is not None for address in access.addresses)
    who = f"{plural(active, 'lane')}, warp {access.warp} of block {access.block}"
    if sample.space == "shared":
        cost = f"{plural(access.wavefronts, 'wavefront')}, {plural(access.conflicts, 'bank conflict')}"
        body = _banks(sample, access)
    else:
        cost = f"{plural(access.sectors, 'sector')}, {access.ideal_sectors} would do"
        body = _sectors(access, {array.position: array for array in arrays})
    return [_cut(f"{sample.mnemonic}, {who}: {cost}"), *body]


def _sectors(access: WarpAccess, arrays: dict[int, ArrayArgument]) -> list[str]:
    """Return a line for each sector, which shows the lanes that touch it and the array elements that lie in it."""
    array = arrays.get(access.argument) if access.argument is not None else None
    rows = []
    for number, address in enumerate(access.sector_addresses):
        lanes = [lane for lane in range(WARP_LANES) if access.sector[lane] == number]
        marks = "".join("#" if lane in lanes else "." for lane in range(WARP_LANES))
        offset = address - access.sector_addresses[0]
        rows.append(_cut(f"sector +{offset:<#9x} |{marks}| {_elements(access, array, lanes)}".rstrip()))
    ruler = "lane".rjust(18) + " 0       8       16      24"
    return [ruler, *_shortened(rows, "sectors")]


def _elements(access: WarpAccess, array: ArrayArgument | None, lanes: list[int]) -> str:
    if array is None or not access.elements:
        return ""
    found = [e for e in (access.elements[lane] for lane in lanes) if e is not None]
    if not found:
        return ""
    names = [f"{array.name}[{','.join(map(str, e))}]" for e in (found[0], found[-1])]
    return names[0] if names[0] == names[1] else f"{names[0]} .. {names[1]}"


def _banks(sample: AccessSample, access: WarpAccess) -> list[str]:
    """Return a line for each wavefront, with a column for each bank: the lane served, ** where several share a word."""
    words = max(1, sample.width_bytes // _WORD_BYTES)
    rows = []
    for number in sorted({wavefront for wavefront in access.wavefront if wavefront >= 0}):
        cells = [".."] * BANKS
        for lane in range(WARP_LANES):
            if access.wavefront[lane] != number:
                continue
            for word in range(words):
                bank = (access.bank[lane] + word) % BANKS
                cells[bank] = f"{lane:2}" if cells[bank] == ".." else "**"
        rows.append(f"wave {number:>2} |{''.join(cells)}|")
    ruler = "bank".rjust(7) + "  " + "".join(f"{bank:<8}" for bank in range(0, BANKS, 4)).rstrip()
    return [
        ruler,
        *_shortened(rows, "wavefronts"),
        "cells: the lane served from that bank, ** several lanes, .. none",
    ]


def _shortened(rows: list[str], what: str) -> list[str]:
    if len(rows) <= MOST_ROWS:
        return rows
    shown = MOST_ROWS - 1
    return [*rows[:shown], f"... and {len(rows) - shown} {what} more"]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 2].rstrip() + ".."
