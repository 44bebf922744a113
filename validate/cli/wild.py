"""gemmsim-validate wild: runs kernels of public repositories and says which compute what they should."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

from .options import emit, jobs_option, output_option

FORMATS = ("text", "md")
LIMIT_S = 300.0  # of a case on all its architectures


@click.command()
@click.option(
    "--root",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of checkouts, OWNER+NAME each.",
)
@click.option("--manifest", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Default: what ships.")
@click.option("--kernel", "kernels", multiple=True, metavar="PATTERN", help="Only cases like *owner/name*; repeatable.")
@click.option("--arch", "architectures", multiple=True, help="Only this architecture; repeatable. Default: all.")
@click.option("--results", type=click.Path(dir_okay=False, path_type=Path), help="JSON that is read, and added to.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
@jobs_option
def command(
    root: Path,
    manifest: Path | None,
    kernels: tuple[str, ...],
    architectures: tuple[str, ...],
    results: Path | None,
    form: str,
    output: Path | None,
    jobs: int | None,
) -> int:
    """Compile and run kernels of public repositories, and compare their results with NumPy's.

    The manifest names repositories, commits and launches. Nothing is downloaded: take the checkouts yourself. With
    --results, pairs of a kernel and an architecture that this run leaves out keep their former outcome. Exit status 1
    if a result is wrong.
    """
    from gemmsim.support.processes import available_cpus

    from ..documents import render
    from ..records.select import replayable_cases
    from ..wild.document import MADE_BY, TITLE, sections
    from ..wild.manifest import ARCHITECTURES, FOLDER, read_manifest
    from ..wild.measured import RECORDS, measured_section
    from ..wild.outcomes import WRONG, Outcome, load, merged, save
    from ..wild.processes import run_all
    from ..wild.programs import load_runs, programs_section

    if unknown := set(architectures) - set(ARCHITECTURES):
        raise GemmsimError(f"--arch {', '.join(sorted(unknown))}: the manifest is for {', '.join(ARCHITECTURES)}")
    folder = manifest or FOLDER
    every = read_manifest(folder)
    cases = [case for case in every if not kernels or any(fnmatch(case.id, pattern) for pattern in kernels)]
    if not cases:
        raise GemmsimError("no case of the manifest fits --kernel")
    done = 0

    former = load(results) if results and results.exists() else []
    kept = {case.id for case in every}
    new: list[Outcome] = []

    def together() -> list[Outcome]:
        return [one for one in merged(former, new) if one.case in kept]

    def progress(one: Outcome) -> None:
        nonlocal done
        done += 1
        new.append(one)
        if results:
            save(together(), results)
        click.echo(f"[{done}] {one.arch:6} {one.case}: {one.status} {one.reason}  {one.seconds:.1f} s", err=True)

    wanted = architectures or ARCHITECTURES
    run_all(cases, wanted, folder, root, jobs or available_cpus(), LIMIT_S, progress)
    outcomes = together()
    parts = sections(every, outcomes)
    if form == "md" and manifest is None:
        parts[-1:-1] = [measured_section(replayable_cases([RECORDS])), programs_section(load_runs())]
    emit(render.markdown(parts, MADE_BY, TITLE) if form == "md" else render.text(parts), output)
    return 1 if any(one.status == WRONG for one in outcomes) else 0
