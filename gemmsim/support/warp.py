"""Defines the size of a warp, which is the same on every NVIDIA GPU so far."""

from __future__ import annotations

WARP_LANES = 32  # threads of a warp; each of them is one lane
