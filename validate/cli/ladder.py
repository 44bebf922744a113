"""gemmsim-validate ladder: the measured ladder as a Markdown table."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--size", type=click.IntRange(1), default=4096, show_default=True, help="M = N = K.")
@click.option("--shares/--no-shares", default=True, help="Execute each rung for its share of multiply-adds.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File instead of stdout.")
def command(folder: Path | None, size: int, shares: bool, output: Path | None) -> int:
    """Print the ladder as a Markdown table from the records in FOLDER (default: the H200's)."""
    from ..ladder_table import ladder_rows, markdown, product_shares
    from ..records import FOLDER, load_cases, write_bytes

    cases = load_cases(folder or FOLDER / "h200")
    rows = ladder_rows(cases, size, product_shares if shares else lambda *_: {})
    text = markdown(rows, size, cases[0].gpu)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_bytes(output, text.encode())
    return 0
