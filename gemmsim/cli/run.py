"""The command `gemmsim run`, which runs a program that uses a GPU on a machine that has none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.forms import format_option
from gemmsim.cli.group import filled_by, gathered
from gemmsim.cli.options import DEFAULT_GPU, engine_option, gpu_option, gpu_sets_option, no_cache_option
from gemmsim.cli.output import emit, write_file
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.report.studies.programs import ProgramLaunch

_MARKS = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program is run, as typed."""

    gpu: str = filled_by(gpu_option, DEFAULT_GPU)
    gpu_sets: tuple[str, ...] = filled_by(gpu_sets_option, ())
    folder: str | None = filled_by(
        click.option("--report", "folder", metavar="DIR", help="Keep a page of HTML for each launch timed, in DIR.")
    )
    sanitize: bool = filled_by(
        click.option("--sanitize", is_flag=True, help="Look for races, bad addresses and uneven barriers, too."),
        default=False,
    )
    full: bool = filled_by(
        click.option("--full", is_flag=True, help="Execute every block of every launch, however large it is."),
        default=False,
    )
    as_module: bool = filled_by(
        click.option("-m", "as_module", is_flag=True, help="SCRIPT.py is the name of a module, as for python -m."),
        default=False,
    )
    no_cache: bool = filled_by(no_cache_option, default=False)
    engine: str = filled_by(engine_option, "auto")


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@gathered("options", RunOptions)
@format_option("text", "json", "csv", "html")
@click.option("-o", "--output", metavar="FILE", help="Write the table of launches to FILE instead of stdout.")
@click.argument("script", metavar="SCRIPT.py")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def command(options: RunOptions, output_format: str, output: str | None, script: str, args: tuple[str, ...]) -> int:
    """Run a program that uses a GPU (numba.cuda, Triton) on a GPU that is not there.

    \b
    gemmsim run --gpu h200 matmul.py --size 1024
    gemmsim run --gpu h200 -m pytest test_matmul.py

    SCRIPT.py runs as it is, as Python would run it: it is code that you trust.
    Its kernels are executed on the CPU, so that results land in its own arrays,
    and timed for the GPU. A table of the launches follows at the end.

    Exit status: that of the program; 2 where a launch cannot be simulated; 1 where
    --sanitize found a defect.
    """
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.spec import Settings
    from gemmsim.programs.machine import COMPLETE_BELOW
    from gemmsim.programs.script import RAISED, run_module, run_script, show_exception
    from gemmsim.programs.session import simulate
    from gemmsim.report.studies.programs import RENDERERS

    pages = None if options.folder is None else _folder(options.folder)
    settings = Settings(use_cache=not options.no_cache, engine=options.engine)
    below = float("inf") if options.full else COMPLETE_BELOW
    simulation, status = None, RAISED
    try:
        with simulate(
            load_gpu(options.gpu, options.gpu_sets),
            sanitize=options.sanitize,
            closer_look=pages is not None,
            complete_below=below,
            settings=settings,
        ) as simulation:
            status = run_module(script, args) if options.as_module else run_script(Path(script), args)
            if status:
                simulation.raise_failure()
    except GemmsimError:
        raise
    except Exception as error:
        show_exception(error)
    finally:
        launches = simulation.launches if simulation else ()
        if simulation and launches:
            emit(RENDERERS[output_format](launches, simulation.beside), output)
    if pages is not None:
        _write_pages(launches, pages)
    found = any(one.report.findings for one in launches)
    return status or int(found)


def _folder(name: str) -> Path:
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GemmsimError(f"cannot make the folder {name}: {error.strerror}") from None
    return path


def _write_pages(launches: Sequence[ProgramLaunch], folder: Path) -> None:
    from gemmsim.report.html.render import render

    for number, one in enumerate(launches, 1):
        if one.timed_as is None:
            name = _MARKS.sub("_", one.report.labels.kernel)[:40]
            write_file(render(one.report).encode(), str(folder / f"{number}-{name}.html"))
