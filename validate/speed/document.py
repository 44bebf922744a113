"""Writes the text of docs/speed.md: what `gemmsim-validate speed` measured, as tables, and on which kind of machine."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version

from gemmsim.support.processes import available_cpus

from ..documents.render import markdown_table
from ..documents.sections import table
from .processes import GOAL_MB, GOAL_SECONDS, Cell, Profile, Run

GOAL_SIZES = (4096, 8192)


def document(
    cells: Sequence[Cell], profiles: Sequence[Profile], gpu: str, rounds: int, command: str, load: float
) -> str:
    """Return the page; `load` is how many processes, this one included, wanted a core on average during the run."""
    taken = "once" if rounds == 1 else f"the quickest of {rounds}"
    return "\n".join(
        [
            "# Speed",
            "",
            f"Made by `{command}`; every number is that run's. Each prediction is `gemmsim analyze --gpu {gpu}` in a",
            f"fresh process, {taken}, after one of the same rung that filled the caches.",
            f"Machine: {machine(load)}.",
            *_crowded(load),
            "",
            "## Size against time and memory",
            "",
            "M = N = K, columns.",
            *_table("Wall-clock seconds", cells, lambda run: f"{run.wall_s:.2f}"),
            *_table("CPU seconds, user and system", cells, lambda run: f"{run.cpu_s:.2f}"),
            *_table("Peak memory in MB", cells, lambda run: f"{run.peak_mb:.0f}"),
            *_failures(cells),
            *_goal(cells),
            "",
            "## Where the time goes",
            "",
            "CPU seconds of the steps of one prediction, in the order in which they happen, in a process of its own.",
            *(line for profile in profiles for line in _profile(profile)),
            "",
        ]
    )


def machine(load: float) -> str:
    """Describe the machine in words: cores, processor architecture, system, versions, and `load` as in `document`."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    busy = f"{load:.1f} processes wanted a core on average meanwhile"
    return f"{available_cpus()} cores, {platform.machine()}, {platform.system()}, {python}, {libraries}; {busy}"


def _crowded(load: float) -> list[str]:
    if load < available_cpus():
        return []
    return ["That is more than there are: alone, wall-clock times are shorter. CPU seconds suffer less, but do too."]


def _table(title: str, cells: Sequence[Cell], shown: Callable[[Run], str]) -> list[str]:
    sizes = sorted({cell.size for cell in cells})
    by_place = {(cell.kernel, cell.size): cell.run for cell in cells}

    def text(kernel: str, size: int) -> str:
        run = by_place.get((kernel, size))
        if run is None:
            return "not run"
        return shown(run) if not run.failed else "over the limit" if run.failed.startswith("over ") else "refused"

    kernels = dict.fromkeys(cell.kernel for cell in cells)
    rows = ((kernel, *(text(kernel, size) for size in sizes)) for kernel in kernels)
    return ["", *markdown_table(table((title, *map(str, sizes)), rows, numeric=range(1, 1 + len(sizes))))]


def _failures(cells: Sequence[Cell]) -> list[str]:
    lines = [f"- {cell.kernel} at {cell.size}: {cell.run.failed}" for cell in cells if cell.run.failed]
    return ["", "No result:", "", *lines] if lines else []


def _goal(cells: Sequence[Cell]) -> list[str]:
    judged = [cell for cell in cells if cell.size in GOAL_SIZES]
    if not judged:
        return []
    over = [
        f"{c.kernel} at {c.size} ({c.run.failed or f'{c.run.wall_s:.1f} s, {c.run.peak_mb:.0f} MB'})"
        for c in judged
        if c.run.failed or c.run.wall_s > GOAL_SECONDS or c.run.peak_mb > GOAL_MB
    ]
    goal = f"The goal at {' and '.join(map(str, GOAL_SIZES))} is {GOAL_SECONDS:g} s and {GOAL_MB:.0f} MB"
    missed = f"missed by {', '.join(over)}" if over else "met by all of them"
    return ["", f"{goal}: {missed}."]


def _profile(profile: Profile) -> list[str]:
    total = sum(seconds for _, seconds in profile.steps)
    rows = [(name, f"{seconds:.3f}", f"{100 * seconds / total:.0f} %") for name, seconds in profile.steps]
    title = f"{profile.kernel} at {profile.size} on {profile.gpu}"
    return ["", *markdown_table(table((title, "s", ""), [*rows, ("all", f"{total:.3f}", "")], numeric=(1, 2)))]
