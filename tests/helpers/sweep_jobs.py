"""Jobs that go wrong in every way that a sweep must survive; in a file of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from gemmsim.analysis.studies.comparison import Skipped
from gemmsim.analysis.studies.ranking import Point
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.studies.compare import Outcome, task_of
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.job import Job


@dataclass(frozen=True)
class FakeJob(Job):
    """How it goes: "fine", "refused", "error", "defect", "killed", "killed once" or "interrupted"; `marks` is a folder
    for notes, or ""."""

    how: str = "fine"
    marks: str = ""
    seconds: float = 0.0

    def run(self) -> Outcome:
        if self.marks:
            with self._mark.open("a") as file:
                file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        if self.how == "refused":
            return Outcome(Skipped("fake", "a100-80gb", "no such thing"))
        if self.how == "error":
            raise GemmsimError("a file is gone")
        if self.how == "defect":
            raise ZeroDivisionError("of this case")
        if self.how == "interrupted":
            raise KeyboardInterrupt
        if self.how == "killed" or (self.how == "killed once" and self.runs == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        return Outcome(super().run().result, ("said once",) if self.number == 1 else ())

    @property
    def number(self) -> int:
        return self.point.tunables["number"]

    @property
    def runs(self) -> int:
        """How often it was begun."""
        return len(self._mark.read_text().splitlines()) if self._mark.exists() else 0

    @property
    def _mark(self) -> Path:
        return Path(self.marks) / str(self.number)


def fake_job(number: int, how: str = "fine", marks: str = "", seconds: float = 0.0) -> FakeJob:
    gpu = load_gpu("a100")
    point = Point("fake", {"number": number}, 8, 8, 8, "f32", gpu.name)
    task = task_of("fake", gpu.name, lambda: ladder_launch(LadderCase("naive", 8, 8, 8), gpu))
    return FakeJob(point, task, how, marks, seconds)
