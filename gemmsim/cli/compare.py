"""gemmsim compare"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gemmsim.cli.options import caches_option, output_option
from gemmsim.cli.output import emit
from gemmsim.cli.plots import plot_option, wanted_plots, write_plots
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.studies.compare import Outcome

WRONG_RESULT = 1
PICTURES = ("ladder",)


@click.command("compare")
@click.option("--kernel", "kernels", multiple=True, metavar="NAME[:KEY=VALUE,...]", help="A rung; repeat it. All else.")
@click.option("--size", type=int, metavar="N", help="M = N = K = N.")
@click.option("--m", type=int, help="Rows of A and C.")
@click.option("--n", type=int, help="Columns of B and C.")
@click.option("--k", type=int, help="Columns of A, rows of B.")
@click.option("--gpu", metavar="NAME|FILE.toml", help="gemmsim list gpus.  [default: a100-80gb]")
@click.option("--gpus", metavar="NAME,NAME,...", help="Several: one kernel over them, or the ladder on each.")
@click.option("--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=25MiB.")
@click.option("--dtype", metavar="TYPE", help="Of A and B, where a rung takes it; each rung's default else.")
@caches_option
@click.option("--jobs", type=int, metavar="N", help="Processes at once.  [default: CPUs]")
@click.option("--no-cache", is_flag=True, help="Compile again.")
@plot_option(PICTURES)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "csv", "md"]),
    default="text",
    show_default=True,
    help="Form of the data.",
)
@output_option
def command(
    kernels: tuple[str, ...],
    size: int | None,
    m: int | None,
    n: int | None,
    k: int | None,
    gpu: str | None,
    gpus: str | None,
    gpu_sets: tuple[str, ...],
    dtype: str | None,
    caches: str,
    jobs: int | None,
    no_cache: bool,
    plots: tuple[str, ...],
    output_format: str,
    output: str | None,
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
    from gemmsim.cli.sizes import problem_size

    sizes = problem_size(size, m, n, k)
    if sizes is None:
        raise GemmsimError("no problem size: give --size N, or --m, --n and --k")
    if jobs is not None and jobs < 1:
        raise GemmsimError(f"--jobs {jobs} must be at least 1")
    if gpu is not None and gpus is not None:
        raise GemmsimError("--gpu names one GPU, --gpus several: give one of them")
    names = [gpu or "a100-80gb"] if gpus is None else [name.strip() for name in gpus.split(",")]
    tasks = comparison_tasks(kernels, sizes, names, gpu_sets, dtype, not no_cache, caches == "warm")
    wanted = wanted_plots(plots, PICTURES)

    from gemmsim.report.studies.comparison import RENDERERS
    from gemmsim.studies.compare import compare

    done = 0

    def progress(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        click.echo(f"[{done:>{len(str(len(tasks)))}}/{len(tasks)}] {_said(outcome)}", err=True)

    by_gpu = len(names) > 1 and len({task.name for task in tasks}) == 1
    comparison = compare(tasks, by_gpu, jobs, progress)
    if wanted:
        from gemmsim.report.plots.ladder import ladder_figure

        write_plots(wanted, {"ladder": lambda: ladder_figure(comparison)})
    emit(RENDERERS[output_format](comparison), output)
    return WRONG_RESULT if comparison.wrong else 0


def _said(outcome: Outcome) -> str:
    from gemmsim.analysis.studies.comparison import Skipped
    from gemmsim.report.layout.words import duration

    result = outcome.result
    if isinstance(result, Skipped):
        return f"{result.kernel} on {result.gpu}: cannot run"
    return f"{result.name} on {result.gpu}: {duration(result.time_us)}"
