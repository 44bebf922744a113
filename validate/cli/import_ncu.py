"""gemmsim-validate import-ncu: shows the metrics of a launch that Nsight Compute profiled beside a prediction."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemmsim.cli.group import gathered
from gemmsim.support.errors import GemmsimError

from .options import PATH

if TYPE_CHECKING:
    from ..ncu.raw_page import ProfiledLaunch


@dataclass(frozen=True)
class ProfiledRung:
    """The kernel of the ladder that the user says was profiled; `kernel` is None where the user names none."""

    kernel: str | None
    size: str | None
    dtype: str | None
    tunables: tuple[str, ...]


@click.command()
@click.argument("file", type=PATH)
@click.option("--kernel", help="The rung of the ladder that was profiled; with --size.")
@click.option("--size", metavar="N|MxNxK", help="Its problem size.")
@click.option("--dtype", help="Of A and B, where not the rung's default.")
@click.option("--set-kernel", "tunables", multiple=True, metavar="NAME=VALUE", help="A tunable of the rung.")
@click.option("--gpu", metavar="NAME", help="Preset or file of the GPU; by the file's device name where not given.")
@click.option("--predicted", type=PATH, metavar="FILE", help="For any kernel: its gemmsim analyze --format json.")
@click.option("--match", metavar="REGEX", help="Which kernel of the file, by its name there.")
@click.option("--launch", "index", type=int, metavar="N", help="Which of its launches, from 0; the last otherwise.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Also write a file of records.")
@gathered("rung", ProfiledRung)
def command(
    file: Path,
    rung: ProfiledRung,
    gpu: str | None,
    predicted: Path | None,
    match: str | None,
    index: int | None,
    output: Path | None,
) -> int:
    """Read FILE (.ncu-rep, or what ncu --csv --page raw prints) and show it beside a prediction."""
    from ..ncu.comparison import compared, table
    from ..ncu.launches import read_launches, select

    if (rung.kernel is None) == (predicted is None):
        raise GemmsimError("which prediction? give --kernel and --size, or --predicted FILE")
    launch = select(read_launches(file), match, index)
    if predicted:
        if output:
            raise GemmsimError("-o needs --kernel and --size: a record says which problem it is of")
        click.echo(table(compared(_counters(predicted), launch.metrics)))
        return 0
    if rung.size is None:
        raise GemmsimError("--kernel needs --size, such as --size 1024")
    record, counters = _record_and_prediction(launch, rung, gpu)
    click.echo(table(compared(counters, launch.metrics)))
    if output:
        from ..records.files import write_records

        write_records(output, [record])
    return 0


def _record_and_prediction(
    launch: ProfiledLaunch, profiled: ProfiledRung, gpu_name: str | None
) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the record of the launch, and the values predicted for it by counter name."""
    from gemmsim.api import analyze
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.cases import LadderCase, ladder_launch

    from ..gpu_files.device import preset_of
    from ..measure.rung import rung_of
    from ..measure.spec import parse_spec
    from ..ncu.comparison import record

    options = "".join(f":{part}" for part in (profiled.dtype, ",".join(profiled.tunables)) if part)
    (spec,) = parse_spec(f"{profiled.kernel}{options}@{profiled.size}")
    name = gpu_name or (preset_of(launch.device) if launch.device else None)
    if name is None:
        raise GemmsimError("the file does not say which GPU it is of: give --gpu NAME")
    gpu = load_gpu(name)
    rung, case = rung_of(spec)
    request = ladder_launch(LadderCase(spec.kernel, spec.m, spec.n, spec.k, spec.dtype, spec.tunables), gpu)
    grid, block = request.launch.grid, request.launch.block
    if (launch.grid and launch.grid != grid) or (launch.block and launch.block != block):
        raise GemmsimError(
            f"the launch in the file has grid {launch.grid} and block {launch.block}, "
            f"{rung.info.name} of this size {grid} and {block}: another kernel, size or tunable?"
        )
    subject = {"name": rung.info.name, "rung": True, "tunables": rung.tunables, "abi": "numba", "arch": gpu.arch}
    return record(launch, case | {"subject": subject}, gpu.name, gpu.arch), analyze(request).evidence.counters


def _counters(path: Path) -> dict[str, float | None]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        counters: dict[str, float | None] = data["counters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GemmsimError(
            f"{path} is no report of gemmsim analyze --format json: {type(error).__name__} {error}"
        ) from None
    return counters
