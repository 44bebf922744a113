"""gemmsim-validate microbench: measures the numbers of this GPU that a preset needs, and writes a file for --gpu."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

from .options import PATH


@click.command()
@click.option("-o", "--output", type=PATH, metavar="FILE.toml", help="The GPU file to write.")
@click.option("--prepare", "bundle_out", type=PATH, metavar="FOLDER", help="Only compile, to FOLDER.")
@click.option("--arch", metavar="sm_90", help="With --prepare: what to compile for.")
@click.option("--bundle", type=PATH, metavar="FOLDER", help="Run what --prepare wrote.")
@click.option("--raw", type=PATH, metavar="FILE", help="Samples: kept there; with no GPU, read.")
@click.option("--analyse", is_flag=True, help="Only read --raw; run nothing.")
@click.option("--extends", metavar="GPU", help="Preset or file that has the other values; chosen by the GPU's name.")
def command(
    output: Path | None,
    bundle_out: Path | None,
    arch: str | None,
    bundle: Path | None,
    raw: Path | None,
    analyse: bool,
    extends: str | None,
) -> int:
    """Measure latencies, bandwidths, wavefronts, pipes, barriers and launches of this machine's GPU."""
    if bundle_out:
        from ..microbench.bundle import prepare

        if not arch:
            raise GemmsimError("--prepare needs --arch, such as --arch sm_90")
        prepare(arch, bundle_out)
        return 0
    if output is None:
        raise GemmsimError("where to? give -o FILE.toml for the GPU file")
    if analyse and raw is None:
        raise GemmsimError("--analyse needs --raw FILE")
    with tempfile.TemporaryDirectory() as folder:
        samples = raw or Path(folder) / "raw.json"
        status = 0 if analyse else _measure(bundle, samples, Path(folder))
        return _report(samples, output, extends) or status


def _measure(bundle: Path | None, samples: Path, folder: Path) -> int:
    from ..microbench.__main__ import measure

    if bundle is None:
        from ..measure.gpu import Gpu
        from ..microbench.bundle import prepare

        prepare(f"sm_{''.join(map(str, Gpu().capability))}", folder)
        bundle = folder
    return measure(bundle, samples)


def _report(samples: Path, output: Path, extends: str | None) -> int:
    from gemmsim.gpu import load_gpu

    from ..microbench.preset import base_preset, preset, summary
    from ..microbench.run import read_raw
    from ..records.files import write_bytes

    raw = read_raw(samples)
    base = extends or base_preset(raw)
    write_bytes(output, preset(raw, base).encode())
    load_gpu(str(output.resolve()))  # the file must be one that --gpu takes
    click.echo(summary(raw, base))
    return 1 if raw["errors"] else 0
