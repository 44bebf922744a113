"""gemmsim-validate store: puts measured records into a folder, one file for each kernel, with the code that ran."""

from __future__ import annotations

from pathlib import Path

import click

from gemmsim.support.plurals import plural

from .options import PATH


@click.command()
@click.argument("records", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--bundle", type=click.Path(path_type=Path, exists=True), required=True, help="What was measured.")
@click.option("--into", type=PATH, required=True, help="Folder, such as validate/records/h200.")
def command(records: Path, bundle: Path, into: Path) -> int:
    """Put the records of a run in place; those of the same id are replaced, unless the new ones say less."""
    from ..records.store import store

    stored, left_out = store(records, bundle, into)
    click.echo(f"{plural(stored, 'record')} stored in {into}", err=True)
    for line in left_out:
        click.echo(f"left out: {line}", err=True)
    return 1 if left_out else 0
