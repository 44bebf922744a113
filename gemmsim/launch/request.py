"""What `gemmsim.api.analyze` is asked: everything the user decided, resolved and checked, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gemmsim.gpu.spec import GpuSpec
from gemmsim.trace.types import Launch

if TYPE_CHECKING:
    from gemmsim.compile.source import KernelSource

DEFAULT_MAX_INSTRUCTIONS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Labels:
    """What reports call the kernel.

    kernel    "tiled", or the function or entry of the user's own
    title     one line, "" where there is none
    m, n, k   problem size of a GEMM, None where the launch is not known to be one
    tunables  of a ladder kernel, {"tile": 32}
    """

    kernel: str
    title: str = ""
    m: int | None = None
    n: int | None = None
    k: int | None = None
    tunables: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GemmCheck:
    """Compare with C = alpha * A @ B + beta * C in float64; a, b, c and bias are positions in `Launch.args`.

    b_transposed  the argument holds B's transpose, [n, k]
    bias          a vector [n] that is added to each row, None where there is none
    relu          C is max(0, alpha * A @ B + beta * C + bias)
    operand_roundoff  unit roundoff of the precision to which the kernel rounds A and B, 0 where it does not
    sizes           (M, N, K) where the arrays may be flat, None where their shapes say them
    """

    a: int
    b: int
    c: int
    alpha: float = 1.0
    beta: float = 0.0
    b_transposed: bool = False
    bias: int | None = None
    relu: bool = False
    operand_roundoff: float = 0.0
    sizes: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """full: execute every block; max_instructions: warp instructions executed before the run is given up as endless."""

    full: bool = False
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS


@dataclass(frozen=True)
class AnalyzeRequest:
    """kernel: what to compile; gpu: after --set; verify: None where C is not checked; use_cache: of compiled cubins.

    warm_caches  L2 begins as an identical launch just before has left it, as where launches follow in a row; else empty
    """

    kernel: KernelSource
    launch: Launch
    gpu: GpuSpec
    labels: Labels
    verify: GemmCheck | None = None
    sampling: Sampling = Sampling()
    use_cache: bool = True
    warm_caches: bool = False
