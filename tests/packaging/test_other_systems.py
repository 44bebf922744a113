"""gemmsim without what Python has on POSIX systems alone: as far as Linux can show that it runs on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# What Windows's Python lacks goes before gemmsim is imported. Packages of others look at sys.platform: they come first.
SCRIPT = """
import concurrent.futures, multiprocessing, os, platformdirs, platformdirs.unix, shutil, signal, subprocess
import sys, tempfile, click, llvmlite.binding, numpy, simpy, tqdm
for module, names in (
    (os, "geteuid getuid getgid fork sched_getaffinity mkfifo killpg setsid"),
    (signal, "SIGKILL SIGHUP SIGUSR1 SIGALRM alarm setitimer pthread_sigmask"),
):
    for name in names.split():
        delattr(module, name)
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios"):
    sys.modules[name] = None
from gemmsim.cli.main import main
rung = ["--kernel", "tiled", "--size", "64"]
for line in (
    ["analyze", *rung],
    ["sweep", *rung, "--set-kernel", "tile=32", "-o", "kept.sqlite"],
):
    assert main(line) == 0, line
"""


def test_commands_run_without_what_posix_alone_has(tmp_path: Path) -> None:
    environment = os.environ | {"GEMMSIM_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (
        "tiled, M=64 N=64 K=64, tile=32 on NVIDIA A100" in done.stdout and "1 combination: 1 predicted" in done.stdout
    )
    assert (tmp_path / "kept.sqlite").is_file()
