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

from ..records.ways import TIMES
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
    times: tuple[str, ...]

    def text(self) -> str:
        """Say what passes: "all" or the filters that are given."""
        given = [f"{name} {value}" for name, values in vars(self).items() for value in values]
        return ", ".join(given) or "all"

    def fit(self, case: Case) -> bool:
        """Whether a case passes all filters."""
        return (
            (not self.gpu or case.gpu in self.gpu)
            and (not self.kernel or case.name in self.kernel)
            and (not self.size or (case.is_square and case.n in self.size))
            and (not self.kind or case.kind in self.kind)
            and (not self.times or bool(case.timed(self.times).times))
        )


@dataclass(frozen=True)
class How:
    """The options on how predictions are made: in how many processes, and whether they are kept."""

    jobs: int | None
    cache: bool


@click.command()
@folders_argument
@click.option("--gpu", multiple=True, help="Only records of this GPU; repeatable, as all filters.")
@click.option("--kernel", multiple=True, help="Only this kernel.")
@click.option("--size", multiple=True, type=int, help="Only M = N = K = SIZE.")
@click.option("--kind", type=click.Choice(["measured", "published"]), multiple=True)
@click.option(
    "--times",
    type=click.Choice(TIMES),
    multiple=True,
    help="Compare the times taken in this way, without counters, and not those that come first.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
@click.option("--plots", type=click.Path(path_type=Path, file_okay=False), help="Also write the plots there, as SVG.")
@jobs_option
@click.option("--cache/--no-cache", default=True, help="Keep predictions while nothing they depend on changes.")
@click.option("--judge", is_flag=True, help="Show the half of the records to judge by, too, and log the look.")
@click.option("--update", is_flag=True, help="Write the committed figures, validate/accuracy.json; needs --judge.")
@gathered("filters", Filters)
@gathered("how", How)
def command(
    folders: tuple[Path, ...],
    filters: Filters,
    form: str,
    output: Path | None,
    plots: Path | None,
    how: How,
    judge: bool,
    update: bool,
) -> int:
    """Predict the records for study in FOLDERS (default: those that ship) and show the errors, worst first.

    A record is compared with its times of launches with rotated operands, else published, else back to back; --times
    chooses others. Of records to judge by, half of all, --judge shows the means. Exit status 1 if an exact counter
    differs without a reason on record, or a case could not be predicted.
    """
    from gemmsim.compile import default_cache

    from ..compare import accuracy, halves
    from ..compare.judge import judge_all
    from ..compare.predict import predict_all
    from ..records.case import STUDY
    from ..records.select import replayable_cases

    fitting = [case for case in replayable_cases(folders) if filters.fit(case)]
    if filters.times:
        fitting = [case.timed(filters.times) for case in fitting]
    cases = [case for case in fitting if judge or case.half == STUDY]
    if not cases:
        raise GemmsimError(
            "records that fit these filters are all to judge by: --judge" if fitting else "no record fits these filters"
        )
    if update and (not judge or folders or any(vars(filters).values())):
        raise GemmsimError("--update writes the figures of all records: it takes --judge, no filter and no folder")

    def progress(case: Case, prediction: Prediction, was_kept: bool) -> None:
        took = "kept" if was_kept else f"{prediction.seconds:.1f} s"
        click.echo(f"{case.gpu} {case.id}: {prediction.error or took}", err=True)

    folder = default_cache().folder / "predictions" if how.cache else None
    judged = judge_all(cases, predict_all(cases, folder, how.jobs or os.cpu_count() or 1, progress))
    if update:
        accuracy.write(judged)
    if judge:
        halves.log(judged, ", ".join([filters.text(), *(folder.name for folder in folders)]))
    emit(_document(judged, form, plots, made_by("compare", vars(filters), form, ["judge"] * judge)), output)
    return 1 if any(row.broken or row.prediction.error for row in judged) else 0


def _document(judged: list[Judged], form: str, plots_folder: Path | None, made_by: str) -> str:
    """Return the comparison in the format `form`; also write the plots to `plots_folder` where that is given."""
    from ..compare.document import sections
    from ..compare.halves import of_half
    from ..documents import render
    from ..records.case import STUDY
    from ..records.files import write_bytes

    plots = {}
    if form == "html" or plots_folder:
        from ..compare import plots as plotting

        plots = plotting.plots(of_half(judged, STUDY))
    if plots_folder:
        for title, svg in plots.items():
            write_bytes(plots_folder / f"{title.lower().replace(' ', '-')}.svg", svg.encode())
    if form == "json":
        from ..compare.as_json import as_data

        return json.dumps(as_data(judged), indent=1) + "\n"
    if form == "html":
        return render.page(sections(judged), plots)
    return render.markdown(sections(judged), made_by) if form == "md" else render.text(sections(judged))
