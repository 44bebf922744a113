"""gemmsim-validate ablate: shows the errors of times without each mechanism of the timing model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

from .options import emit, folders_argument, jobs_option, made_by, output_option

FORMATS = ("text", "json", "md")


@click.command()
@folders_argument
@click.option("--kernel", multiple=True, help="Only this kernel; repeatable, as all filters.")
@click.option("--size", multiple=True, type=int, help="M = N = K = SIZE in place of 1000, 1024 and 2048.")
@click.option("--without", multiple=True, metavar="MECHANISM", help="Only without this one, as the table names it.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
@jobs_option
def command(
    folders: tuple[Path, ...],
    kernel: tuple[str, ...],
    size: tuple[int, ...],
    without: tuple[str, ...],
    form: str,
    output: Path | None,
    jobs: int | None,
) -> int:
    """Time the ladder's records of an H200 without each mechanism of the timing model in turn.

    Records are those in FOLDERS (default: those that ship). Exit status 1 if a case could not be predicted.
    """
    from gemmsim.support.processes import available_cpus

    from ..ablate.document import TITLE, as_data, sections
    from ..ablate.effects import ablation
    from ..ablate.mechanisms import chosen
    from ..ablate.run import SIZES, Timed, ablate_all, fits
    from ..documents import render
    from ..records.case import Case
    from ..records.select import replayable_cases

    mechanisms = chosen(without)
    cases = [
        case for case in replayable_cases(folders) if fits(case, size or SIZES) and (not kernel or case.name in kernel)
    ]
    if not cases:
        raise GemmsimError("no measured record of a rung on an H200 fits these filters")
    done = 0

    def progress(case: Case, timed: Timed) -> None:
        nonlocal done
        done += 1
        click.echo(f"[{done}/{len(cases)}] {case.id}: {timed.error or f'{timed.seconds:.1f} s'}", err=True)

    timed = ablate_all(cases, [one.key for one in mechanisms], jobs or available_cpus(), progress)
    found = ablation(cases, timed, mechanisms)
    if found is None:
        raise GemmsimError(f"no case could be predicted: {cases[0].id}: {timed[cases[0].id].error}")
    if form == "json":
        text = json.dumps(as_data(found), indent=1) + "\n"
    elif form == "md":
        filters = {"kernel": kernel, "size": size, "without": without}
        text = render.markdown(sections(found), made_by("ablate", filters, form), TITLE)
    else:
        text = render.text(sections(found))
    emit(text, output)
    return 1 if found.failed else 0
