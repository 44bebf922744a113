"""Shows the rows of the ladder's table (`LadderRow`) in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ..documents.render import markdown_table
from ..documents.sections import table
from .rows import SHARE_GPUS, LadderRow, LibraryRow

_DTYPES = ("f32", "tf32", "f16", "bf16", "e4m3", "i8", "f64")
_COLUMNS = ("rung", "dtype", "registers", "shared memory", "occupancy", "time", "TFLOP/s", "of cuBLAS")


def markdown(rows: Sequence[LadderRow], size: int, gpu: str) -> str:
    """Return a Markdown table of `rows`, which must have been measured at M = N = K = size on the GPU named `gpu`."""
    columns = (*_COLUMNS, *(f"multiply-adds, {arch}" for arch in SHARE_GPUS))
    lines = markdown_table(table(columns, map(_cells, rows), numeric=range(2, len(columns))))
    return "\n".join([f"M = N = K = {size} on {gpu}, measured.", "", *lines]) + "\n"


def library_markdown(rows: Sequence[LibraryRow]) -> str:
    """Return what cuBLAS reaches by size and dtype, with the fastest rung beside it, as a section in Markdown."""
    dtypes = [dtype for dtype in _DTYPES if any(dtype in row.tflops for row in rows)]
    columns = ("M x N x K", *dtypes)
    cells = [(f"{row.m} x {row.n} x {row.k}", *(_library_cell(row, dtype) for dtype in dtypes)) for row in rows]
    lines = markdown_table(table(columns, cells, numeric=range(1, len(columns))))
    text = (
        "TFLOP/s (TOP/s) of cuBLAS, launched in a row, and what the fastest rung reaches of it. The best of the runs "
        "on record counts."
    )
    return "\n".join(["## cuBLAS", "", text, "", *lines]) + "\n"


def _library_cell(row: LibraryRow, dtype: str) -> str:
    if dtype not in row.tflops:
        return "-"
    name, reached = row.best.get(dtype, ("", 0.0))
    return f"{row.tflops[dtype]:,.1f}" + (f"; {name} {reached:.0f} %" if name else "")


def _cells(row: LadderRow) -> tuple[str, ...]:
    resources = (str(row.registers), f"{row.shared_bytes:,} B", f"{row.occupancy_pct:.0f}%")
    of_cublas = f"{100 * row.cublas_us / row.time_us:.1f}%" if row.cublas_us else "-"
    shares = (f"{100 * row.product_shares[arch]:.0f}%" if arch in row.product_shares else "-" for arch in SHARE_GPUS)
    return (row.name, row.dtype, *resources, f"{row.time_us:,.1f} us", f"{row.tflops:.2f}", of_cublas, *shares)
