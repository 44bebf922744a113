"""The `gemmsim` command: loads a subcommand's module only when it is asked for, and turns errors into one line."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.version import __version__

USAGE_OR_ENVIRONMENT = 2
INTERRUPTED = 130  # as gemmsim.support.processes has it

# The module gemmsim.cli.<name> holds `command`; the text stands here so that --help imports none of them.
COMMANDS = {
    "analyze": "Predict counters, occupancy, stalls and time of one kernel launch.",
    "compare": "Hold the rungs of the ladder, or several GPUs, side by side, and say why.",
    "sweep": "Rank tile sizes and other tunables over sizes and GPUs, by predicted time.",
    "sensitivity": "Say which number of the GPU, 10 % better, saves how much time.",
    "check": "Hold one launch against expectations or a baseline: text, JSON or SARIF.",
    "explain": "Say what a metric, stall reason or term means, and what to do about it.",
    "report": "The prediction as one HTML file, with drawings to step through.",
    "timeline": "Show what the warps of one SM do, cycle by cycle: text, HTML, Perfetto.",
    "list": "List the built-in kernels, the GPU presets or the metrics.",
    "doctor": "Check what this installation can do, and say what is missing.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            hint = nearest(cmd_name, COMMANDS)
            raise GemmsimError(f"unknown command '{cmd_name}'{hint}: known are {', '.join(COMMANDS)}")
        command: click.Command = importlib.import_module(f"gemmsim.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=_Lazy,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit status: 0 fine, 1 an expectation failed, 2 usage or environment.",
)
@click.version_option(__version__, prog_name="gemmsim", message="%(prog)s %(version)s")
def cli() -> None:
    """Predict what a CUDA GEMM kernel does on a GPU that is not there."""


def main(args: Sequence[str]) -> int:
    """Runs one command line; returns its exit status. Data goes to stdout, everything else to stderr."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status = cli.main(args=list(args), prog_name="gemmsim", standalone_mode=False)
    except GemmsimError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _fail(f"{error.format_message()} (gemmsim --help shows what is known)")
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:  # the reader has gone, as in `gemmsim ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status if isinstance(status, int) else 0


def run() -> None:
    """Entry point of the installed command and of `python -m gemmsim`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 still gets every line
    status = main(sys.argv[1:])
    if status == INTERRUPTED:
        from gemmsim.support.processes import leave_soon  # only now: multiprocessing takes its time

        leave_soon()
    sys.exit(status)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"warning: {' '.join(str(message).split())}", err=True)


def _fail(message: str) -> int:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    return USAGE_OR_ENVIRONMENT
