"""The command `gemmsim compare`, which predicts several kernels or GPUs and shows them side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import gathered
from gemmsim.cli.options import FAILED, CompareOptions, plot_option
from gemmsim.cli.output import emit
from gemmsim.cli.plots import wanted_plots, write_plots
from gemmsim.support.errors import GemmsimError
from gemmsim.support.progress import leave_to_others

if TYPE_CHECKING:
    from gemmsim.studies.compare import Outcome

PICTURES = ("ladder",)


@click.command("compare")
@gathered("options", CompareOptions)
@plot_option(PICTURES)
@format_option("text", "json", "csv", "md", "html")
@output_option
def command(options: CompareOptions, plots: tuple[str, ...], output_format: str, output: str | None) -> int:
    """Hold the rungs of the ladder side by side, and say why each beats the last.

    \b
    gemmsim compare --size 4096 --gpu h200
    gemmsim compare --size 1024 --kernel tiled:tile=16 --kernel tiled:tile=32
    gemmsim compare --size 1024 --kernel tiled --gpus a100,h200,rtx4090
    gemmsim compare --size 4096 --gpu h200 --baseline cublas

    Rungs of one dtype and precision are compared with one another, in the
    order of the ladder or in that given.
    """
    from gemmsim.cli.comparisons import comparison_bundle, comparison_tasks

    if options.jobs is not None and options.jobs < 1:
        raise GemmsimError(f"--jobs {options.jobs} must be at least 1")
    tasks = comparison_tasks(options)
    bundle = comparison_bundle(options)
    wanted = wanted_plots(plots, PICTURES)

    from gemmsim.report.studies.comparison import RENDERERS
    from gemmsim.studies.compare import compare

    leave_to_others()
    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        of = f"[{done:>{len(str(len(tasks)))}}/{len(tasks)}]" if done <= len(tasks) else "[baseline]"
        click.echo(f"{of} {_said(outcome)}", err=True)

    by_gpu = len(options.gpu_names) > 1 and len({task.name for task in tasks}) == 1
    comparison = compare(tasks, by_gpu, options.jobs, progress)
    if bundle is not None:
        from gemmsim.studies.baseline import with_baseline

        comparison = with_baseline(comparison, bundle, tasks, options.jobs, progress)
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
