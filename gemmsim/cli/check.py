"""The command `gemmsim check`, which compares a predicted launch with expectations and baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import gathered
from gemmsim.cli.options import FAILED, LaunchOptions
from gemmsim.cli.output import emit, show_printed
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.checks.outcome import Checked, Outcome
    from gemmsim.launch.spec import LaunchSpec

FORMS = ("text", "json", "sarif", "junit", "github", "markdown")


@click.command("check")
@gathered("options", LaunchOptions)
@click.option(
    "--expect", "expectations", multiple=True, metavar="EXPR", help="What should hold: 'bank_conflicts == 0'."
)
@click.option("--baseline", metavar="FILE", help="Hold the launch against the values in FILE.")
@click.option("--update", is_flag=True, help="Write the values of now into the baseline instead.")
@click.option("--sanitize", is_flag=True, help="Expect no race, bad address or uneven barrier.")
@format_option(*FORMS)
@output_option
@click.option(
    "--also", multiple=True, metavar="FORM=FILE", help="Write this form to a file, too: junit=check.xml. Repeat it."
)
def command(
    options: LaunchOptions,
    expectations: tuple[str, ...],
    baseline: str | None,
    update: bool,
    sanitize: bool,
    output_format: str,
    output: str | None,
    also: tuple[str, ...],
) -> int:
    """Hold one kernel launch against what you expect of it.

    \b
    gemmsim check --kernel tiled --size 256 --sanitize \\
        --expect 'bank_conflicts == 0' --expect 'sectors_per_request at 31 <= 4'
    gemmsim check my.cu --grid 8 --block 256 --arg ... --baseline my.json

    EXPR is NAME, maybe "at" a line (its number, or text that stands in it), a
    comparison and a number. Names: bank_conflicts, sectors_per_request,
    sector_excess, wavefronts_per_request, occupancy, registers, time_us, ... or a
    counter (gemmsim list metrics). Per request the worst instruction counts. TARGET and
    the other options are those of gemmsim analyze, and C is checked as there.

    With -o the text goes to stderr, whatever the form in the file. markdown is
    for the summary of a job, and is appended to what a file has:
    --also markdown=$GITHUB_STEP_SUMMARY.

    Exit status: 0 all hold, 1 one does not, 2 usage or environment.
    """
    if not (expectations or baseline or sanitize):
        raise GemmsimError("nothing to check: give --expect EXPR, --baseline FILE or --sanitize")
    if update and not baseline:
        raise GemmsimError("--update writes a baseline: say which with --baseline FILE")
    files = [_form_and_file(text) for text in also]
    from gemmsim.checks import expectation
    from gemmsim.checks.outcome import Checked
    from gemmsim.cli.requests import requested_launch
    from gemmsim.compile.beginning import beginning
    from gemmsim.report.layout.words import launch_name

    wanted = [expectation.parse(text) for text in expectations]
    spec = requested_launch(options)
    outcomes = _outcomes(spec, wanted, Path(baseline) if baseline else None, update, sanitize)
    checked = Checked(f"{launch_name(spec.labels)} on {spec.gpu.name}", beginning(spec.kernel), tuple(outcomes))
    for form, file in files:
        written = _rendered(checked, form)
        former = Path(file).read_text(encoding="utf-8") if form == "markdown" and Path(file).is_file() else ""
        emit(former + written, file)
    if output is not None:
        click.echo(_rendered(checked, "text"), nl=False, err=True)
    emit(_rendered(checked, output_format), output)
    return 0 if checked.ok else FAILED


def _form_and_file(text: str) -> tuple[str, str]:
    form, equals, file = text.partition("=")
    if form not in FORMS or not equals or not file:
        raise GemmsimError(f"--also {text}: wants FORM=FILE, such as junit=check.xml; forms are {', '.join(FORMS)}")
    return form, file


def _rendered(checked: Checked, form: str) -> str:
    from gemmsim.checks import github, junit, render, sarif

    renderers = {
        "text": render.render_text,
        "json": render.render_json,
        "sarif": sarif.render,
        "junit": junit.render,
        "github": github.render,
        "markdown": render.render_markdown,
    }
    return renderers[form](checked)


def _outcomes(
    spec: LaunchSpec, wanted: list[Any], baseline: Path | None, update: bool, sanitize: bool
) -> list[Outcome]:
    from gemmsim import api
    from gemmsim.checks import expectation
    from gemmsim.checks.hazard_outcomes import sanitizer_outcomes, verified_outcome
    from gemmsim.checks.outcome import Outcome
    from gemmsim.report.hazards import fatal

    outcomes: list[Outcome] = []
    if sanitize:
        found = api.sanitize(spec)
        outcomes += sanitizer_outcomes(found)
        if fatal(found):
            reason = "not known, the launch would fail on a GPU"
            return outcomes + [Outcome(e.name, False, f"{e}: {reason}") for e in wanted]
    report = api.analyze(spec)
    show_printed(report.printed)
    outcomes += verified_outcome(report.verified)
    outcomes += [expectation.evaluate(e, report) for e in wanted]
    return outcomes + (_baseline(report, baseline, update) if baseline else [])


def _baseline(report: Any, path: Path, update: bool) -> list[Outcome]:
    from gemmsim.checks import baseline
    from gemmsim.checks.outcome import Outcome

    former = baseline.load(path)
    if update:
        emit(baseline.dump(baseline.record(report, former=former)), str(path))
        return [Outcome("baseline", True, f"baseline written: {path}")]
    if former is None:
        raise GemmsimError(f"there is no baseline {path}: make it with --update")
    return baseline.compare(report, former)
