"""gemmsim-validate wild-programs: runs programs of public repositories without a GPU."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

from .options import emit, output_option


@click.command()
@click.option(
    "--root",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of checkouts, OWNER+NAME each.",
)
@click.option("--program", "patterns", multiple=True, metavar="PATTERN", help="Only programs like *name*; repeatable.")
@click.option("--gpu", default="h200", show_default=True)
@click.option("--limit", "limit_s", default=600.0, show_default=True, help="Seconds for each program.")
@click.option("--runs", type=click.Path(dir_okay=False, path_type=Path), help="JSON that is read, and added to.")
@output_option
def command(
    root: Path, patterns: tuple[str, ...], gpu: str, limit_s: float, runs: Path | None, output: Path | None
) -> int:
    """Run programs of public repositories by `gemmsim run`, and list how they ended.

    They are code that runs; take the checkouts yourself. Packages that they import must be installed. Programs that
    this run leaves out keep their former outcome in --runs (default: what ships). Exit status 1 if one raises.
    """
    from ..documents import render
    from ..wild.programs import RAISED, RUNS, load_runs, programs_section, read_programs, run, save_runs

    every = read_programs()
    chosen = [one for one in every if not patterns or any(fnmatch(one.id, pattern) for pattern in patterns)]
    if not chosen:
        raise GemmsimError("no program of the manifest fits --program")
    found = {one.program: one for one in load_runs(runs or RUNS)}
    for one in chosen:
        found[one.id] = run(one, root, gpu, limit_s)
        click.echo(f"{one.id}: {found[one.id].outcome} {found[one.id].said}", err=True)
        save_runs([found[each.id] for each in every if each.id in found], runs or RUNS)
    listed = [found[one.id] for one in every if one.id in found]
    emit(render.text([programs_section(listed)]), output)
    return 1 if any(found[one.id].outcome == RAISED for one in chosen) else 0
