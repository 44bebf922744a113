"""The command `gemmsim sensitivity`, which improves each number of the GPU in turn and predicts the launch's time."""

from __future__ import annotations

import sys

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import gathered
from gemmsim.cli.options import LaunchOptions


@click.command("sensitivity")
@gathered("options", LaunchOptions)
@click.option("--by", type=float, default=10.0, show_default=True, metavar="PERCENT", help="How much better.")
@format_option("text", "json", "csv", "html")
@output_option
def command(options: LaunchOptions, by: float, output_format: str, output: str | None) -> None:
    """Say which number of the GPU, 10 % better, saves how much of a launch's time.

    \b
    gemmsim sensitivity --kernel tiled --size 1024 --gpu h200
    gemmsim sensitivity my.cu --entry sgemm --grid 2,2 --block 256 --arg ...

    Options as for gemmsim analyze. Each number is changed alone.
    """
    from tqdm import tqdm

    from gemmsim.cli.output import emit
    from gemmsim.cli.requests import requested_launch
    from gemmsim.report.studies.sensitivity import RENDERERS
    from gemmsim.studies.sensitivity import sensitivity
    from gemmsim.support.progress import leave_to_others

    spec = requested_launch(options)
    if sys.stderr.isatty():
        leave_to_others()
    with tqdm(desc="sensitivity", unit=" numbers", disable=None, dynamic_ncols=True, leave=False) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        found = sensitivity(spec, by / 100, progress)
    emit(RENDERERS[output_format](found), output)
