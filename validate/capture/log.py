"""Reads what the capture library wrote in a process: `log.jsonl`, and the modules beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gemmsim.compile.sections import kernel_symbols
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True)
class Log:
    """The log of a process.

    launches  the distinct launches in their order, as inject.cpp writes them
    times_ns  launch number -> the device time of each of its launches
    cubins    launch number -> file of the module that holds its kernel
    notes     what was not captured, a sentence each
    cupti     CUPTI's version
    """

    folder: Path
    launches: tuple[dict[str, Any], ...]
    times_ns: dict[int, list[int]]
    cubins: dict[int, Path]
    notes: tuple[str, ...]
    cupti: int = 0


@dataclass
class _Modules:
    """The modules of a process, in the order of their loads, and what is known of their handles."""

    folder: Path
    loaded: list[int] = field(default_factory=list)
    numbers: dict[str, list[int]] = field(default_factory=dict)

    def holding(self, launch: dict[str, Any]) -> int | None:
        """Return the number of the module that holds a launch's kernel; None where none does.

        Several modules may have kernels of the same name. The handle decides between them, where the call that returned
        it loaded the module; else the module is that which the launch loaded, as lazy loading does, or the latest one
        whose handle is not known.
        """
        symbol, handle = launch["symbol"], launch["module"]
        candidates = [one for one in self.loaded if symbol in symbols_of(self.folder / f"{one}.cubin")]
        known = [one for one in candidates if one in self.numbers.get(handle, ())]
        mine = [one for one in candidates if one in launch["loaded"]]
        claimed = {one for numbers in self.numbers.values() for one in numbers}
        free = [one for one in candidates if one not in claimed]
        found = next((some[-1] for some in (known, mine, free, candidates) if some), None)
        if found is not None:
            self.numbers.setdefault(handle, []).append(found)
        return found


@cache
def symbols_of(path: Path) -> frozenset[str]:
    try:
        return frozenset(kernel_symbols(path.read_bytes()))
    except (OSError, GemmsimError):
        return frozenset()


def read_log(folder: Path) -> Log:
    """Read the log of a process. A line that was cut short, as where the program crashed, ends it."""
    launches, times, cubins, notes, cupti = [], dict[int, list[int]](), dict[int, Path](), [], 0
    modules, ended = _Modules(folder), False
    for line in (folder / "log.jsonl").read_text(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            break
        match event["event"]:
            case "start":
                cupti = event["cupti"]
            case "module":
                modules.loaded.append(event["number"])
            case "handle":
                modules.numbers[event["module"]] = event["loaded"]
            case "launch":
                launches.append(event)
                if (number := modules.holding(event)) is not None:
                    cubins[event["number"]] = folder / f"{number}.cubin"
            case "times":
                times[event["number"]] = event["ns"]
            case "error":
                notes.append(f"CUPTI refuses {event['what']}: {event['why']}")
            case "end":
                ended = True
                if event["graph_launches"]:
                    notes.append(f"{event['graph_launches']} launches of CUDA graphs are not captured")
                if event["dropped"]:
                    notes.append(f"{event['dropped']} further launches were distinct, too, and are not captured")
    if not ended:
        notes.append("the process ended without a word (_exit or a crash), so that there are no times")
    return Log(folder, tuple(launches), times, cubins, tuple(notes), cupti)
