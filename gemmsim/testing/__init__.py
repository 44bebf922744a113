"""Assertions for tests of kernels without a GPU.

The pytest plugin adds the fixtures `gpu`, `analyze` and `gemmsim_baseline`.

    from gemmsim.testing import assert_coalesced, assert_no_races

    def test_tiled(analyze):
        trace = analyze("tiled", size=256)
        assert trace.at("tile_b[k, tx]").bank_conflicts == 0
        assert_coalesced(trace)
        assert_no_races(trace)

A name is imported from its module when it is first used, as pytest loads this package for everybody who has gemmsim
installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gemmsim.calls.trace import Trace
    from gemmsim.launch.python_items import by_value, typed
    from gemmsim.testing.assertions import (
        assert_clean,
        assert_coalesced,
        assert_correct,
        assert_no_bank_conflicts,
        assert_no_races,
        assert_no_spills,
        assert_occupancy,
    )
    from gemmsim.testing.launches import Analyzer

__all__ = [
    "Analyzer",
    "Trace",
    "assert_clean",
    "assert_coalesced",
    "assert_correct",
    "assert_no_bank_conflicts",
    "assert_no_races",
    "assert_no_spills",
    "assert_occupancy",
    "by_value",
    "typed",
]


# The module of each name; the other names are in `assertions`.
_HOMES = {
    "Analyzer": "gemmsim.testing.launches",
    "Trace": "gemmsim.calls.trace",
    "by_value": "gemmsim.launch.python_items",
    "typed": "gemmsim.launch.python_items",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES.get(name, f"{__name__}.assertions")), name)
