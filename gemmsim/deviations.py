"""Effects that no model here covers yet: printed with every report, explained in validate/deviations.md."""

from __future__ import annotations

NOT_MODELLED = (
    "instruction and constant cache misses",
    "TLB misses, and L2 near and far partitions",
    "the merging of requests between SMs on their way to L2 (Hopper)",
    "clocks that fall under load (one fixed clock is assumed)",
)
