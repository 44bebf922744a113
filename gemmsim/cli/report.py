"""The command `gemmsim report`, which writes the prediction of one launch as an HTML file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from gemmsim.cli.forms import baseline_option, read_baseline, refuse_other_ending
from gemmsim.cli.group import gathered
from gemmsim.cli.options import FAILED, TimedLaunchOptions
from gemmsim.cli.output import emit, show_printed
from gemmsim.support.errors import GemmsimError


@click.command("report")
@gathered("options", TimedLaunchOptions)
@baseline_option
@click.option("-o", "--output", metavar="FILE.html", help="Write to FILE.html instead of stdout.")
def command(options: TimedLaunchOptions, baseline: str | None, output: str | None) -> int:
    """Predict what one kernel launch does, as one HTML file to look at.

    \b
    gemmsim report --kernel tiled --size 256 -o report.html
    gemmsim report my.cu --entry 'sgemm<128,8>' --grid 2,2 --block 256 --arg ... \\
        -o report.html
    gemmsim analyze --kernel naive --size 256 -o before.json
    gemmsim report --kernel coalesced --size 256 --baseline before.json -o ab.html

    The file needs nothing else, no network either. Options as for gemmsim analyze.
    """
    _check(output)
    from gemmsim.api import analyze
    from gemmsim.cli.requests import requested_launch
    from gemmsim.report.html.render import render

    former = read_baseline(baseline)
    report = replace(analyze(requested_launch(options)), former=former)
    show_printed(report.printed)
    page = render(report)
    emit(page, output)
    if output is not None:
        click.echo(f"wrote {output}: {len(page.encode()) / 1e3:,.0f} KB, open it in a browser", err=True)
    return FAILED if report.verified.ok is False else 0


def _check(output: str | None) -> None:
    """Raises GemmsimError where `output` cannot be written, so that the user need not wait for the analysis first."""
    if output is None:
        if sys.stdout.isatty():
            raise GemmsimError("a page of HTML is nothing to read in a terminal: give -o report.html")
        return
    refuse_other_ending(output)
    path = Path(output)
    if path.is_dir():
        raise GemmsimError(f"cannot write {output}: it is a folder; give a file, such as {path / 'report.html'}")
    if not path.parent.is_dir():
        raise GemmsimError(f"cannot write {output}: there is no folder {path.parent}")
