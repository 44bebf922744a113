"""Runs a program with the capture library in it, and makes a bundle of its launches."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from .build import build
from .bundle import Written, write_bundle
from .log import read_log
from .machine import Clocks, Machine


@dataclass(frozen=True)
class Options:
    """How a program is captured.

    limit           most distinct launches of a process
    contents_bytes  arrays of up to so many bytes are stored as they were before their first launch; 0: none
    library_code    whether the code of installed libraries is stored, too
    """

    limit: int = 10_000
    contents_bytes: int = 0
    library_code: bool = False


def capture(command: Sequence[str], folder: Path, options: Options) -> tuple[int, Written]:
    """Run a program and write the bundle of its launches; return its exit status and what was written.

    Raises GemmsimError, one line, where there is no GPU, where the program cannot be started or launches no kernel, and
    where `folder` holds something already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise GemmsimError(f"{folder} is not empty: give a new folder for the bundle")
    machine = Machine()
    with tempfile.TemporaryDirectory(prefix="gemmsim-capture-") as name:
        scratch = Path(name)
        environment = {
            **os.environ,
            "CUDA_INJECTION64_PATH": str(build(scratch)),
            "GEMMSIM_CAPTURE": name,
            "GEMMSIM_CAPTURE_LIMIT": str(options.limit),
            "GEMMSIM_CAPTURE_CONTENTS": str(options.contents_bytes),
        }
        try:
            with Clocks(machine.nvml) as clocks:
                status = subprocess.run(list(command), env=environment, check=False).returncode
        except OSError as error:
            raise GemmsimError(f"cannot start {command[0]}: {error.strerror}") from None
        logs = [
            read_log(one.parent) for one in sorted(scratch.glob("*/log.jsonl"), key=lambda one: one.stat().st_ctime)
        ]
        written = write_bundle(logs, machine, clocks.seen, folder, options.library_code)
    return status, written
