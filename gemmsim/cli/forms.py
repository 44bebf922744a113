"""Defines --format and -o, the form of what a command writes, and the file that it goes to."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.group import Decorator
from gemmsim.report.layout.text import NARROW, use_columns
from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from gemmsim.report.former import Former

ENDINGS = {"xml": ("junit",), "md": ("md", "markdown"), "json": ("json", "perfetto")}  # others end in their own name
_OF_TEXT = ("txt", "text", "log", "out")
_ENDING = re.compile(r"[A-Za-z]\w{0,7}")  # neither a version, as of run.2, nor what mktemp makes: tmp.3kfL0aQzXe


def format_option(*forms: str, help_text: str | None = None, of_output: bool = True) -> Decorator:
    """Make the option --format, whose value is one of `forms`; without it the name of -o says which, else the first.

    of_output  whether it is the form of what goes to -o
    """
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(forms),
        callback=partial(_by_ending, forms) if of_output else lambda context, option, form: form or forms[0],
        help=help_text or f"Form of the data.  [default: {'as -o ends, else ' * of_output}{forms[0]}]",
    )


def _by_ending(forms: tuple[str, ...], context: click.Context, _: click.Parameter, form: str | None) -> str:
    """Return the form that --format gives, else the one that the name of -o ends in, else the first.

    Raises GemmsimError for an ending that no form has, as text in a file that is called so is none that anybody wants.
    """
    path = context.params.get("output")
    if form is not None or path is None:
        return form or forms[0]
    ending = Path(path.removesuffix(".gz")).suffix[1:].lower()
    for one in ENDINGS.get(ending, (ending,)):
        if one in forms:
            return one
    if ending == "html":
        raise GemmsimError(f"-o {path}: there is no HTML here, only {' or '.join(forms)} (gemmsim report makes a page)")
    if ending not in _OF_TEXT and _ENDING.fullmatch(ending):
        known = ", ".join(dict.fromkeys(f".{_ending_of(one)}" for one in forms))
        raise GemmsimError(f"-o {path}: no form ends in .{ending}: known are {known}; another name needs --format")
    return forms[0]


def _ending_of(form: str) -> str:
    """Return the usual ending of the name of a file in this form."""
    return "txt" if form == "text" else next((end for end, of in ENDINGS.items() if form in of), form)


def refuse_other_ending(path: str) -> None:
    """Raises GemmsimError where the file of a page has a name that says something else."""
    ending = Path(path).suffix[1:].lower()
    if ending not in ("html", "htm") and _ENDING.fullmatch(ending):
        raise GemmsimError(f"-o {path}: this is a page of HTML: give it a name that ends in .html")


def _for_a_file(_: click.Context, __: click.Parameter, path: str | None) -> str | None:
    if path == "":
        raise GemmsimError("-o: the file's name is empty")
    if path is not None:
        use_columns(NARROW)
    return path


def read_baseline(path: str | None) -> Former | None:
    """Read the prediction that --baseline names; None where it names none."""
    from gemmsim.report.json import read_former  # imports NumPy

    return None if path is None else read_former(path)


baseline_option = click.option(
    "--baseline", metavar="FILE.json", help="Stand beside this: what analyze --format json wrote of another run."
)
output_option = click.option(
    "-o", "--output", metavar="FILE", is_eager=True, callback=_for_a_file, help="Write to FILE instead of stdout."
)
