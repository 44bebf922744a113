"""python -m gemmsim_validate."""

from .cli.main import run

run()
