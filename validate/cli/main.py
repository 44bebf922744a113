"""The `gemmsim-validate` command and its subcommands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gemmsim.cli.group import exit_status, lazy_group, run_and_exit
from gemmsim.support.version import __version__

COMMANDS = {
    "compare": "Predict every record and show the errors, worst first.",
    "ablate": "Show the errors without each mechanism of the timing model.",
    "measure": "Run kernels on this machine's GPU: results, times, counters.",
    "capture": "Record a program's kernel launches, to predict them anywhere.",
    "captured": "Predict the launches that capture recorded.",
    "ladder": "Print the measured ladder as a Markdown table.",
    "microbench": "Measure what a GPU preset needs, and write a file for --gpu.",
    "import-ncu": "Show a launch that Nsight Compute profiled beside its prediction.",
    "calibrate": "Fit parameters of the timing model to records.",
    "sampling": "Hold samples of blocks against full executions.",
    "speed": "Print the time and memory of predictions by size.",
    "opcodes": "Compare each scalar instruction with a GPU, bit for bit.",
    "wild-bundle": "Compile twenty kernels of public repositories, to be measured on a GPU.",
    "wild": "Run kernels of public repositories and compare results with NumPy's.",
    "wild-programs": "Run programs of public repositories without a GPU.",
    "store": "Put measured records and their machine code into a folder of records.",
}


@click.command(
    cls=lazy_group(f"{__package__}", COMMANDS),
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="Exit status: 0 fine, 1 a case failed or an expectation did, 2 usage or environment.",
)
@click.version_option(__version__, prog_name="gemmsim-validate", message="%(prog)s %(version)s")
def cli() -> None:
    """Hold gemmsim's predictions against real GPUs."""


def main(args: Sequence[str]) -> int:
    """Run one command line; return its exit status."""
    return exit_status(cli, "gemmsim-validate", args)


def run() -> None:
    """Entry point of the installed command and of `python -m gemmsim_validate`."""
    run_and_exit(main)
