"""Runs programs of public repositories by `gemmsim run`, unmodified, and says how they ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..documents.sections import Section, table
from .manifest import Repository

MANIFEST = Path(__file__).with_name("programs.toml")
RUNS = Path(__file__).with_name("programs.json")
ENDED, RAISED, REFUSED, STOPPED = "runs to its end", "raises", "refused", "stopped"
_GRACE_S = 30.0  # in which a program that is stopped may list its launches
_OUTCOMES = {0: ENDED, 2: REFUSED}


@dataclass(frozen=True)
class PublicProgram:
    """A program. file: its path in the checkout of the repository. remark: on how it ends, "" where there is none."""

    repository: Repository
    file: str
    remark: str = ""

    @property
    def id(self) -> str:
        return f"{self.repository.name}/{Path(self.file).name}"


@dataclass(frozen=True)
class Run:
    """How a program ran on a simulated GPU.

    program       its id
    outcome       ENDED, RAISED, REFUSED, or STOPPED by the time limit
    launches      how many it made until then, of how many kernels
    predicted_us  time of all of them
    said          the last line that it wrote to stderr where it did not end well
    """

    program: str
    gpu: str
    outcome: str
    launches: int
    kernels: int
    predicted_us: float
    said: str = ""


def read_programs(path: Path = MANIFEST) -> list[PublicProgram]:
    """Return the programs of the manifest, in its order."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))["repository"]
    return [
        PublicProgram(
            Repository(one["name"], one["commit"], one["licence"]),
            f"{one['folder']}/{file}",
            one.get("remarks", {}).get(file, ""),
        )
        for one in found
        for file in one["programs"]
    ]


def run(program: PublicProgram, root: Path, gpu: str, limit_s: float) -> Run:
    """Run a program in a process and a folder of its own."""
    path = (program.repository.checkout(root) / program.file).resolve()
    with tempfile.TemporaryDirectory(prefix="gemmsim-") as folder:
        listed = Path(folder) / "launches.json"
        options = ("--gpu", gpu, "--format", "json", "-o", str(listed))
        started = subprocess.Popen(
            [sys.executable, "-m", "gemmsim", "run", *options, str(path)],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _, said = started.communicate(timeout=limit_s)
            outcome = _OUTCOMES.get(started.returncode, RAISED)
        except subprocess.TimeoutExpired:
            started.send_signal(signal.SIGINT)  # it then lists its launches
            outcome = STOPPED
            try:
                _, said = started.communicate(timeout=_GRACE_S)
            except subprocess.TimeoutExpired:
                started.kill()
                _, said = started.communicate()
        rows = json.loads(listed.read_text(encoding="utf-8"))["launches"] if listed.exists() else []
    last = "" if outcome in (ENDED, STOPPED) else (said.strip().splitlines() or [""])[-1]
    kernels = len({row["kernel"] for row in rows})
    return Run(program.id, gpu, outcome, len(rows), kernels, sum(row["time_us"] for row in rows), last)


def load_runs(path: Path = RUNS) -> list[Run]:
    return [Run(**one) for one in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def save_runs(runs: Sequence[Run], path: Path = RUNS) -> None:
    path.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n", encoding="utf-8")


def programs_section(runs: Sequence[Run]) -> Section:
    """Return the section about whole programs: how each ended, and what was predicted for it."""
    remarks = {one.id: one.remark for one in read_programs()}
    rows = [
        (
            *(one.program, one.gpu, one.outcome, str(one.launches), str(one.kernels), f"{one.predicted_us:.1f}"),
            ": ".join(filter(None, (one.said, remarks.get(one.program, "")))),
        )
        for one in runs
    ]
    columns = ("program", "GPU", "outcome", "launches", "kernels", "predicted us", "last line, remark")
    return Section(
        "Programs",
        (
            "Programs that `gemmsim run` runs unmodified, with all that they check themselves. "
            f"{sum(one.outcome == ENDED for one in runs)} of {len(runs)} run to their end. The time is that of all "
            f"launches that the program made, predicted. {STOPPED}: it did not end within the time that it was given, "
            "and none of its checks had failed until then.",
            "`validate/wild/programs.toml` names repository, commit and file; `gemmsim-validate wild-programs` runs "
            "them. Triton's tutorials ran with PyTorch for the CPU.",
        ),
        table(columns, rows, numeric=(3, 4, 5)),
    )
