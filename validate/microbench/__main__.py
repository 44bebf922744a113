"""`python -m validate.microbench --bundle FOLDER -o RAW` runs a bundle on a machine without gemmsim installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from ..measure.gpu import Gpu
from .bench import Bench
from .bundle import read
from .run import run


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="microbench", description="Measure a bundle of microbenchmarks.")
    parser.add_argument("--bundle", type=Path, required=True, help="made by gemmsim-validate microbench --prepare")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file of raw samples")
    chosen = parser.parse_args(arguments)
    try:
        return measure(chosen.bundle, chosen.output)
    except GemmsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


def measure(bundle: Path, output: Path) -> int:
    """Run a bundle and write the raw samples; return 1 where a group failed, else 0."""
    found, gpu = read(bundle), Gpu()
    return 1 if run(found, Bench(gpu, found.modules), gpu.machine, output)["errors"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
