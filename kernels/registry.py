"""The rungs, in the order in which they are best read. A new kernel is a file of its own and a word here."""

from __future__ import annotations

from . import coalesced, naive, tiled
from .info import KernelInfo

KERNELS: dict[str, KernelInfo] = {module.INFO.name: module.INFO for module in (naive, coalesced, tiled)}
