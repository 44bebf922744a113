"""python -m gemmsim."""

from gemmsim.cli.main import run

run()
