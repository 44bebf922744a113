"""Lists the kernels of `orders.cu` and makes launches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gemmsim.compile.source import CudaKernel
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.arrays import Contents
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.trace.types import Argument, Launch

from .mapping import BATCHES, SPLITS, TILE_STEPS, Problem, grid_of, lengths_of_k, table_of_tiles

SOURCE = Path(__file__).with_name("orders.cu")
THREADS = 256


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of `orders.cu`: how blocks share the work, and in which order they take the tiles.

    adds  whether what blocks computed is added to C; None where the scheme has no such choice
    """

    name: str
    scheme: str
    order: str
    adds: bool | None = None

    def entry(self, tile: int) -> str:
        """Return the name expression of the kernel with tiles of `tile` elements a side."""
        if self.scheme == "per_thread":
            return self.scheme
        choice = "" if self.adds is None else f",{str(self.adds).lower()}"
        return f"{self.scheme}<Tile{tile},{self.order}{choice}>"


KERNELS = (
    Kernel("row-major 2-D", "by_tile", "RowMajor2D"),
    Kernel("row-major", "by_tile", "RowMajor"),
    Kernel("column-major", "by_tile", "ColumnMajor"),
    Kernel("grouped", "by_tile", "Grouped"),
    Kernel("snake", "by_tile", "Snake"),
    Kernel("Morton", "by_tile", "Morton"),
    Kernel("Hilbert", "by_tile", "Hilbert"),
    Kernel("hashed", "by_tile", "Hashed"),
    Kernel("diagonal", "by_tile", "Diagonal"),
    Kernel("swizzled", "by_tile", "Swizzled"),
    Kernel("table", "by_tile", "Table"),
    Kernel("every third block idle", "by_tile", "EveryThirdIdle"),
    Kernel("oversized grid", "by_tile", "Oversized"),
    Kernel("lower triangle", "by_tile", "Lower"),
    Kernel("lower triangle, packed", "by_tile", "LowerPacked"),
    Kernel("triangular A", "triangular", "RowMajor2D"),
    Kernel("triangular A, grouped", "triangular", "Grouped"),
    Kernel("K from a table, grouped", "ragged_k", "Grouped"),
    Kernel("one block short", "one_short", "RowMajor"),
    Kernel("batched, grouped", "batched", "Grouped"),
    Kernel("split-K, workspace", "split_k", "RowMajor2D", adds=False),
    Kernel("split-K, atomic", "split_k", "Grouped", adds=True),
    Kernel("stream-K", "stream_k", "RowMajor"),
    Kernel("persistent", "persistent", "RowMajor"),
    Kernel("persistent, grouped", "persistent", "Grouped"),
    Kernel("work counter", "work_counter", "RowMajor"),
    Kernel("per thread", "per_thread", ""),
)


RAGGED = (-12, 18, 13)  # added to N, N and N / 2 for sizes that no tile divides


@dataclass(frozen=True, slots=True)
class Case:
    """One launch of the corpus.

    m, n, k  sizes of C = A * B
    pad      elements behind each row of A, B and C; an odd number misaligns the rows
    tile     32 or 128
    """

    kernel: Kernel
    tile: int
    m: int
    n: int
    k: int
    pad: int = 0

    @property
    def size(self) -> str:
        sizes = f"{self.m}" if self.m == self.n == self.k else f"{self.m}x{self.n}x{self.k}"
        return sizes + (f" pad {self.pad}" if self.pad else "")

    @property
    def title(self) -> str:
        return f"{self.kernel.name}, {self.tile}, {self.size}"

    def problem(self, sms: int) -> Problem:
        """Return the problem for a GPU of `sms` SMs.

        A persistent grid has two blocks an SM, or fewer where a block would have less than two and a half tiles.
        """
        whole = Problem(self.m, self.n, self.k, self.pad, self.tile, 1)
        blocks = min(2 * sms, max(2, 2 * whole.tiles // 5))
        return Problem(self.m, self.n, self.k, self.pad, self.tile, blocks)


def arguments(case: Case, sms: int) -> tuple[Argument, ...]:
    """Return the arguments of a launch: (A, B, C, numbers, M, N, K, lda, ldb, ldc)."""
    p, kernel = case.problem(sms), case.kernel
    batches = BATCHES if kernel.scheme == "batched" else 1
    layers = SPLITS if kernel.scheme == "split_k" and not kernel.adds else batches
    lda, ldb, ldc = p.k + p.pad, p.n + p.pad, p.n + p.pad
    tables = {"Table": table_of_tiles(p.tiles), "ragged_k": lengths_of_k(p)}
    numbers = np.array(tables.get(kernel.order) or tables.get(kernel.scheme) or [0], np.int32)
    shapes = ((batches * p.m, lda), (batches * p.k, ldb), (layers * p.m, ldc))
    contents = (Contents(), Contents(), Contents(0.0))
    arrays = (Argument("f32", shape, one) for shape, one in zip(shapes, contents, strict=True))
    scalars = (Argument("i32", (), value) for value in (p.m, p.n, p.k, lda, ldb, ldc))
    return (*arrays, Argument("i32", numbers.shape, numbers), *scalars)


def launch_spec(case: Case, gpu: GpuSpec, settings: Settings) -> LaunchSpec:
    """Return the launch of `case` on `gpu`."""
    kernel = case.kernel
    grid = grid_of(kernel.scheme, kernel.order, case.problem(gpu.sm.count))
    launch = Launch(grid, (THREADS, 1, 1), arguments(case, gpu.sm.count))
    source = CudaKernel(SOURCE.read_text(encoding="utf-8"), SOURCE, kernel.entry(case.tile))
    return LaunchSpec(source, launch, gpu, Labels(kernel.name, m=case.m, n=case.n, k=case.k), settings=settings)


def cases(texts: Sequence[str], size: int, ragged: bool) -> Iterator[Case]:
    """Make a launch of each kernel with each tile at M = N = K = size and, where `ragged`, one with misaligned rows.

    texts  only kernels with one of these texts in their name and tile, as in "Hilbert, 128"; all where there are none
    """
    for kernel in KERNELS:
        for tile in (32,) if kernel.scheme == "per_thread" else TILE_STEPS:
            name = f"{kernel.name}, {tile}".lower()
            if texts and not any(text.lower() in name for text in texts):
                continue
            yield Case(kernel, tile, size, size, size)
            if ragged:
                yield Case(kernel, tile, size + RAGGED[0], size + RAGGED[1], size // 2 + RAGGED[2], pad=1)
