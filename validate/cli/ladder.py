"""gemmsim-validate ladder: prints the measured times of the ladder's kernels as a Markdown table."""

from __future__ import annotations

from pathlib import Path

import click

from .options import FOLDERS, emit, output_option


@click.command()
@click.argument("folder", type=FOLDERS, required=False)
@click.option("--size", type=click.IntRange(1), default=4096, show_default=True, help="M = N = K.")
@click.option("--shares/--no-shares", default=True, help="Execute each rung for its share of multiply-adds.")
@output_option
def command(folder: Path | None, size: int, shares: bool, output: Path | None) -> int:
    """Print the ladder as a Markdown table from the records in FOLDER (default: the H200's)."""
    from ..ladder.markdown import library_markdown, markdown
    from ..ladder.rows import library_rows, product_shares, rows_of_runs
    from ..records.case import load_cases
    from ..records.files import FOLDER

    runs = [load_cases(one) for one in ((folder,) if folder else (FOLDER / "h200", FOLDER / "h200_wgmma"))]
    rows = rows_of_runs(runs, size, product_shares if shares else lambda *_: {})
    library = library_rows(runs)
    emit(markdown(rows, size, runs[0][0].gpu) + (f"\n{library_markdown(library)}" if library else ""), output)
    return 0
