"""Defines the command `gemmsim` and lists its subcommands, each of which is a module of this package."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from gemmsim.cli.group import exit_status, lazy_group, run_and_exit
from gemmsim.support.blas import use_one_thread
from gemmsim.support.version import __version__

COMMANDS = {
    "analyze": "Predict counters, occupancy, stalls and time of one kernel launch.",
    "launches": "Predict several launches in order, on one memory and one L2.",
    "run": "Run a program as it is on a GPU that is not there; predict its launches.",
    "compare": "Hold the rungs of the ladder, or several GPUs, side by side, and say why.",
    "sweep": "Rank tile sizes and other tunables over sizes and GPUs, by predicted time.",
    "sensitivity": "Say which number of the GPU, 10 % better, saves how much time.",
    "check": "Hold one launch against expectations or a baseline: text, JSON or SARIF.",
    "explain": "Say what a metric, stall reason or term means, and what to do about it.",
    "report": "The prediction as one HTML file, with drawings to step through.",
    "timeline": "Show what the warps of one SM do, cycle by cycle: text, HTML, Perfetto.",
    "learn": "Climb the ladder as a course: predict, look, explain, next rung.",
    "gpu": "Show where a GPU's numbers come from, or describe a GPU by its data sheet.",
    "list": "List the built-in kernels, the GPU presets or the metrics.",
    "decode": "List the kernels of a file, what they need, and what gemmsim lacks for them.",
    "doctor": "Check what this installation can do, and say what is missing.",
}


def _defaults(name: str, command: click.Command, commands: tuple[str, ...]) -> dict[str, Any]:
    from gemmsim.cli.defaults import defaults_of  # only a subcommand needs it

    return defaults_of(name, command, commands)


@click.command(
    cls=lazy_group("gemmsim.cli", COMMANDS, _defaults),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit status: 0 fine, 1 an expectation failed, 2 usage or environment.",
)
@click.version_option(__version__, prog_name="gemmsim", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Predict what a CUDA GEMM kernel does on a GPU that is not there."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(args: Sequence[str]) -> int:
    """Run one command line; return its exit status."""
    return exit_status(cli, "gemmsim", args)


def run() -> None:
    """Run the process's command line. The installed command and `python -m gemmsim` start here."""
    if sys.argv[1:2] != ["run"]:  # a program of the user's runs in this process, with NumPy as it knows it
        use_one_thread()
    run_and_exit(main)
