"""`python -m validate.opcodes --bundle FOLDER -o FILE` runs a bundle on a GPU's machine without gemmsim installed.

It imports only light parts of the checkout, numba-cuda and NumPy, but neither click nor a compiler.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from .bundle import read_bundle
from .device import run_on_gpu


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="opcodes", description="Run the generated kernels on this machine's GPU.")
    parser.add_argument("--bundle", type=Path, required=True, help="folder made by gemmsim-validate opcodes --prepare")
    parser.add_argument("-o", "--output", type=Path, required=True, help="file for what the kernels stored, .npz")
    chosen = parser.parse_args(arguments)
    try:
        outputs = run_on_gpu(read_bundle(chosen.bundle))
        outputs.write(chosen.output)
    except GemmsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stderr.write(f"{len(outputs.values)} kernels ran on {outputs.facts['device']}: {chosen.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
