"""Defines what a trace says of asynchronous copies (LDGSTS), beside what they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Copies:
    """What each memory record has of an asynchronous copy (LDGSTS), beside what it reads: arrays [records], 0 for
    others.

    conflicts  uint8 wavefronts that bank conflicts add where it writes to shared memory
    again      uint8 sectors that L2 sends for it once more; of copies past L1
    asked      uint8 lines that it asks L2 for, some of them more than once; of copies past L1
    counted    int8 how many sectors more L1 counts for it than it touches, or fewer; of copies past L1
    zeros      bool whether it reads nothing: its record is of the shared addresses where it writes zeros
    """

    conflicts: NDArray[np.uint8]
    again: NDArray[np.uint8]
    asked: NDArray[np.uint8]
    counted: NDArray[np.int8]
    zeros: NDArray[np.bool_]
