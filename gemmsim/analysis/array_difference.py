"""Says where two arrays differ: the first element, how many, and by how much at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Difference:
    """How an array differs from what was wanted, over the elements that were compared.

    compared        number of elements compared
    wrong           number of them that differ by more than is allowed
    first           index of the first of these, () where there is none
    got, wanted     the values there
    relative_error  largest |got - wanted| / largest |wanted|, where both are finite; inf where an infinity or NaN is
                    on one side only
    """

    compared: int = 0
    wrong: int = 0
    first: tuple[int, ...] = ()
    got: float = 0.0
    wanted: float = 0.0
    relative_error: float = 0.0

    def sentence(self, name: str) -> str:
        """Return "D[3,17] is 1.5, 1.25 was wanted; 12 of 4096 elements differ, relative error 2.0e-01"."""
        at = ",".join(map(str, self.first))
        differ = f"{self.wrong} of {self.compared} elements differ"
        return (
            f"{name}[{at}] is {self.got:.9g}, {self.wanted:.9g} was wanted; {differ}, "
            f"relative error {self.relative_error:.1e}"
        )


class Differences:
    """Collects the difference of an array that is compared in parts."""

    def __init__(self) -> None:
        self.compared = self.wrong = 0
        self.first: tuple[tuple[int, ...], float, float] | None = None
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
        wrong = compared & ~(same | (error <= allowed))
        self.compared += int(compared.sum())
        self.wrong += int(wrong.sum())
        self.worst = max(self.worst, float(error[compared].max(initial=0.0)))
        self.scale = max(self.scale, float(np.abs(wanted[compared & np.isfinite(wanted)]).max(initial=0.0)))
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0].tolist())
            index = tuple(int(axis[i]) for axis, i in zip(place, at, strict=True))
            if self.first is None or index < self.first[0]:
                self.first = index, float(got[at]), float(wanted[at])

    def found(self) -> Difference:
        """Return the difference of all parts together."""
        index, got, wanted = self.first or ((), 0.0, 0.0)
        relative = self.worst / self.scale if self.scale else self.worst
        return Difference(self.compared, self.wrong, index, got, wanted, relative)
