"""Writes the accesses of a Report in few bytes: lists of numbers that recur (offsets, banks, ...) are stored once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gemmsim.analysis.accesses.types import AccessSample, ArrayArgument, BlockView, ThreadAccess, WarpAccess
from gemmsim.report.report import Report


class Lists:
    """Distinct lists of numbers. `add` returns the index of a list, and stores the list where it is new."""

    def __init__(self) -> None:
        self.rows: list[list[int | None]] = []
        self._known: dict[tuple[int | None, ...], int] = {}

    def add(self, row: Iterable[int | None]) -> int:
        key = tuple(row)
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(list(key))
        return self._known[key]


def sample_data(sample: AccessSample, report: Report, lists: Lists) -> dict[str, Any]:
    arrays = {array.position: array for array in report.block_view.arrays} if report.block_view else {}
    same = sample.worst is sample.representative
    return {
        "index": sample.index,
        "mnemonic": sample.mnemonic,
        "line": sample.line.line if sample.line else None,
        "text": sample.text,
        "space": sample.space,
        "op": sample.op,
        "width": sample.width_bytes,
        "shapes": sample.shapes,
        "share": sample.share,
        "representative": _access(sample.representative, arrays, lists),
        "worst": None if same else _access(sample.worst, arrays, lists),
    }


def _access(access: WarpAccess, arrays: dict[int, ArrayArgument], lists: Lists) -> dict[str, Any]:
    """Return one access of a warp in the form that the page's script reads.

    Addresses and sectors are counted from the lowest address, rounded down to 128 bytes, and elements from the lowest
    element, so that more lists are equal. None stands for an inactive lane.
    """
    base = min(address for address in access.addresses if address is not None)
    base -= base % 128
    array = arrays.get(access.argument) if access.argument is not None else None
    elements = [None if e is None or array is None else _linear(e, array) for e in access.elements]
    first = min((e for e in elements if e is not None), default=0)
    return {
        "block": access.block,
        "warp": access.warp,
        "execution": access.execution,
        "base": base,
        "offsets": lists.add(None if a is None else a - base for a in access.addresses),
        "sectors": access.sectors,
        "ideal": access.ideal_sectors,
        "wavefronts": access.wavefronts,
        "conflicts": access.conflicts,
        "sector_at": lists.add(address - base for address in access.sector_addresses),
        "sector": lists.add(access.sector),
        "bank": lists.add(access.bank),
        "wavefront": lists.add(access.wavefront),
        "argument": access.argument,
        "first": first,
        "elements": lists.add(None if e is None else e - first for e in elements),
    }


def _linear(index: Sequence[int], array: ArrayArgument) -> int:
    return int(np.ravel_multi_index(tuple(index), array.shape))


def block_data(view: BlockView, lists: Lists, with_threads: bool) -> dict[str, Any]:
    return {
        "block": view.block,
        "place": view.place,
        "iterations": view.iterations,
        "arrays": [
            {"position": a.position, "name": a.name, "dtype": a.dtype, "shape": a.shape, "item": a.item_bytes}
            for a in view.arrays
        ],
        "threads": [_thread(access, lists) for access in view.threads] if with_threads else [],
        "phases": [
            {"label": p.label, "parts": [[r.argument, r.op, *r.rows, *r.columns] for r in p.rectangles]}
            for p in view.phases
        ],
    }


def _thread(access: ThreadAccess, lists: Lists) -> dict[str, Any]:
    """Return what the threads of a block access by one instruction, in the form that the page's script reads.

    "warps" has one entry a warp: 0 if the warp never made the access, else [base, index, executions]. `base` is the
    lowest element or address that a lane accesses, `index` says which list of `lists` holds each lane's distance from
    `base`, and `executions` is how often the warp executes the instruction.
    """
    warps: list[Any] = []
    for row, times in zip(access.first.tolist(), access.accesses.tolist(), strict=True):
        here = [value for value in row if value >= 0]
        if not here:
            warps.append(0)
            continue
        base = min(here)
        warps.append([base, lists.add(None if value < 0 else value - base for value in row), times])
    return {"index": access.index, "argument": access.argument, "warps": warps}
