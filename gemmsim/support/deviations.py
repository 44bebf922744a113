"""Lists effects that gemmsim does not model yet. Every report prints them; validate/deviations.md explains them."""

from __future__ import annotations

NOT_MODELLED = (
    "constant cache misses",
    "TLB misses, and what it takes data to go from one L2 partition to the other",
    "how far SMs of each kernel are in step, on which the merging of their requests to L2 depends (Hopper)",
    "heat, and clocks that fall under load where the GPU file does not know the power of work",
    "how blocks of a wave get out of step (those that compete for an SM are taken to ask for shared tiles in turn)",
    "how fast blocks are dispatched, reads that queue before DRAM, and its slowest lines, but on Hopper",
    "what policies in registers tell L2 to keep, and that DRAM is read for sectors that are written in part",
    "what fences empty L1 of, and blocks that wait for one another's results",
)
