"""`python -m validate.forms prepare|run|compare` makes a bundle, runs it on a GPU, and compares the simulator with it.

`run` imports only light parts of the checkout, numba-cuda and NumPy, but no compiler.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from .bundle import read_bundle, read_outputs, write_bundle, write_outputs


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="forms", description="Compare forms of instructions with a GPU, bit for bit.")
    commands = parser.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare", help="compile the forms, here, without a GPU")
    prepare.add_argument("--arch", default="sm_90")
    prepare.add_argument(
        "--blocks", type=int, default=16, help="warps that execute each form, each on words of its own"
    )
    prepare.add_argument("--match", default="", help="only forms whose name contains this text")
    prepare.add_argument("bundle", type=Path, help="file to write, .npz")
    run = commands.add_parser("run", help="execute the kernels on this machine's GPU")
    run.add_argument("bundle", type=Path)
    run.add_argument("outputs", type=Path, help="file to write, .npz")
    compare = commands.add_parser("compare", help="execute the kernels in the simulator, and compare")
    compare.add_argument("bundle", type=Path)
    compare.add_argument("outputs", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "prepare":
            from .simulate import prepared

            compiled = prepared(chosen.arch, chosen.blocks, chosen.match)
            write_bundle(chosen.bundle, chosen.arch, compiled)
            sys.stderr.write(f"{len(compiled)} forms for {chosen.arch}: {chosen.bundle}\n")
        elif chosen.command == "run":
            from .device import run_on_gpu

            arch, compiled = read_bundle(chosen.bundle)
            device, outputs = run_on_gpu(arch, compiled)
            write_outputs(chosen.outputs, device, outputs)
            sys.stderr.write(f"{len(outputs)} of {len(compiled)} forms ran on {device}: {chosen.outputs}\n")
        else:
            from .compare import compared

            arch, compiled = read_bundle(chosen.bundle)
            json.dump(compared(arch, compiled, read_outputs(chosen.outputs)), sys.stdout, indent=1)
            sys.stdout.write("\n")
    except GemmsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
