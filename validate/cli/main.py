"""The `gemmsim-validate` command: loads a subcommand's module only when it is asked for; errors become one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.version import __version__

USAGE_OR_ENVIRONMENT = 2
INTERRUPTED = 130  # as gemmsim.support.processes has it

# The module .cli.<name> (with _ for -) holds `command`; the text stands here so that --help imports none of them.
COMMANDS = {
    "compare": "Predict every record and show the errors, worst first.",
    "ablate": "Show the errors without each mechanism of the timing model.",
    "measure": "Run kernels on this machine's GPU: results, times, counters.",
    "ladder": "Print the measured ladder as a Markdown table.",
    "microbench": "Measure what a GPU preset needs, and write a file for --gpu.",
    "import-ncu": "Show a launch that Nsight Compute profiled beside its prediction.",
    "calibrate": "Fit parameters of the timing model to records.",
    "speed": "Print the time and memory of predictions by size.",
    "store": "Put measured records and their machine code into a folder of records.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in COMMANDS:
            hint = nearest(cmd_name, COMMANDS)
            raise GemmsimError(f"unknown command '{cmd_name}'{hint}: known are {', '.join(COMMANDS)}")
        module = importlib.import_module(f"{__package__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=_Lazy,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit status: 0 fine, 1 a case failed or an expectation did, 2 usage or environment.",
)
@click.version_option(__version__, prog_name="gemmsim-validate", message="%(prog)s %(version)s")
def cli() -> None:
    """Hold gemmsim's predictions against real GPUs."""


def main(args: Sequence[str]) -> int:
    """Runs one command line; returns its exit status. Data goes to stdout, everything else to stderr."""
    try:
        status = cli.main(args=list(args), prog_name="gemmsim-validate", standalone_mode=False)
    except GemmsimError as error:
        return _fail(str(error))
    except click.ClickException as error:
        return _fail(f"{error.format_message()} (gemmsim-validate --help shows what is known)")
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def run() -> None:
    """Entry point of the installed command and of `python -m gemmsim_validate`."""
    status = main(sys.argv[1:])
    if status == INTERRUPTED:
        from gemmsim.support.processes import leave_soon  # only now: multiprocessing takes its time

        leave_soon()
    sys.exit(status)


def _fail(message: str) -> int:
    click.echo(f"error: {' '.join(message.split())}", err=True)
    return USAGE_OR_ENVIRONMENT
