"""Large launches beside the corpus: a persistent kernel of the ladder, and tensor cores in groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gemmsim.compile.source import CudaKernel
from gemmsim.gpu import load_gpu
from gemmsim.launch.arrays import Contents
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import Labels, LaunchSpec
from gemmsim.trace.types import Argument, Launch

from .closed_forms import FFMA
from .large import Prediction, held_to

_MMA = Path(__file__).with_name("orders_mma.cu")
_SIDE, _STEP, _WARPS = 128, 32, 8  # of a tile of orders_mma.cu, and its warps


@dataclass(frozen=True, slots=True)
class Other:
    """A launch of M = N = K = `n` on `gpu`, of a kernel named `name`."""

    name: str
    gpu: str
    n: int

    @property
    def title(self) -> str:
        return f"{self.name} on {self.gpu}, {self.n}"


OTHERS = (
    Other("persistent of the ladder", "h200", 4096),
    Other("persistent of the ladder", "h200", 8192),
    Other("grouped mma", "rtx4090", 2048),
    Other("grouped mma", "rtx4090", 8192),
)


def predict_other(other: Other) -> Prediction:
    """Predict the launch from a sample, and hold it to counters worked out by hand and to bounds."""
    mma = other.name == "grouped mma"
    spec = mma_launch(other.n, other.gpu) if mma else _ladder_launch(other)
    floats = 2 * other.n**2
    forms = mma_forms(other.n) if mma else {FFMA: float(other.n**3)}
    return held_to(other.name, 0, f"{other.n}, {other.gpu}", spec, forms, floats // (16 if mma else 8))


def mma_launch(n: int, gpu: str) -> LaunchSpec:
    """Return a launch of `orders_mma.cu` at M = N = K = n, a multiple of 128."""
    arrays = (Argument("f16", (n, n), Contents()), Argument("f16", (n, n), Contents()))
    args = (*arrays, Argument("f32", (n, n), Contents(0.0)), *(Argument("i32", (), n) for _ in range(3)))
    source = CudaKernel(_MMA.read_text(encoding="utf-8"), _MMA)
    launch = Launch(((n // _SIDE) ** 2, 1, 1), (32 * _WARPS, 1, 1), args)
    return LaunchSpec(source, launch, load_gpu(gpu), Labels("grouped mma", m=n, n=n, k=n))


def mma_forms(n: int) -> dict[str, float]:
    """Return counters of `mma_launch` that follow from the kernel's text.

    In a step each thread loads two vectors of 16 bytes of each matrix; a row of A's tile has 2 sectors, one of B's 8. A
    warp loads 4 x 16 rows of A and 16 x 32 elements of B, six LDSM, for each 16 of K. It stores 32 times, 8 bytes a
    lane: 8 rows of one sector.
    """
    tiles, steps = (n // _SIDE) ** 2, (n // _SIDE) ** 2 * (n // _STEP)
    which = "pipe_lsu_mem_global_op"
    found = {
        f"l1tex__t_requests_{which}_ld.sum": steps * 4 * _WARPS,
        f"l1tex__t_sectors_{which}_ld.sum": steps * (2 * _SIDE + 8 * _STEP),
        f"l1tex__t_requests_{which}_st.sum": tiles * 32 * _WARPS,
        f"l1tex__t_sectors_{which}_st.sum": tiles * 32 * _WARPS * 8,
        "smsp__inst_executed_op_ldsm.sum": steps * 2 * 6 * _WARPS,
    }
    return {name: float(value) for name, value in found.items()}


def _ladder_launch(other: Other) -> LaunchSpec:
    name = other.name.partition(" ")[0]
    return ladder_launch(LadderCase(name, other.n, other.n, other.n), load_gpu(other.gpu))
