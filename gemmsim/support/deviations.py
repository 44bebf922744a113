"""Lists effects that gemmsim does not model yet. Every report prints them; validate/deviations.md explains them."""

from __future__ import annotations

NOT_MODELLED = (
    "constant cache misses",
    "TLB misses, and what it takes data to go from one L2 partition to the other",
    "how far SMs are in step, on which the merging of their requests to L2 depends (Hopper)",
    "heat, and clocks that fall under load, but where the GPU file knows the power of work (Hopper)",
    "blocks of a wave that are out of step (all are taken to wait for DRAM together)",
    "how fast blocks are dispatched, reads that queue before DRAM, and its slowest lines, but on Hopper",
    "fences, and blocks that wait for one another's results",
)
