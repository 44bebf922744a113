"""gemmsim-validate captured: predicts the launches of a bundle, beside what was measured."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import click

from .options import emit, output_option


@click.command()
@click.option("--gpu", default="h200", show_default=True)
@click.option("--launch", "patterns", multiple=True, metavar="PATTERN", help='Kernels or problems like this: "tf32 *".')
@click.option("--format", "form", type=click.Choice(["text", "md"]), default="text", show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@output_option
def command(gpu: str, patterns: tuple[str, ...], form: str, jobs: int, folder: Path, output: Path | None) -> int:
    """Predict the launches of a bundle of `gemmsim-validate capture`.

    Shown are instructions beside ncu's, where the bundle has them, and the time from
    the kernel's begin to its end beside CUPTI's.
    """
    from ..capture.compare import captured_section, compare
    from ..documents import render

    found = []
    for one in compare(folder, gpu, lambda text: not patterns or any(fnmatch(text, p) for p in patterns), jobs):
        found.append(one)
        click.echo(f"#{one.number} {one.shown[1][:60]}: {one.error or f'{one.time_us[0]:.1f} us'}", err=True)
    section = captured_section(found, f"{folder.name} on {gpu}")
    if form == "text" or section.table is None:
        emit(render.text([section]), output)
    else:
        emit("\n".join([*section.text, "", *render.markdown_table(section.table), ""]), output)
    return 0
