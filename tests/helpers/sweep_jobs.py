"""Jobs that go wrong in every way that a sweep must survive; in a file of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from gemmsim.analysis.studies.ranking import Point
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.cases import LadderCase, ladder_request
from gemmsim.launch.request import AnalyzeRequest
from gemmsim.support.errors import GemmsimError


@dataclass(frozen=True)
class FakeJob:
    """how: "fine", "refused", "defect", "killed", "killed once", "interrupted"; marks: a folder for notes, or ""."""

    number: int
    how: str = "fine"
    marks: str = ""
    seconds: float = 0.0

    @property
    def point(self) -> Point:
        return Point("fake", {"number": self.number}, 8, 8, 8, "f32", "a100-80gb")

    @property
    def gpu(self) -> GpuSpec:
        return load_gpu("a100")

    @property
    def asked(self) -> dict[str, object]:
        return {"number": self.number, "how": self.how}

    @property
    def source_name(self) -> str:
        return "fake"

    def source_hash(self) -> str:
        return "0"

    def request(self) -> AnalyzeRequest:
        if self.marks:
            with (Path(self.marks) / str(self.number)).open("a") as file:
                file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        if self.how == "refused":
            raise GemmsimError("no such\nthing")
        if self.how == "defect":
            raise ZeroDivisionError("of this case")
        if self.how == "interrupted":
            raise KeyboardInterrupt
        if self.how == "killed" or (self.how == "killed once" and self.runs == 1):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.number == 1:
            warnings.warn("said once", stacklevel=1)
        return ladder_request(LadderCase("naive", 8, 8, 8), self.gpu)

    @property
    def runs(self) -> int:
        """How often it was begun."""
        path = Path(self.marks) / str(self.number)
        return len(path.read_text().splitlines()) if path.exists() else 0
