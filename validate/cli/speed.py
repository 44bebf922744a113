"""gemmsim-validate speed: measures the time and memory of predictions by size, and how long each step takes."""

from __future__ import annotations

from pathlib import Path

import click

from .options import emit, output_option

RUNGS = ("naive", "tiled", "warptiled", "async_pipelined", "tensorcore_pipelined")
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
PROFILED_SIZES = (256, 4096)  # `tiled` is profiled at the first size, the slowest kernel of the ladder at the second


@click.command()
@click.option("--kernel", "kernels", multiple=True, help=f"A rung; repeatable. Default: {', '.join(RUNGS)}.")
@click.option("--size", "sizes", type=click.IntRange(1), multiple=True, help="M = N = K; repeatable. Default: 256 on.")
@click.option("--gpu", default="h200", show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=2, show_default=True, help="Of each, the quickest counts.")
@click.option("--limit", "limit_s", type=click.FloatRange(min=1), default=120.0, show_default=True, help="Seconds.")
@output_option
def command(
    kernels: tuple[str, ...], sizes: tuple[int, ...], gpu: str, rounds: int, limit_s: float, output: Path | None
) -> int:
    """Print time and memory of predictions by size, and the steps of two of them, as Markdown."""
    import os
    import time

    from gemmsim.launch.ladder import kernel_info

    from ..speed.processes import profile, table

    for kernel in kernels:
        kernel_info(kernel)  # which says what is unknown
    begin, load = time.perf_counter(), []

    def progress(line: str) -> None:
        load.append(os.getloadavg()[0])
        click.echo(line, err=True)

    cells = table(kernels or RUNGS, sizes or SIZES, gpu, rounds, limit_s, progress)
    done = [cell for cell in cells if not cell.run.failed and cell.size == PROFILED_SIZES[1]]
    slowest = max(done, key=lambda cell: cell.run.cpu_s, default=None)
    profiles = [profile("tiled", PROFILED_SIZES[0], gpu, rounds)]
    if slowest:
        profiles.append(profile(slowest.kernel, slowest.size, gpu, rounds))
    click.echo(f"{time.perf_counter() - begin:.0f} s", err=True)

    from ..speed.document import document

    command_line = f"gemmsim-validate speed --gpu {gpu} --rounds {rounds}"
    emit(document(cells, profiles, gpu, rounds, command_line, sum(load) / len(load)), output)
    return 0
