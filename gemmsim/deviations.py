"""Effects that no model here covers yet: printed with every report, explained in validate/deviations.md."""

from __future__ import annotations

NOT_MODELLED = (
    "constant cache misses",
    "TLB misses, and L2 near and far partitions",
    "the merging of requests between SMs on their way to L2 (Hopper)",
    "clocks that fall under load (fixed clocks are assumed, with and without tensor cores)",
    "blocks that catch up with one another and wait for DRAM together (but for the first wave)",
    "fences, and blocks that wait for one another's results",
)
