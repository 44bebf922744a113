"""`python -m validate.capture -o FOLDER -- PROGRAM ARGS` captures on a machine without gemmsim installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from .run import Options, capture

USAGE_OR_ENVIRONMENT = 2


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="capture", description="Capture the kernel launches of a program.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the bundle to write")
    parser.add_argument("--limit", type=int, default=Options.limit, help="most distinct launches of a process")
    parser.add_argument("--contents", type=int, default=0, metavar="BYTES", help="store arrays of up to so many bytes")
    parser.add_argument("--library-code", action="store_true", help="store the code of installed libraries, too")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS")
    chosen = parser.parse_args(arguments)
    command = chosen.command[1:] if chosen.command[:1] == ["--"] else chosen.command
    if not command:
        parser.error("name the program to run")
    return run(command, chosen.output, Options(chosen.limit, chosen.contents, chosen.library_code))


def run(command: list[str], folder: Path, options: Options) -> int:
    """Capture a program, say what was captured, and return its exit status."""
    try:
        status, written = capture(command, folder, options)
    except GemmsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE_OR_ENVIRONMENT
    names = {record["subject"]["name"] for record in written.records}
    sys.stderr.write(f"{len(written.records)} distinct launches of {len(names)} kernels in {folder}\n")
    for note in written.notes:
        sys.stderr.write(f"note: {note}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
