"""gemmsim-validate capture: records the kernel launches of a program on a real GPU."""

from __future__ import annotations

from pathlib import Path

import click

from .options import PATH


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o",
    "--output",
    type=PATH,
    default="captured",
    show_default=True,
    metavar="FOLDER",
    help="The bundle: a new folder.",
)
@click.option("--limit", type=click.IntRange(1), default=10_000, show_default=True, help="Most distinct launches.")
@click.option("--contents", type=click.IntRange(0), default=0, metavar="BYTES", help="Store arrays of up to so many.")
@click.option("--library-code", is_flag=True, help="Store code of installed libraries, too: not to be passed on.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- PROGRAM [ARG]...")
def command(output: Path, limit: int, contents: int, library_code: bool, program: tuple[str, ...]) -> int:
    """Run a program on this machine's GPU and record each distinct kernel launch.

    \b
    gemmsim-validate capture -- ./program 1024
    gemmsim analyze captured#3 --gpu h200

    The second command runs anywhere. Arrays are described by their sizes;
    their contents are stored only with --contents. Code of an installed
    library, such as cuBLAS, is named by package, version and hash.
    """
    from ..capture.__main__ import run
    from ..capture.run import Options

    return run(list(program), output, Options(limit, contents, library_code))
