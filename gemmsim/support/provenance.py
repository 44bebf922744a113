"""How much a number can be trusted."""

from __future__ import annotations

from enum import StrEnum


class Provenance(StrEnum):
    EXACT = "exact"  # counted; must equal the hardware's counter within that counter's own noise
    MODELLED = "modelled"  # from a model with sourced constants
    CALIBRATED = "calibrated"  # from a model of time whose constants were fitted to measured times
    UNKNOWN = "unknown"
