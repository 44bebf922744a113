"""Runs Nsight Compute over many cases at once: one child process launches each case once, and ncu profiles them all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from .metrics import SECTIONS, kept_counters, wanted_metrics
from .raw_page import parse_raw_page

CLOCK_CONTROL, CACHE_CONTROL = "none", "all"
NO_PERMISSION = (
    "ERR_NVGPUCTRPERM: this user may not read the GPU's counters, so there are only times; an administrator can allow "
    "it (NVreg_RestrictProfilingToAdminUsers=0), or run as root"
)
_UNKNOWN = re.compile(
    r"(?:find|collect|supported|section|metric)\D{0,40}?\b(\w+__[\w.]+|[A-Z]\w+(?:Stats|Analysis|Light))"
)


@dataclass
class Profiler:
    """How ncu is called: its path `tool`, and the metrics and sections that it is asked for.

    `drop_unknown` drops the metrics and sections that ncu says it does not know.
    """

    tool: str
    metrics: list[str] = field(default_factory=wanted_metrics)
    sections: list[str] = field(default_factory=lambda: list(SECTIONS))

    @classmethod
    def find(cls) -> Profiler | None:
        """Return a profiler with the ncu in PATH, else with the CUDA toolkit's ncu; None where neither is found."""
        places = [shutil.which("ncu"), *sorted(map(str, Path("/usr/local").glob("cuda*/bin/ncu")), reverse=True)]
        return next((cls(place) for place in places if place and Path(place).is_file()), None)

    def version(self) -> str:
        """Return the tool's name and version, such as "ncu 2025.3.1"."""
        done = subprocess.run([self.tool, "--version"], capture_output=True, text=True, check=False)
        words = re.findall(r"Version (\S+)", done.stdout)
        return f"ncu {words[0]}" if words else "ncu"

    def command(self, report: Path, child: Sequence[str]) -> list[str]:
        """Return the command line that profiles the command `child` and writes the file `report`."""
        sections = [word for section in self.sections for word in ("--section", section)]
        metrics = ["--metrics", ",".join(self.metrics)] if self.metrics else []
        controls = ["--clock-control", CLOCK_CONTROL, "--cache-control", CACHE_CONTROL]
        return [self.tool, *controls, *sections, *metrics, "--force-overwrite", "--export", str(report), *child]

    def shown_command(self) -> str:
        """Return the command line without this machine's paths, for the record."""
        words = self.command(Path("REPORT"), ["PROGRAM"])
        return " ".join(["ncu", *words[1:]])

    def drop_unknown(self, said: str) -> bool:
        """Drop the metrics and sections that ncu's messages name; return whether there were any."""
        lines = [line for line in said.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
        words = {word for line in lines for word in _UNKNOWN.findall(line)}
        before = len(self.metrics) + len(self.sections)
        bases = {word.partition(".")[0] for word in words}
        self.metrics = [name for name in self.metrics if name not in words and name.partition(".")[0] not in bases]
        self.sections = [name for name in self.sections if name not in words]
        return len(self.metrics) + len(self.sections) < before


def profile(
    profiler: Profiler, child: Sequence[str], ids: Sequence[str], timeout_s: float
) -> dict[str, dict[str, float]]:
    """Profile the cases with these ids; return their counters by id.

    `child` is a command that launches cases. Its last argument, which is added here, is a FILE of their ids. The child
    appends the id of each case that it has launched to FILE.launched, so that a case that fails there does not shift
    the others. Raises GemmsimError where ncu cannot profile, or has no permission to.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder) / "cases", Path(folder) / "report"
        wanted.write_text("\n".join(ids))
        environment = {**os.environ, "LC_ALL": "C"}
        for _ in range(8):
            launched = Path(f"{wanted}.launched")
            launched.write_text("")
            command = profiler.command(report, [*child, str(wanted)])
            done = _run(command, environment, timeout_s)
            said = done.stdout + done.stderr
            if "ERR_NVGPUCTRPERM" in said:
                raise GemmsimError(NO_PERMISSION)
            file = report.with_suffix(".ncu-rep")
            if file.is_file():
                raw = [profiler.tool, "--import", str(file), "--csv", "--page", "raw", "--print-units", "base"]
                rows = parse_raw_page(_run(raw, environment, timeout_s).stdout)
                names = launched.read_text().split()
                if len(rows) == len(names):
                    return {name: kept_counters(row.metrics) for name, row in zip(names, rows, strict=True)}
                raise GemmsimError(f"ncu profiled {len(rows)} launches, not the {len(names)} cases: {_told(said)}")
            if not profiler.drop_unknown(said):
                if not profiler.metrics:
                    break
                sys.stderr.write(f"ncu refuses the metrics ({_told(said)}): sections only\n")
                profiler.metrics = []
    raise GemmsimError(f"ncu wrote no report: {_told(said)}")


def _run(command: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environment),
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GemmsimError(f"ncu did not finish within {timeout_s:.0f} s") from None
    except OSError as error:
        raise GemmsimError(f"cannot start {command[0]}: {error.strerror}") from None


def _told(said: str) -> str:
    """Return the line of ncu's output that tells most about what went wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==") or "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[-1][:300]


def profiled(profiler: Profiler, version: str) -> dict[str, Any]:
    """Return the record's `profile` for a case that has counters."""
    return {
        "status": "profiled",
        "tool": version,
        "command": profiler.shown_command(),
        "clock_control": CLOCK_CONTROL,
        "cache_control": CACHE_CONTROL,
    }
