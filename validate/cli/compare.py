"""gemmsim-validate compare: predictions held against records."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

FORMATS = ("text", "json", "md", "html")


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--gpu", multiple=True, help="Only records of this GPU; repeatable, as all filters.")
@click.option("--kernel", multiple=True, help="Only this kernel.")
@click.option("--size", multiple=True, type=int, help="Only M = N = K = SIZE.")
@click.option("--kind", type=click.Choice(["measured", "published"]), multiple=True)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File instead of stdout.")
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Also write the plots there, as SVG.")
@click.option("--jobs", type=click.IntRange(1), default=None, help="Processes; as many as cores by default.")
@click.option("--cache/--no-cache", default=True, help="Keep predictions while nothing they depend on changes.")
@click.option("--update", is_flag=True, help="Write the committed figures, validate/accuracy.json.")
def command(
    folders: tuple[Path, ...],
    gpu: tuple[str, ...],
    kernel: tuple[str, ...],
    size: tuple[int, ...],
    kind: tuple[str, ...],
    form: str,
    output: Path | None,
    plots: Path | None,
    jobs: int | None,
    cache: bool,
    update: bool,
) -> int:
    """Predict every record in FOLDERS (default: those that ship) and show the errors, worst first.

    Exit status 1 if an exact counter differs without a reason on record, or a case could not be predicted.
    """
    from gemmsim.compile import default_cache

    from ..compare import accuracy
    from ..compare.document import sections
    from ..compare.judge import judge_all
    from ..compare.predict import Prediction, predict_all
    from ..compare.select import every_record
    from ..records import Case, write_bytes

    cases = [
        case
        for case in every_record(folders)
        if (not gpu or case.gpu in gpu)
        and (not kernel or case.name in kernel)
        and (not size or (case.m == case.n == case.k and case.n in size))
        and (not kind or case.kind in kind)
    ]
    if not cases:
        raise GemmsimError("no record fits these filters")
    if update and (gpu or kernel or size or kind or folders):
        raise GemmsimError("--update writes the figures of all records: it takes no filter and no folder")

    def progress(case: Case, prediction: Prediction, kept: bool) -> None:
        how = "kept" if kept else f"{prediction.seconds:.1f} s"
        click.echo(f"{case.gpu} {case.id}: {prediction.error or how}", err=True)

    folder = default_cache().folder / "predictions" if cache else None
    predictions = predict_all(cases, folder, jobs or os.cpu_count() or 1, progress)
    judged = judge_all(cases, predictions)
    if update:
        accuracy.write(judged)
    made_by = shlex.join(["gemmsim-validate", "compare", *_options(gpu, kernel, size, kind), "--format", form])
    drawn = {}
    if form == "html" or plots:
        from ..compare.plots import plots as draw

        drawn = draw(judged)
    if plots:
        for title, svg in drawn.items():
            write_bytes(plots / f"{title.lower().replace(' ', '-')}.svg", svg.encode())
    if form == "json":
        from ..compare.data import as_data

        text = json.dumps(as_data(judged), indent=1) + "\n"
    else:
        from ..compare import render

        found = sections(judged)
        if form == "html":
            text = render.page(found, drawn)
        else:
            text = render.markdown(found, made_by) if form == "md" else render.text(found)
    if output:
        write_bytes(output, text.encode())
    else:
        click.echo(text, nl=False)
    return 1 if any(row.broken or row.prediction.error for row in judged) else 0


def _options(gpu: tuple[str, ...], kernel: tuple[str, ...], size: tuple[int, ...], kind: tuple[str, ...]) -> list[str]:
    pairs = (("--gpu", gpu), ("--kernel", kernel), ("--size", size), ("--kind", kind))
    return [str(part) for name, values in pairs for value in values for part in (name, value)]
