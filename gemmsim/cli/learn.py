"""The command `gemmsim learn`: the ladder as a course, in the terminal or as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from gemmsim.cli.colour import coloured, wanted
from gemmsim.cli.forms import output_option
from gemmsim.cli.options import gpu_option, gpu_sets_option
from gemmsim.cli.output import emit
from gemmsim.support.errors import GemmsimError
from gemmsim.support.progress import clear

if TYPE_CHECKING:
    from gemmsim.course.steps import Step

_SIZES = (64, 8192)


class _Leaves(Exception):  # noqa: N818 - no error: somebody has typed q
    """Somebody leaves the course."""


@click.command("learn")
@click.option("--size", type=int, default=1024, show_default=True, metavar="N", help="M = N = K = N of all steps.")
@gpu_option
@gpu_sets_option
@click.option("--from", "first", metavar="RUNG", help="Begin at this rung.")
@click.option("--answers", is_flag=True, help="Ask nothing: show each step with its answers.")
@output_option
def command(
    size: int, gpu: str, gpu_sets: tuple[str, ...], first: str | None, answers: bool, output: str | None
) -> None:
    """Climb the ladder from the naive kernel to tensor cores, as a course.

    \b
    gemmsim learn
    gemmsim learn --from tiled --gpu h200
    gemmsim learn -o course.html          one page that asks the same

    At each step: predict a number, see what the run says, why, and what leads
    to the next rung. Enter passes a question over, q leaves. Where there is
    no terminal to answer at, each step comes with its answers.
    """
    if not _SIZES[0] <= size <= _SIZES[1]:
        raise GemmsimError(f"--size {size}: the course takes {_SIZES[0]} to {_SIZES[1]}")
    from gemmsim.course import page
    from gemmsim.course.steps import names, steps
    from gemmsim.gpu import load_gpu

    spec = load_gpu(gpu, gpu_sets)
    found = steps(size, spec, first)
    if output is not None and output.endswith((".html", ".htm")):
        return emit(page.render(list(found), size, spec.title), output)
    count = len(names()) - (names().index(first) if first in names() else 0)
    if output is not None or answers or not (sys.stdin.isatty() and sys.stdout.isatty()):
        text = "\n".join(_whole(step, f"{at} of {count}") for at, step in enumerate(found, 1))
        return emit(text, output)
    return _ask(found, count)


def _whole(step: Step, place: str) -> str:
    from gemmsim.course.text import answered, asked, closing, opening

    questions = "".join(f"{asked(one)}{answered(one, None)}\n" for one in step.questions)
    return f"{opening(step, place)}\n{questions}{closing(step)}"


def _ask(steps: Iterator[Step], count: int) -> None:
    """Go through the steps with somebody at the terminal."""
    from gemmsim.course.text import answered, asked, closing, opening

    right = told = 0
    for at, step in enumerate(steps, 1):
        _show("\n" + opening(step, f"{at} of {count}"))
        for question in step.questions:
            _show(asked(question), end="")
            try:
                guess = _guess(question.unit)
            except _Leaves:
                return _show(f"{right} of {told} right.")
            told += guess is not None
            right += guess is not None and question.right(guess)
            _show(answered(question, guess))
        _show(closing(step), end="")
        if at < count and click.prompt("  Enter goes on, q leaves", "", show_default=False) == "q":
            break
    return _show(f"\n{right} of {told} right.")


def _guess(unit: str) -> float | None:
    """Ask until there is a number; None where the question is passed over. Raises _Leaves for q."""
    from gemmsim.course.text import guess_of

    while True:
        text = str(click.prompt(f"  {unit}", "", show_default=False)).strip()
        if not text:
            return None
        if text == "q":
            raise _Leaves
        if (guess := guess_of(text)) is not None:
            return guess
        click.echo("  a number, such as 32, 0.5, 1/4 or 90 %; Enter passes it over, q leaves")


def _show(text: str, end: str = "\n") -> None:
    clear()
    click.echo((coloured(text) if wanted(sys.stdout) else text) + end, nl=False)
