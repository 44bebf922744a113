"""Chooses what drives a simulation of an SM: SimPy, which people read and watch, or the native loop, for long runs."""

from __future__ import annotations

from gemmsim.sm.native_drive import run
from gemmsim.sm.observer import Observer
from gemmsim.sm.state import State
from gemmsim.support.errors import GemmsimError, nearest

ENGINES = ("auto", "simpy", "native")
# Warp instructions that "auto" gives to SimPy at most: about 0.2 s on a machine of 2026.
SIMPY_INSTRUCTIONS = 70_000


def engine_for(wanted: str, instructions: int, observed: bool) -> str:
    """Return which engine, "simpy" or "native", simulates `instructions` warp instructions.

    wanted    one of ENGINES
    observed  whether an observer watches, which needs SimPy

    Raises GemmsimError for a name that is none of ENGINES, and where the native engine is wanted and observed.
    """
    if wanted not in ENGINES:
        raise GemmsimError(f"unknown engine '{wanted}'{nearest(wanted, ENGINES)}: known are {', '.join(ENGINES)}")
    if observed and wanted == "native":
        raise GemmsimError("the native engine cannot be observed: use engine 'simpy' or 'auto'")
    if wanted != "auto":
        return wanted
    return "simpy" if observed or instructions <= SIMPY_INSTRUCTIONS else "native"


def drive(state: State, engine: str, observer: Observer | None = None) -> None:
    """Simulate all blocks of `state` with `engine`, "simpy" or "native". None may have been simulated yet."""
    if engine == "native":
        run(state)
        return
    from gemmsim.sm.simpy_drive import SimpyDrive  # and with it SimPy

    SimpyDrive(state, observer).run()
