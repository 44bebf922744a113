"""gemmsim-validate ablate: the error without each mechanism of the timing model."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

FORMATS = ("text", "json", "md")


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--kernel", multiple=True, help="Only this kernel; repeatable, as all filters.")
@click.option("--size", multiple=True, type=int, help="M = N = K = SIZE in place of 1000, 1024 and 2048.")
@click.option("--without", multiple=True, metavar="MECHANISM", help="Only without this one, as the table names it.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File instead of stdout.")
@click.option("--jobs", type=click.IntRange(1), default=None, help="Processes; as many as cores by default.")
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
    from ..compare import render
    from ..compare.select import every_record
    from ..records import Case, write_bytes

    mechanisms = chosen(without)
    cases = [
        case for case in every_record(folders) if fits(case, size or SIZES) and (not kernel or case.name in kernel)
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
        made_by = shlex.join(["gemmsim-validate", "ablate", *_options(kernel, size, without), "--format", form])
        text = render.markdown(sections(found), made_by, TITLE)
    else:
        text = render.text(sections(found))
    if output:
        write_bytes(output, text.encode())
    else:
        click.echo(text, nl=False)
    return 1 if found.failed else 0


def _options(kernel: tuple[str, ...], size: tuple[int, ...], without: tuple[str, ...]) -> list[str]:
    pairs = (("--kernel", kernel), ("--size", size), ("--without", without))
    return [str(part) for name, values in pairs for value in values for part in (name, value)]
