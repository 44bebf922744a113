"""gemmsim compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gemmsim.cli.options import (
    FAILED,
    CompareOptions,
    caches_option,
    engine_option,
    format_option,
    gathered,
    gpu_sets_option,
    jobs_option,
    no_cache_option,
    output_option,
    size_options,
)
from gemmsim.cli.output import emit
from gemmsim.cli.plots import plot_option, wanted_plots, write_plots
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.studies.compare import Outcome

PICTURES = ("ladder",)


_OPTIONS = (
    click.option(
        "--kernel", "kernels", multiple=True, metavar="NAME[:KEY=VALUE,...]", help="A rung; repeat it. All else."
    ),
    *size_options,
    click.option("--gpu", metavar="NAME|FILE.toml", help="gemmsim list gpus.  [default: a100-80gb]"),
    click.option("--gpus", metavar="NAME,NAME,...", help="Several: one kernel over them, or the ladder on each."),
    gpu_sets_option,
    click.option("--dtype", metavar="TYPE", help="Of A and B, where a rung takes it; each rung's default else."),
    caches_option,
    engine_option,
    jobs_option,
    no_cache_option,
)


@click.command("compare")
@gathered(CompareOptions, _OPTIONS)
@plot_option(PICTURES)
@format_option("text", "json", "csv", "md")
@output_option
def command(
    options: CompareOptions, jobs: int | None, plots: tuple[str, ...], output_format: str, output: str | None
) -> int:
    """Hold the rungs of the ladder side by side, and say why each beats the last.

    \b
    gemmsim compare --size 4096 --gpu h200
    gemmsim compare --size 1024 --kernel tiled:tile=16 --kernel tiled:tile=32
    gemmsim compare --size 1024 --kernel tiled --gpus a100,h200,rtx4090

    Rungs of one dtype and precision are compared with one another, in the
    order of the ladder or in that given.
    """
    from gemmsim.cli.comparisons import comparison_tasks

    if jobs is not None and jobs < 1:
        raise GemmsimError(f"--jobs {jobs} must be at least 1")
    tasks = comparison_tasks(options)
    wanted = wanted_plots(plots, PICTURES)

    from gemmsim.report.studies.comparison import RENDERERS
    from gemmsim.studies.compare import compare

    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        click.echo(f"[{done:>{len(str(len(tasks)))}}/{len(tasks)}] {_said(outcome)}", err=True)

    by_gpu = len(options.gpu_names) > 1 and len({task.name for task in tasks}) == 1
    comparison = compare(tasks, by_gpu, jobs, progress)
    if wanted:
        from gemmsim.report.plots.ladder import ladder_figure

        write_plots(wanted, {"ladder": lambda: ladder_figure(comparison)})
    emit(RENDERERS[output_format](comparison), output)
    return FAILED if comparison.wrong else 0


def _said(outcome: Outcome) -> str:
    from gemmsim.analysis.studies.comparison import Skipped
    from gemmsim.report.layout.words import duration

    result = outcome.result
    if isinstance(result, Skipped):
        return f"{result.kernel} on {result.gpu}: cannot run"
    return f"{result.name} on {result.gpu}: {duration(result.time_us)}"
