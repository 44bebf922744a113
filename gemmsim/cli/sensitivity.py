"""gemmsim sensitivity"""

from __future__ import annotations

from typing import Any

import click

from gemmsim.cli.options import launch_options, output_option


@click.command("sensitivity")
@click.argument("target", required=False)
@launch_options
@click.option("--by", type=float, default=10.0, show_default=True, metavar="PERCENT", help="How much better.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="Form of the data.",
)
@output_option
def command(by: float, output_format: str, output: str | None, **options: Any) -> None:
    """Say which number of the GPU, 10 % better, saves how much of a launch's time.

    \b
    gemmsim sensitivity --kernel tiled --size 1024 --gpu h200
    gemmsim sensitivity my.cu --entry sgemm --grid 2,2 --block 256 --arg ...

    Options as for gemmsim analyze. Each number is changed alone.
    """
    from tqdm import tqdm

    from gemmsim.cli.output import emit
    from gemmsim.cli.requests import Options, launch_request
    from gemmsim.report.studies.sensitivity import RENDERERS
    from gemmsim.studies.sensitivity import sensitivity

    request = launch_request(Options(**options))
    with tqdm(desc="sensitivity", unit=" numbers", disable=None, dynamic_ncols=True, leave=False) as shown:

        def progress(done: int, total: int) -> None:
            shown.total = total
            shown.update(done - shown.n)

        found = sensitivity(request, by / 100, progress)
    emit(RENDERERS[output_format](found), output)
