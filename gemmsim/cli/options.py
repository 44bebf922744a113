"""Options that several commands share."""

from __future__ import annotations

import click

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the data.",
)
output_option = click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
