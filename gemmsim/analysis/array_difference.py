"""Says where two arrays differ: the first element and the one farthest off, how many, and by how much at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.plurals import verb


@dataclass(frozen=True, slots=True)
class Element:
    """An element that differs: its index, and the values there."""

    index: tuple[int, ...]
    got: float
    wanted: float

    def sentence(self, name: str) -> str:
        """Return "D[3,17] is 1.5, 1.25 was wanted"."""
        at = ",".join(map(str, self.index))
        return f"{name}[{at}] is {self.got:.9g}, {self.wanted:.9g} was wanted"


@dataclass(frozen=True, slots=True)
class Difference:
    """How an array differs from what was wanted, over the elements that were compared.

    compared        number of elements compared
    wrong           number of them that differ by more than is allowed
    first           the first of these, None where there is none
    farthest        the one of these that differs most
    relative_error  largest |got - wanted| / largest |wanted|, where both are finite; inf where an infinity or NaN is
                    on one side only
    """

    compared: int = 0
    wrong: int = 0
    first: Element | None = None
    farthest: Element | None = None
    relative_error: float = 0.0

    def sentence(self, name: str) -> str:
        """Return "D[3,17] is 1.5, 1.25 was wanted; 12 of 4096 elements differ, relative error 2.0e-01; farthest off:
        D[5,0] is 0.25, 2 was wanted"."""
        assert self.first is not None
        differ = f"{self.wrong} of {self.compared} elements {verb(self.wrong, 'differs', 'differ')}"
        error = f"relative error {self.relative_error:.1e}"
        return f"{self.first.sentence(name)}; {differ}, {error}{farthest_off(name, self.first, self.farthest)}"


def farthest_off(name: str, first: Element, farthest: Element | None) -> str:
    """Say where the error is largest, which tells more than the first wrong element; "" where it is that one."""
    return "" if farthest is None or farthest.index == first.index else f"; farthest off: {farthest.sentence(name)}"


def never_stored(name: str, stored: NDArray[np.bool_]) -> str:
    """Return "2 of 30 elements of C were never stored; the first: C[3,1]"."""
    missing = int((~stored).sum())
    first = ",".join(map(str, np.argwhere(~stored)[0].tolist()))
    were = f"{missing} of {stored.size} elements of {name} {verb(missing, 'was', 'were')}"
    return f"{were} never stored; the first: {name}[{first}]"


class Differences:
    """Collects the difference of an array that is compared in parts."""

    def __init__(self) -> None:
        self.compared = self.wrong = 0
        self.first: Element | None = None
        self.farthest: Element | None = None
        self.most = -1.0  # the error there
        self.worst = self.scale = 0.0

    def add(
        self,
        got: NDArray[np.float64],
        wanted: NDArray[np.float64],
        allowed: NDArray[np.float64],
        compared: NDArray[np.bool_],
        place: tuple[NDArray[np.int64], ...],
    ) -> None:
        """Compare a part. NaN equals NaN, and infinity equals infinity of the same sign.

        got, wanted, allowed  float64, what is there, what should be, and the largest difference allowed; all of one
                              shape
        compared              bool, which elements are compared
        place                 for each dimension of the part the index in the whole array of each place
        """
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(got - wanted)
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        finite = np.isfinite(got) & np.isfinite(wanted)
        error = np.where(same, 0.0, np.where(finite, error, np.inf))
        wrong = compared & ~(same | (finite & (error <= allowed)))  # else a wanted infinity would allow all
        self.compared += int(compared.sum())
        self.wrong += int(wrong.sum())
        self.worst = max(self.worst, float(error[compared].max(initial=0.0)))
        self.scale = max(self.scale, float(np.abs(wanted[compared & np.isfinite(wanted)]).max(initial=0.0)))
        if wrong.any():
            off = np.where(wrong, error, -1.0)
            first, farthest = (self._element(flat, got, wanted, place) for flat in (wrong.argmax(), off.argmax()))
            if self.first is None or first.index < self.first.index:
                self.first = first
            if float(off.max()) > self.most:
                self.farthest, self.most = farthest, float(off.max())

    @staticmethod
    def _element(
        flat: np.int64, got: NDArray[np.float64], wanted: NDArray[np.float64], place: tuple[NDArray[np.int64], ...]
    ) -> Element:
        at = np.unravel_index(flat, got.shape)
        index = tuple(int(axis[i]) for axis, i in zip(place, at, strict=True))
        return Element(index, float(got[at]), float(wanted[at]))

    def found(self) -> Difference:
        """Return the difference of all parts together."""
        relative = self.worst / self.scale if self.scale else self.worst
        return Difference(self.compared, self.wrong, self.first, self.farthest, relative)
