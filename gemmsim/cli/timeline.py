"""The command `gemmsim timeline`, which shows what the warps of one SM do."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import filled_by, gathered
from gemmsim.cli.options import LaunchOptions, engine_option_saying
from gemmsim.cli.output import emit, write_file
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.report.timeline.types import TimelineReport, Window


@dataclass(frozen=True, slots=True)
class TimelineOptions(LaunchOptions):
    """`LaunchOptions` with an option --engine that must be auto or simpy, as only SimPy can record a timeline."""

    engine: str = filled_by(
        engine_option_saying(
            "A timeline is recorded while SimPy runs: auto and simpy are the same here, native is refused."
        ),
        "auto",
    )


@click.command("timeline")
@gathered("options", TimelineOptions)
@click.option("--blocks", type=int, metavar="N", help="The SM's first N blocks.  [default: as many as it holds]")
@click.option("--cycles", metavar="FROM:TO", help="Only these cycles: 1000:1060.")
@click.option("--warps", type=int, default=8, show_default=True, metavar="N", help="Rows of the text.")
@format_option(
    "text",
    "html",
    "perfetto",
    help_text="Text, a page to zoom into, or a trace for ui.perfetto.dev.  [default: as -o ends, else text]",
)
@output_option
def command(
    options: TimelineOptions,
    blocks: int | None,
    cycles: str | None,
    warps: int,
    output_format: str,
    output: str | None,
) -> None:
    """Show what the warps of one SM do, cycle by cycle.

    \b
    gemmsim timeline --kernel tiled --size 256
    gemmsim timeline --kernel tiled --size 256 --cycles 3000:3060 --warps 16
    gemmsim timeline --kernel tiled --size 256 -o timeline.html
    gemmsim timeline --kernel tiled --size 256 -o trace.json.gz

    A name that ends in .gz is written compressed, as ui.perfetto.dev opens it, too.

    TARGET, --grid, --block and --arg are as of gemmsim analyze.
    """
    if warps < 1:
        raise GemmsimError(f"--warps {warps} must be at least 1")
    if output_format == "text" and output is not None and output.endswith(".gz"):
        raise GemmsimError(f"-o {output}: only --format perfetto and html are written compressed")
    ends = None if cycles is None else _ends(cycles)

    from gemmsim.cli.requests import requested_launch
    from gemmsim.report.timeline import page, perfetto, text
    from gemmsim.studies.timeline import timeline

    report = timeline(requested_launch(options), blocks)
    if output_format == "text":
        window = _window(report, ends, None)
        return emit(text.render(report, window, warps), output)
    renderer = page if output_format == "html" else perfetto
    window = _window(report, ends, renderer.MOST_INTERVALS)
    rendered = renderer.render(report, window)
    if output is not None and output.endswith(".gz"):
        return write_file(gzip.compress(rendered.encode(), compresslevel=6, mtime=0), output)
    return emit(rendered, output)


def _ends(cycles: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,18}):([0-9]{1,18})", cycles.replace(",", ""))
    if not found or int(found[1]) >= int(found[2]):
        raise GemmsimError(f"--cycles {cycles} is not FROM:TO with FROM before TO, such as 1000:1060")
    return int(found[1]), int(found[2])


def _window(report: TimelineReport, ends: tuple[int, int] | None, most_intervals: int | None) -> Window:
    """Return the range of cycles to show: from `ends[0]` to before `ends[1]`, or all where `ends` is None.

    most_intervals  how many intervals (stretches of cycles of one warp's state or memory access) the output may hold,
                    None for any number; where there would be more, the range ends sooner, and stderr says where
    """
    from gemmsim.report.timeline.types import Window, fitting

    cycles = report.timeline.cycles
    first, stop = ends or (0, cycles)
    if first >= cycles:
        raise GemmsimError(f"--cycles {first}:{stop} begins after the last of {cycles:,} cycles")
    asked = Window(first, min(stop, cycles))
    if most_intervals is None:
        return asked
    fits = fitting(report, asked, most_intervals)
    if fits.stop < asked.stop:
        click.echo(f"cycles {fits.first:,} to {fits.stop:,} of {cycles:,}: --cycles FROM:TO shows others", err=True)
    return fits
