"""The ladder's rows as a Markdown table."""

from __future__ import annotations

from collections.abc import Sequence

from .rows import SHARE_GPUS, LadderRow


def markdown(rows: Sequence[LadderRow], size: int, gpu: str) -> str:
    archs = list(SHARE_GPUS)
    head = ["rung", "dtype", "registers", "shared memory", "occupancy", "time", "TFLOP/s", "of cuBLAS"]
    head += [f"multiply-adds, {arch}" for arch in archs]
    lines = [
        f"M = N = K = {size} on {gpu}, measured.",
        "",
        _line(head),
        _line(["---"] * 2 + ["---:"] * (len(head) - 2)),
    ]
    for row in rows:
        of = f"{100 * row.cublas_us / row.time_us:.1f}%" if row.cublas_us else "-"
        cells = [row.name, row.dtype, str(row.registers), f"{row.shared_bytes:,} B", f"{row.occupancy_pct:.0f}%"]
        cells += [f"{row.time_us:,.1f} us", f"{row.tflops:.2f}", of]
        cells += [f"{100 * row.product_shares[arch]:.0f}%" if arch in row.product_shares else "-" for arch in archs]
        lines.append(_line(cells))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
