"""Runs the `gemmsim-validate` command as `python -m gemmsim_validate`."""

from .cli.main import run

run()
