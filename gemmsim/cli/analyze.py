"""The command `gemmsim analyze`, which predicts what one kernel launch does.

An option that describes the launch belongs in `options.py`, where other commands take it from; an option of this
command alone belongs here.
"""

from __future__ import annotations

from dataclasses import replace

import click

from gemmsim.cli.forms import baseline_option, format_option, output_option, read_baseline
from gemmsim.cli.group import gathered
from gemmsim.cli.options import FAILED, TimedLaunchOptions, plot_option
from gemmsim.cli.output import emit, show_printed, write_file
from gemmsim.cli.plots import wanted_plots, write_plots
from gemmsim.support.errors import GemmsimError

PICTURES = ("roofline", "memory")


@click.command("analyze")
@gathered("options", TimedLaunchOptions)
@plot_option(PICTURES)
@click.option("--sanitize", is_flag=True, help="Look for races, missing waits, bad addresses and uneven barriers, too.")
@click.option("--save", metavar="FILE.npz", help="Write every array as it is after the run, by name.")
@baseline_option
@format_option("text", "json")
@output_option
def command(
    options: TimedLaunchOptions,
    plots: tuple[str, ...],
    output_format: str,
    output: str | None,
    sanitize: bool,
    save: str | None,
    baseline: str | None,
) -> int:
    """Predict what one kernel launch does.

    \b
    gemmsim analyze --kernel tiled --size 256
    gemmsim analyze my.py:my_gemm --grid 8,8 --block 32,32 \\
        --arg 'f32[256,256]' --arg 'f32[256,256]' --arg 'f32[256,256]=0'

    TARGET is FILE.py:function (numba.cuda), FILE.cu, FILE.ptx, a cubin, a
    fatbin, or an executable, library or object file made by nvcc.
    A Python file is imported: its code runs on this machine.
    """
    from gemmsim import api
    from gemmsim.cli.requests import requested_launch
    from gemmsim.report import hazards

    former = read_baseline(baseline)
    spec = requested_launch(options)
    wanted = wanted_plots(plots, PICTURES)
    if save is not None and not save.endswith(".npz"):
        raise GemmsimError(f"--save {save}: expected the name of an .npz file")
    outcome = api.sanitize(spec) if sanitize else None
    if outcome and hazards.fatal(outcome):  # the launch would fail on a GPU, so that there is nothing to predict
        emit(hazards.render_json(outcome) if output_format == "json" else hazards.render(outcome), output)
        return FAILED
    counted = api.count(spec)
    show_printed(counted.execution.printed)
    if save is not None:
        from gemmsim.launch.checks import array_names
        from gemmsim.report.saved_arrays import npz_bytes

        write_file(npz_bytes(array_names(spec.launch.args, spec.verify), counted.execution), save)
    report = api.conclude(counted, spec, accesses=False)  # neither the text nor JSON shows single accesses
    report = replace(report, former=former)
    if outcome:
        report = hazards.with_findings(report, outcome)
    if wanted:
        from gemmsim.report.plots.memory import memory_figure
        from gemmsim.report.plots.roofline import roofline_figure

        write_plots(wanted, {"roofline": lambda: roofline_figure(report), "memory": lambda: memory_figure(report)})
    if output_format == "json":
        from gemmsim.report.json import render
    else:
        from gemmsim.report.text import render
    emit(render(report), output)
    return FAILED if report.verified.ok is False or report.findings else 0
