"""Lists the groups of microbenchmarks in the order in which they run."""

from __future__ import annotations

from types import ModuleType

from . import arithmetic, bandwidth, barrier, latency, launch, wavefronts

GROUPS: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (launch, arithmetic, barrier, latency, bandwidth, wavefronts)
}
