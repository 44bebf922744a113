"""DRAM sectors: what L2 could not keep.

Reads are the sectors that L2 missed; writes the dirty ones it had to replace. What is still dirty when the kernel ends
stays in L2 and is not written during the launch, so it is in no counter of it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DramTraffic:
    """Of the whole launch, in 32-byte sectors."""

    read_sectors: float
    write_sectors: float
