"""The command `gemmsim explain`, which looks a term up in the glossary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import gathered
from gemmsim.cli.options import LaunchOptions
from gemmsim.cli.output import emit
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.report.report import Report


@click.command("explain")
@click.argument("name", required=False)
@gathered("options", LaunchOptions)
@format_option("text", "json")
@output_option
def command(options: LaunchOptions, name: str | None, output_format: str, output: str | None) -> None:
    """Say what a metric, stall reason or term means, and what to do about it.

    \b
    gemmsim explain                                  all stall reasons and terms
    gemmsim explain 'bank conflict'
    gemmsim explain long_scoreboard --kernel tiled --size 256
    gemmsim explain sectors my.py:my_gemm --grid 8,8 --block 32,32 --arg ...

    With a kernel or TARGET, as of gemmsim analyze: with the numbers of that
    launch, and the source lines that they come from.
    """
    if name is None:
        if output_format == "json":
            raise GemmsimError("--format json is for one NAME: gemmsim explain occupancy --format json")
        from gemmsim.report.glossary.explain import render_index

        return emit(render_index(), output)
    from gemmsim.report.glossary.entries import lookup

    entry = lookup(name)  # an unknown name is refused before the launch is predicted
    report = _report(options)
    from gemmsim.report.glossary.explain import render_json, render_text

    render = render_json if output_format == "json" else render_text
    return emit(render(entry, report), output)


def _report(options: LaunchOptions) -> Report | None:
    """Predict the launch that the options describe; None where they name no kernel."""
    if options.kernel is None and options.target is None:
        if any(size is not None for size in (options.size, options.m, options.n, options.k)):
            raise GemmsimError("a size without a kernel: add --kernel NAME or a TARGET such as my.py:my_gemm")
        return None
    from gemmsim.api import analyze
    from gemmsim.cli.requests import requested_launch

    return analyze(requested_launch(options))
