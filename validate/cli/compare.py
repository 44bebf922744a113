"""gemmsim-validate compare: holds predictions against records."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.group import gathered
from gemmsim.support.errors import GemmsimError

from .options import emit, folders_argument, jobs_option, made_by, output_option

if TYPE_CHECKING:
    from ..compare.judge import Judged
    from ..compare.predict import Prediction
    from ..records.case import Case

FORMATS = ("text", "json", "md", "html")


@dataclass(frozen=True)
class Filters:
    """The options that choose which cases are compared; an empty one lets all cases pass."""

    gpu: tuple[str, ...]
    kernel: tuple[str, ...]
    size: tuple[int, ...]
    kind: tuple[str, ...]

    def fit(self, case: Case) -> bool:
        """Whether a case passes all filters."""
        return (
            (not self.gpu or case.gpu in self.gpu)
            and (not self.kernel or case.name in self.kernel)
            and (not self.size or (case.is_square and case.n in self.size))
            and (not self.kind or case.kind in self.kind)
        )


@click.command()
@folders_argument
@click.option("--gpu", multiple=True, help="Only records of this GPU; repeatable, as all filters.")
@click.option("--kernel", multiple=True, help="Only this kernel.")
@click.option("--size", multiple=True, type=int, help="Only M = N = K = SIZE.")
@click.option("--kind", type=click.Choice(["measured", "published"]), multiple=True)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Also write the plots there, as SVG.")
@jobs_option
@click.option("--cache/--no-cache", default=True, help="Keep predictions while nothing they depend on changes.")
@click.option("--update", is_flag=True, help="Write the committed figures, validate/accuracy.json.")
@gathered("filters", Filters)
def command(
    folders: tuple[Path, ...],
    filters: Filters,
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
    from ..compare.judge import judge_all
    from ..compare.predict import predict_all
    from ..records.select import replayable_cases

    cases = [case for case in replayable_cases(folders) if filters.fit(case)]
    if not cases:
        raise GemmsimError("no record fits these filters")
    if update and (folders or any(vars(filters).values())):
        raise GemmsimError("--update writes the figures of all records: it takes no filter and no folder")

    def progress(case: Case, prediction: Prediction, was_kept: bool) -> None:
        how = "kept" if was_kept else f"{prediction.seconds:.1f} s"
        click.echo(f"{case.gpu} {case.id}: {prediction.error or how}", err=True)

    folder = default_cache().folder / "predictions" if cache else None
    judged = judge_all(cases, predict_all(cases, folder, jobs or os.cpu_count() or 1, progress))
    if update:
        accuracy.write(judged)
    emit(_document(judged, form, plots, made_by("compare", vars(filters), form)), output)
    return 1 if any(row.broken or row.prediction.error for row in judged) else 0


def _document(judged: list[Judged], form: str, plots_folder: Path | None, made_by: str) -> str:
    """Return the comparison in the format `form`; also write the plots to `plots_folder` where that is given."""
    from ..compare.document import sections
    from ..documents import render
    from ..records.files import write_bytes

    plots = {}
    if form == "html" or plots_folder:
        from ..compare import plots as plotting

        plots = plotting.plots(judged)
    if plots_folder:
        for title, svg in plots.items():
            write_bytes(plots_folder / f"{title.lower().replace(' ', '-')}.svg", svg.encode())
    if form == "json":
        from ..compare.as_json import as_data

        return json.dumps(as_data(judged), indent=1) + "\n"
    if form == "html":
        return render.page(sections(judged), plots)
    return render.markdown(sections(judged), made_by) if form == "md" else render.text(sections(judged))
