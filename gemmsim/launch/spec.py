"""Defines `LaunchSpec`, one launch to predict, in which all that the user asked for is resolved and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gemmsim.gpu.spec import GpuSpec
from gemmsim.gpu.units import convert
from gemmsim.launch.arrays import with_arrays
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch

if TYPE_CHECKING:
    from gemmsim.compile.source import KernelSource
    from gemmsim.launch.array_files import FileContents
    from gemmsim.launch.formula import Formula

DEFAULT_MAX_INSTRUCTIONS = 2_000_000_000
BURST, SUSTAINED = "burst", "sustained"
_MOST_INSTRUCTIONS = 10**18
_MOST_BLOCKS = (2**31 - 1, 65535, 65535)  # along x, y and z: CUDA C++ Programming Guide, Compute Capabilities
_LEAST_CLOCK_HZ, _MOST_CLOCK_HZ = 1e6, 1e10


def clock_of(text: str) -> str | float:
    """Return the clock that --clock names, for `Settings.clock`. Raises GemmsimError where it names none."""
    if text in (BURST, SUSTAINED):
        return text
    number, unit = re.fullmatch(r"([0-9.]*)(.*)", text.removeprefix("locked=").strip(), re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        hertz = convert(float(number), unit.strip() or "MHz", "clock_hz", "--clock")
    except ValueError:
        raise GemmsimError(f"--clock {text}: wants burst, sustained or a clock such as 1410MHz") from None
    if not _LEAST_CLOCK_HZ <= hertz <= _MOST_CLOCK_HZ:
        raise GemmsimError(f"--clock {text}: a clock is from 1 MHz to 10 GHz")
    return float(hertz)


@dataclass(frozen=True, slots=True)
class Labels:
    """The names and sizes that reports give for the kernel.

    kernel    "tiled", or the name of the function or entry of the user's own kernel
    title     one line that says what the kernel is, "" where there is none
    m, n, k   problem size of a GEMM, None where the launch is not known to be one
    tunables  values by name, {"tile": 32}; {} where the kernel has none
    """

    kernel: str
    title: str = ""
    m: int | None = None
    n: int | None = None
    k: int | None = None
    tunables: dict[str, int] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int, int] | None:
        """The problem size (m, n, k); None where one of them is not known."""
        return None if self.m is None or self.n is None or self.k is None else (self.m, self.n, self.k)

    def operations(self, executed: float) -> float:
        """The operations for which a launch gets credit: the 2 m n k that a GEMM needs; those executed where its size
        is not known; none where it executed none (of a kind that is counted).
        """
        return 2.0 * self.m * self.n * self.k if executed and self.m and self.n and self.k else executed


@dataclass(frozen=True, slots=True)
class GemmCheck:
    """How the matrix C that a kernel computed is checked: by comparison with alpha * A @ B + beta * C in float64.

    a, b, c           positions of A, B and C in `Launch.args`
    b_transposed      whether the argument holds B's transpose, [n, k]
    bias              position of a vector [n] that is added to each row of C, None where there is none
    relu              whether C should be max(0, alpha * A @ B + beta * C + bias)
    operand_roundoff  unit roundoff of the precision to which the kernel rounds A and B, 0 where it does not round them
    sizes             (M, N, K) where the arrays may be flat, None where their shapes give the sizes
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
class FormulaCheck:
    """How an array is checked against a formula in float64.

    formula     what the array should hold
    accumulate  type in which the kernel adds up ("f16"); None: f64 where an array is f64, exact for integers, else f32
    tolerance   largest error allowed, as a part of the largest value; None: what the rounding of sums of this length
                explains, see `analysis.formula_values`
    """

    formula: Formula
    accumulate: str | None = None
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class FileCheck:
    """How arrays are compared with those of a file.

    arrays     (position in `Launch.args`, name, where the array stands in the file) of each array compared
    tolerance  largest error allowed, as a part of the largest value; None: what another order of summation explains
    """

    arrays: tuple[tuple[int, str, FileContents], ...]
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """How a prediction is worked out.

    full              whether every block is executed; else a sample of the blocks is, where the launch is large
    full_below        warp instructions below which a launch counts as small, and every block is executed too; None for
                      `trace.blocks.choice.FULL_BELOW`, 0 to have small launches sampled as well
    max_instructions  warp instructions that are executed before the run is given up as endless; GemmsimError below
                      1 and above 10**18
    use_cache         whether a kernel that was compiled before is taken from the cache
    engine            what runs the model of the SM: "simpy", "native" (a compiled loop), or "auto" for SimPy where it
                      costs at most about 0.2 s and the loop otherwise; both predict the same
    warm_code         whether a launch of the same kernel came just before and has left its code in the SMs' instruction
                      caches, as far as they hold it
    clock             the SM clock: "burst" for that of a launch by itself or after a few others, "sustained" for that
                      to which the limit of the board's power brings launches in a row; or a fixed one, in Hz
    """

    full: bool = False
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS
    use_cache: bool = True
    engine: str = "auto"
    full_below: int | None = None
    clock: str | float = BURST
    warm_code: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.max_instructions <= _MOST_INSTRUCTIONS:
            raise GemmsimError(f"--max-instructions {self.max_instructions} must be from 1 to {_MOST_INSTRUCTIONS:,}")

    def for_many(self) -> Settings:
        """Return the settings for one of many simulations, of a study for example, where nobody waits for a single one:
        "auto" becomes the native engine, which takes a tenth of SimPy's time on a small launch, once it is compiled.
        """
        return replace(self, engine="native") if self.engine == "auto" else self


USUAL_SETTINGS = Settings()


@dataclass(frozen=True)
class LaunchSpec:
    """One launch to predict. It is small and can be sent to another process, as long as its arrays are `Contents`.

    kernel       what to compile
    launch       grid, block and arguments; an array may be given as `arrays.Contents`, which says how to fill it
    gpu          the GPU to predict for
    verify       how C of a GEMM is checked, None where it is not
    checks       further checks of arrays after the launch
    warm_caches  whether L2 and the instruction caches begin as an identical launch just before has left them; else L2
                 begins empty
    seed         what the generator of the random arrays starts from; GemmsimError below 0
    results      whether what the kernel stores is wanted, as far as executed blocks store it; else products
                 of warpgroups beyond a second's work are left out
    """

    kernel: KernelSource
    launch: Launch
    gpu: GpuSpec
    labels: Labels
    verify: GemmCheck | None = None
    settings: Settings = USUAL_SETTINGS
    warm_caches: bool = False
    seed: int = 0
    checks: tuple[FormulaCheck | FileCheck, ...] = ()
    results: bool = True

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise GemmsimError(f"--seed {self.seed} must be 0 or more")
        if any(not 1 <= one <= most for one, most in zip(self.launch.grid, _MOST_BLOCKS, strict=True)):
            shown, most_shown = (" x ".join(f"{one:,}" for one in dims) for dims in (self.launch.grid, _MOST_BLOCKS))
            raise GemmsimError(f"a grid of {shown} blocks: no GPU takes more than {most_shown}")
        if self.launch.dynamic_shared_bytes < 0:
            raise GemmsimError(f"--shared {self.launch.dynamic_shared_bytes} must be 0 or more bytes")

    @property
    def warm_code(self) -> bool:
        """Whether the SMs' instruction caches begin as a launch of the same kernel has left them."""
        return self.settings.warm_code or self.warm_caches

    def launch_with_arrays(self) -> Launch:
        """The launch with every array filled as its `Contents` says, so that it can be executed."""
        return with_arrays(self.launch, self.seed)
