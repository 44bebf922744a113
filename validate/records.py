"""Measurements of real GPUs, kept with the machine code that was measured.

A record file holds the cases of one GPU: for each, the cubin that ran (beside it, zlib-compressed), the launch, the
median times and Nsight Compute's counters. Replaying a case therefore needs no compiler and does not depend on one.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gemmsim.compile.source import CubinKernel
from gemmsim.errors import GemmsimError
from gemmsim.gpu import load_gpu
from gemmsim.request import AnalyzeRequest, GemmCheck, Labels
from gemmsim.trace.types import Argument, Launch

FOLDER = Path(__file__).parent / "records"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Case:
    """One measured launch of C = A @ B in fp32.

    scalars                 further arguments of the kernel (alpha, beta)
    back_to_back_us         median time of a launch among many in a row; operands stay in L2 where they fit
    single_launch_us        median of one launch between two events, launch overhead included
    counters                Nsight Compute metric -> value; empty where the case was only timed
    """

    name: str
    gpu: str
    cubin: Path
    symbol: str
    m: int
    n: int
    k: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[float, ...]
    back_to_back_us: float
    single_launch_us: float
    counters: dict[str, float]

    def request(self, seed: int = 0) -> AnalyzeRequest:
        """What predicts this case."""
        random = np.random.default_rng(seed)
        a = random.random((self.m, self.k), np.float32) - np.float32(0.5)
        b = random.random((self.k, self.n), np.float32) - np.float32(0.5)
        c = np.full((self.m, self.n), np.nan, np.float32)
        arrays = tuple(Argument("f32", x.shape, x) for x in (a, b, c))
        args = (*arrays, *(Argument("f32", (), s) for s in self.scalars))
        cubin = zlib.decompress(self.cubin.read_bytes())
        return AnalyzeRequest(
            kernel=CubinKernel(cubin, self.cubin, self.symbol, "numba"),
            launch=Launch(self.grid, self.block, args),
            gpu=load_gpu(self.gpu),
            labels=Labels(self.name, "", self.m, self.n, self.k),
            verify=GemmCheck(0, 1, 2),
        )


def load_cases(folder: Path = FOLDER / "h200") -> tuple[Case, ...]:
    """The cases of `ladder.json` in a folder. Raises GemmsimError where the file is of another version or damaged."""
    path = folder / "ladder.json"
    try:
        data = json.loads(path.read_text())
        if data["schema_version"] != SCHEMA_VERSION:
            found = data["schema_version"]
            raise GemmsimError(f"{path} has schema version {found}, this gemmsim reads {SCHEMA_VERSION}")
        return tuple(
            Case(
                name=c["name"],
                gpu=data["gpu"],
                cubin=folder / (c["cubin"] + ".z"),
                symbol=c["symbol"],
                m=c["m"],
                n=c["n"],
                k=c["k"],
                grid=tuple(c["grid"]),
                block=tuple(c["block"]),
                scalars=tuple(c["scalars"]),
                back_to_back_us=1e3 * c["back_to_back_median_ms"],
                single_launch_us=1e3 * c["single_launch_median_ms"],
                counters=c["counters"],
            )
            for c in data["cases"]
        )
    except (OSError, ValueError, KeyError) as error:
        raise GemmsimError(f"cannot read the records in {folder}: {error}") from None
