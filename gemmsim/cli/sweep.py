"""The command `gemmsim sweep`, which predicts all combinations of tunables, sizes and GPUs and sorts them by time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.forms import format_option
from gemmsim.cli.group import INTERRUPTED, gathered
from gemmsim.cli.options import FAILED, SweepOptions, plot_option
from gemmsim.cli.plots import wanted_plots, write_plots
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gemmsim.analysis.studies.ranking import Pruned, Sweep, SweepResult
    from gemmsim.sweeps.job import Job
    from gemmsim.sweeps.run import Runner
    from gemmsim.sweeps.store import Store

PICTURES = ("heat", "scaling")


@click.command("sweep")
@gathered("options", SweepOptions)
@plot_option(PICTURES)
@format_option("text", "json", "csv", "md", "html", of_output=False)
@click.option("-o", "--output", metavar="FILE.sqlite", help="Keep results here.  [default: in the cache folder]")
def command(options: SweepOptions, plots: tuple[str, ...], output_format: str, output: str | None) -> int:
    """Predict every combination of tunables, sizes and GPUs; rank them by time.

    \b
    gemmsim sweep --kernel blocktile_2d --set-kernel bm=64,128 \\
        --set-kernel tm=4,8 --size 1024,2048 --gpus a100,h200 -o tiles.sqlite
    gemmsim sweep my.cu --entry 'sgemm<{bm},{bn}>' --set-kernel bm=64,128 \\
        --set-kernel bn=64,128 --size 1024 --grid '{n//bn},{m//bm}' \\
        --block 256 --arg 'f32[{m},{k}]' --arg 'f32[{k},{n}]' ...

    What cannot be launched is left out. Results are kept as they come: the same
    command, given again, predicts only what is missing. A tunable of a rung that
    is not named keeps its default. Of FILE.py:function, the function is called
    with the tunables and returns the kernel.
    """
    from gemmsim.cli.requests import check_one_kernel
    from gemmsim.cli.sweeps import sweep_jobs

    check_one_kernel(options.kernel, options.target, "sweep")
    if options.top < 0:
        raise GemmsimError(f"--top {options.top} must be 0 or more")
    pictures = wanted_plots(plots, PICTURES)
    todo, pruned, axes = sweep_jobs(options)

    from gemmsim.cli.output import emit
    from gemmsim.report.studies.sweep import RENDERERS
    from gemmsim.sweeps.store import Store

    runner = _runner(options.jobs, options.scheduler)
    path = _results(output)
    with Store(path) as store:
        found = _swept(todo, pruned, axes, store, runner, options.no_cache, path)
    if found is None:
        return INTERRUPTED
    emit(RENDERERS[output_format](found, options.top or None), None)
    if pictures:  # after the results are printed, because a sweep may vary too little for a picture
        from gemmsim.report.plots.sweep import sweep_heat_figure, sweep_scaling_figure

        makers = {"heat": lambda: sweep_heat_figure(found), "scaling": lambda: sweep_scaling_figure(found)}
        write_plots(pictures, makers)
    return FAILED if found.wrong else 0


def _runner(jobs: int | None, scheduler: str | None) -> Runner:
    if jobs is not None and scheduler is not None:
        raise GemmsimError("--jobs is for this machine: the cluster has as many as it has workers")
    if jobs is not None and jobs < 1:
        raise GemmsimError(f"--jobs {jobs} must be at least 1")
    if scheduler is not None:
        from gemmsim.sweeps.cluster import run_cluster

        return lambda todo: run_cluster(todo, scheduler)
    from gemmsim.sweeps.local import run_local

    return lambda todo: run_local(todo, jobs)


def _results(output: str | None) -> Path:
    """Return the file for the results: `output`, or by default a file in the cache folder.

    The cache folder is made where it is missing.
    """
    if output is not None:
        if output.endswith((".html", ".csv", ".json", ".md")):
            raise GemmsimError(f"-o {output}: results are kept there, as SQLite; the table goes to stdout, by --format")
        return Path(output)
    from gemmsim.compile import default_cache

    path = default_cache().folder / "sweeps.sqlite"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GemmsimError(f"cannot keep results in {path}: {error.strerror}; give -o FILE.sqlite") from None
    return path


def _swept(
    jobs: Sequence[Job],
    pruned: Sequence[Pruned],
    axes: Sequence[str],
    store: Store,
    runner: Runner,
    again: bool,
    path: Path,
) -> Sweep | None:
    """Run the sweep with a progress bar, and return its results, sorted by time.

    pruned  combinations that cannot launch, with the reasons
    axes    names of the tunables that are varied
    again   whether jobs are predicted anew for which `store` has a result
    path    the file of `store`, which the message after an interrupt names

    Returns None where the user interrupted the sweep; a line on standard error then says so.
    """
    from tqdm import tqdm

    from gemmsim.support.progress import leave_to_others
    from gemmsim.sweeps.run import sweep

    finished = total = 0
    # disable=None shows nothing where standard error is no terminal
    if sys.stderr.isatty():
        leave_to_others()
    with tqdm(desc="sweep", unit=" combinations", disable=None, dynamic_ncols=True, leave=False) as bar:

        def started(reused: int, count: int) -> None:
            nonlocal finished, total
            finished, total = reused, count
            bar.initial = bar.n = reused
            bar.total = count
            bar.refresh()

        def progress(result: SweepResult) -> None:
            nonlocal finished
            finished += 1
            bar.update()

        try:
            return sweep(jobs, pruned, axes, store, runner, again, started, progress)
        except KeyboardInterrupt:
            bar.close()
            kept = f"{finished} of {total} results are in {path}"
            click.echo(f"interrupted: {kept}; the same command goes on from there", err=True)
            return None
