"""Runs programs of public repositories by `gemmsim run`, unmodified, and says how they ended."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from gemmsim.gpu import load_gpu

from ..documents.sections import Section, table
from .manifest import Repository
from .program_times import Measured, Times, compared, load_measured, times_of

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
    times         the times of the launches that are alike, in order, without what a launch itself takes
    """

    program: str
    gpu: str
    outcome: str
    launches: int
    kernels: int
    predicted_us: float
    said: str = ""
    times: tuple[Times, ...] = ()


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
        listed = Path(folder) / "launches.csv"
        options = ("--gpu", gpu, "--format", "csv", "-o", str(listed))
        started = subprocess.Popen(
            [sys.executable, "-m", "gemmsim", "run", *options, str(path)],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "Agg"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_interrupts,  # noqa: PLW1509  # no other thread runs here
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
        rows = [*csv.DictReader(listed.read_text(encoding="utf-8").splitlines())] if listed.exists() else []
    last = "" if outcome in (ENDED, STOPPED) else (said.strip().splitlines() or [""])[-1]
    kernels = len({row["kernel"] for row in rows})
    overhead_us, alike = load_gpu(gpu).launch.overhead_us, dict[tuple[str, str, str], list[float]]()
    for row in rows:
        us = round(float(row["time_us"]) - overhead_us, 3)
        alike.setdefault((row["kernel"], row["grid"], row["block"]), []).append(us)
    times = tuple(Times(*key, tuple(us)) for key, us in alike.items())
    total_us = sum(float(row["time_us"]) for row in rows)
    return Run(program.id, gpu, outcome, len(rows), kernels, total_us, last, times)


def _heed_interrupts() -> None:
    """A job in the background ignores the signal that stops a program, and so would the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def load_runs(path: Path = RUNS) -> list[Run]:
    if not path.exists():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    return [Run(**one | {"times": tuple(map(times_of, one.get("times", ())))}) for one in found]


def save_runs(runs: Sequence[Run], path: Path = RUNS) -> None:
    lines = ",\n".join(
        json.dumps(asdict(one) | {"times": [[*astuple(each)] for each in one.times]}, separators=(",", ":"))
        for one in runs
    )
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def programs_section(runs: Sequence[Run], measured: Measured | None = None) -> Section:
    """Return the section about whole programs: how each ended, what was predicted for it, and what a GPU took.

    measured  None: what ships
    """
    measured = load_measured() if measured is None else measured
    remarks = {one.id: one.remark for one in read_programs()}
    rows = []
    for one in runs:
        both = compared(one.times, measured.programs.get(one.program, ())) if measured.gpu == one.gpu else None
        cells = (
            ("-",) * 4 if both is None else (str(both.launches), *(f"{us:.1f}" for us in both.us), f"{both.error:+.1f}")
        )
        said = ": ".join(filter(None, (one.said, remarks.get(one.program, ""))))
        rows.append((one.program, one.gpu, one.outcome, str(one.launches), f"{one.predicted_us:.1f}", *cells, said))
    columns = ["program", "GPU", "outcome", "launches", "predicted us"]
    columns += ["of both", "predicted us", "measured us", "error %", "last line, remark"]
    text = [
        "Programs that `gemmsim run` runs unmodified, with all that they check themselves. "
        f"{sum(one.outcome == ENDED for one in runs)} of {len(runs)} run to their end. The time is that of all "
        f"launches that the program made, predicted. {STOPPED}: it did not end within the time that it was given, "
        "and none of its checks had failed until then.",
        "`validate/wild/programs.toml` names repository, commit and file; `gemmsim-validate wild-programs` runs "
        "them. Triton's tutorials ran with PyTorch for the CPU.",
    ]
    if measured.programs:
        text.append(
            f"Measured: {measured.what}. The columns behind *of both* are sums over the launches that the program made "
            "there, too: of the same kernel, grid and block, in order; each without what the launch itself takes. "
            "Where a program asks for a time, it is that of one launch with an empty L2, on the GPU after one that "
            "does not count."
        )
    return Section("Programs", tuple(text), table(columns, rows, numeric=range(3, 9)))
