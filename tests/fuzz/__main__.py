"""Runs damaged inputs until the time is over, each in a process of its own: `python -m fuzz SEED MINUTES`.

Everything happens in a temporary folder, which is the home and the cache as well. An input fails where it ends with a
traceback, a signal, an exit status other than 0, 1 and 2, after more than a minute, or with more than 2 GB. The same
seed makes the same input again: `python -m fuzz SEED 0` runs one.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported once the environment says where caches are
    from .inputs import Input

_LONGEST_S, _MOST_BYTES = 60.0, 2 << 30


def run(one: Input, log: Path) -> str:
    """Run an input in a child process; return what is wrong, "" where nothing is."""
    child = os.fork()
    if child == 0:
        _be_the_child(one, log)
    begin = time.monotonic()
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() - begin > _LONGEST_S:
            os.kill(child, 9)
            os.wait4(child, 0)
            return f"over {_LONGEST_S:.0f} s"
        time.sleep(0.005)
    said = log.read_text(errors="replace")
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    if "Traceback (most recent call last)" in said:
        return "traceback: " + said.strip().splitlines()[-1]
    if os.waitstatus_to_exitcode(status) not in (0, 1, 2):
        return f"exit status {os.waitstatus_to_exitcode(status)}"
    if usage.ru_maxrss * 1024 > _MOST_BYTES:
        return f"{usage.ru_maxrss / 2**20:.1f} GiB"
    return ""


def _be_the_child(one: Input, log: Path) -> None:
    to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(to, stream)
    sys.stdout, sys.stderr = (open(to, "w", closefd=False) for _ in range(2))  # noqa: SIM115
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    status = 70
    try:
        status = one.run(list(one.words))
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(seed: int, minutes: float) -> int:
    """Run inputs from `seed` on; print each that fails and a table of how many there were."""
    tried, failed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ.update(HOME=folder, XDG_CACHE_HOME=f"{folder}/home", GEMMSIM_CACHE_DIR=f"{folder}/cache")
        os.environ["GEMMSIM_PROGRESS"] = "0"
        from .inputs import Inputs

        inputs, end = Inputs(Path(folder)), time.monotonic() + 60 * minutes
        while True:
            one = inputs.make(seed)
            tried[one.kind] += 1
            if wrong := run(one, Path(folder, "log")):
                failed[one.kind] += 1
                print(f"seed {seed}, {one.kind}: {wrong[:300]}\n    {' '.join(one.words)[:300]}", flush=True)  # noqa: T201
            seed += 1
            if time.monotonic() >= end:
                break
        os.chdir("/")
    print("\n| input | tried | failed |\n|---|---|---|")  # noqa: T201
    for kind, count in tried.items():
        print(f"| {kind} | {count:,} | {failed[kind]} |")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2])))
