"""`python -m validate.measure --bundle FOLDER -o FILE` measures a bundle on a machine without gemmsim installed.

It imports only light parts of the checkout, numba-cuda and NumPy, but neither click nor SimPy nor a compiler.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from .bundle import read_bundle
from .gpu import Gpu
from .options import Options
from .run import launch_once, measure

USAGE_OR_ENVIRONMENT = 2


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="measure", description="Measure the cases of a bundle on this machine's GPU.")
    parser.add_argument("--bundle", type=Path, required=True, help="folder made by gemmsim-validate measure --prepare")
    parser.add_argument("-o", "--output", type=Path, help="file of records; continued where it exists")
    parser.add_argument("--no-counters", action="store_true", help="times only")
    parser.add_argument("--jit", action="store_true", help="launch the @cuda.jit functions through numba too")
    parser.add_argument("--samples", type=int, default=Options.samples)
    parser.add_argument("--profile-timeout", type=float, default=Options.profile_timeout_s, metavar="SECONDS")
    parser.add_argument("--launch-once", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    try:
        bundle = read_bundle(chosen.bundle)
        if chosen.launch_once:
            launch_once(bundle, Gpu(), chosen.launch_once)
            return 0
        if chosen.output is None:
            parser.error("-o FILE is needed")
        options = Options(chosen.no_counters, chosen.jit, chosen.samples, chosen.profile_timeout)
        return run(chosen.bundle, chosen.output, options)
    except GemmsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE_OR_ENVIRONMENT


def run(folder: Path, output: Path, options: Options) -> int:
    """Measure a bundle; return 1 where a case failed or computed a wrong C, else 0."""
    bundle = read_bundle(folder)
    child = [sys.executable, "-m", str(__package__), "--bundle", str(folder), "--launch-once"]
    records = measure(bundle, Gpu(), output, options, child)
    bad = [r["id"] for r in records if r.get("errors") or r.get("correctness", {}).get("status") == "wrong"]
    sys.stderr.write(f"{len(records)} records in {output}; {len(bad)} failed or wrong{': ' if bad else ''}")
    sys.stderr.write(", ".join(bad[:8]) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
