"""Runs many cases, each in a process of its own.

What a foreign compiler does to its process (Triton's can end it) stays away from the other cases. `python -m
gemmsim_validate.wild.processes` is such a process: it reads a request from its standard input, and writes a line of
JSON for each outcome.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

from .manifest import Case, read_manifest
from .outcomes import REFUSED, Outcome
from .run import run_case

_MARK = "outcome "  # begins the lines that are outcomes; compilers may print others


def run_all(
    cases: Sequence[Case],
    architectures: Sequence[str],
    manifest: Path,
    root: Path,
    jobs: int,
    limit_s: float,
    progress: Callable[[Outcome], None],
) -> None:
    """Run the pairs of `cases` and those of `architectures` that each case names.

    manifest  folder from which `cases` were read
    root      folder with the checkouts
    jobs      processes at a time
    limit_s   seconds after which a process is ended; its remaining pairs count as refused
    progress  is called with each outcome
    """
    with ThreadPoolExecutor(jobs) as pool:
        waiting = []
        for case in cases:
            wanted = [arch for arch in architectures if arch in case.architectures]
            if wanted:
                waiting.append(pool.submit(_run_process, case, wanted, manifest, root, limit_s))
        for done in as_completed(waiting):
            for outcome in done.result():
                progress(outcome)


def _run_process(case: Case, architectures: list[str], manifest: Path, root: Path, limit_s: float) -> list[Outcome]:
    request = {"case": case.id, "architectures": architectures, "manifest": str(manifest), "root": str(root)}
    command = [sys.executable, "-m", "gemmsim_validate.wild.processes"]
    ended = "the process ended without an outcome"
    try:
        done = subprocess.run(
            command, input=json.dumps(request), capture_output=True, text=True, timeout=limit_s, check=False
        )
        output = done.stdout
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        ended = f"the process ended with status {done.returncode}: {' '.join(last)}"
    except subprocess.TimeoutExpired as late:
        output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        ended = f"it took longer than {limit_s:g} s"
    found = [Outcome(**json.loads(line[len(_MARK) :])) for line in output.splitlines() if line.startswith(_MARK)]
    missing = [arch for arch in architectures if arch not in {outcome.arch for outcome in found}]
    return [*found, *(Outcome(case.id, arch, REFUSED, ended) for arch in missing)]


def _main() -> None:
    request = json.load(sys.stdin)
    case = next(one for one in read_manifest(Path(request["manifest"])) if one.id == request["case"])
    for arch in request["architectures"]:
        outcome = run_case(case, arch, Path(request["root"]))
        sys.stdout.write(f"{_MARK}{json.dumps(asdict(outcome))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
