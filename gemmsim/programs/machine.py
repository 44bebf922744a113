"""Holds the state of the simulated machine: its GPU, memory, modules, streams and events, and what was launched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.spec import USUAL_SETTINGS, Settings
from gemmsim.memory.caches.l2 import L2State
from gemmsim.programs.allocations import Allocations
from gemmsim.programs.c_calls import INVALID_HANDLE, DriverError
from gemmsim.programs.footprints import Footprint
from gemmsim.programs.postponed import Postponed
from gemmsim.report.report import Report
from gemmsim.report.studies.programs import ProgramLaunch

COMPLETE_BELOW = 500_000_000
_FIRST_HANDLE, _HANDLE_STEP = 0x1000, 0x10  # 0, 1 and 2 stand for default streams

Kind = TypeVar("Kind")


@dataclass(eq=False)
class Event:
    """A CUDA event: the time of the GPU's clock at which it was recorded, None before that."""

    recorded_us: float | None = None


@dataclass(eq=False)
class Stream:
    """A CUDA stream. It holds nothing: what is put into it is done at once."""


class Handles:
    """Gives out the opaque handles by which C code names objects."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._next = _FIRST_HANDLE

    def new(self, named: object) -> int:
        handle, self._next = self._next, self._next + _HANDLE_STEP
        self._objects[handle] = named
        return handle

    def get(self, handle: int, kind: type[Kind]) -> Kind:
        """Return the object of this handle. Raises DriverError where there is none of the kind."""
        found = self._objects.get(handle)
        if not isinstance(found, kind):
            raise DriverError(INVALID_HANDLE)
        return found

    def of(self, named: object) -> int:
        """Return the handle of an object, a new one where it has none."""
        known = next((handle for handle, one in self._objects.items() if one is named), None)
        return self.new(named) if known is None else known

    def drop(self, handle: int) -> None:
        self._objects.pop(handle, None)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._objects.values())


@dataclass(frozen=True)
class TimedLaunch:
    """A launch that was timed: its number, from 1, its report, and what it has left in L2 where that is known.

    footprint  what it does with the allocations that it can reach
    """

    number: int
    report: Report
    l2_after: L2State | None
    footprint: Footprint


@dataclass
class TimedLaunches:
    """What is known of launches that were timed.

    known   by two hashes: of all that decides the time of the launch but the content of its arrays and of L2, and the
            same of the launch before it, which stands for L2
    before  the hash of the last launch
    l2      what L2 holds now, None where it is taken to be empty
    """

    known: dict[tuple[str, str], TimedLaunch] = field(default_factory=dict)
    before: str = ""
    l2: L2State | None = None


@dataclass(eq=False)
class Machine:
    """A machine with one GPU that is not there.

    gpu        the GPU that launches are predicted for
    settings   of every launch
    complete_below  warp instructions of a launch up to which every block is executed, so that its results are complete
    sanitize   whether launches are checked for races and other defects
    closer_look  whether reports get samples of accesses and a view of one block, as HTML pages draw them
    launches   what was launched so far, in order
    clock_us   time of the GPU: launches follow one another, whatever their streams, and copies take no time
    failure    why the last call failed, where a code of the driver API does not say it
    refused    names of functions of the driver API that were called and are not simulated, in order
    contexts   the stack of current contexts
    timed      the launches whose time is known
    simulations  how many simulations go on; programs run while there is one
    postponed  the launches that were timed, and whose results nothing has needed yet
    beside     what was computed without a launch, and is to be said of it, in order
    benchmarking  whether the program asks for times alone, as by Triton's do_bench
    """

    gpu: GpuSpec
    settings: Settings = USUAL_SETTINGS
    complete_below: float = COMPLETE_BELOW
    sanitize: bool = False
    closer_look: bool = False
    launches: list[ProgramLaunch] = field(default_factory=list)
    clock_us: float = 0.0
    failure: BaseException | None = None
    refused: list[str] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)
    handles: Handles = field(default_factory=Handles)
    timed: TimedLaunches = field(default_factory=TimedLaunches)
    simulations: int = 0
    postponed: Postponed = field(default_factory=Postponed)
    beside: dict[str, None] = field(default_factory=dict)
    benchmarking: bool = False
    memory: Allocations = field(init=False)

    def __post_init__(self) -> None:
        self.memory = Allocations(self.gpu.dram.size_bytes)
        self.primary_context = self.handles.new(self.gpu)
