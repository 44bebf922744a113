"""Defines `Provenance`, which says how much a predicted number can be trusted."""

from __future__ import annotations

from enum import StrEnum


class Provenance(StrEnum):
    """Where a number comes from, the most reliable first."""

    EXACT = "exact"  # it is counted and must equal the hardware's counter within that counter's own noise
    MODELLED = "modelled"  # it comes from a model with sourced constants
    CALIBRATED = "calibrated"  # it comes from a model of time whose constants were fitted to measured times
    UNKNOWN = "unknown"
