"""gemmsim-validate import-ncu: predicted, measured and their ratio for a launch that Nsight Compute profiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from ..ncu_csv import Profiled


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kernel", help="The rung of the ladder that was profiled; with --size.")
@click.option("--size", metavar="N|MxNxK", help="Its problem size.")
@click.option("--dtype", help="Of A and B, where not the rung's default.")
@click.option("--set-kernel", "tunables", multiple=True, metavar="NAME=VALUE", help="A tunable of the rung.")
@click.option("--gpu", metavar="NAME", help="Preset or file of the GPU; by the file's device name where not given.")
@click.option(
    "--predicted",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="For any kernel: its gemmsim analyze --format json.",
)
@click.option("--match", metavar="REGEX", help="Which kernel of the file, by its name there.")
@click.option("--launch", "index", type=int, metavar="N", help="Which of its launches, from 0; the last otherwise.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Also write a file of records.")
def command(
    file: Path,
    kernel: str | None,
    size: str | None,
    dtype: str | None,
    tunables: tuple[str, ...],
    gpu: str | None,
    predicted: Path | None,
    match: str | None,
    index: int | None,
    output: Path | None,
) -> int:
    """Read FILE (.ncu-rep, or what ncu --csv --page raw prints) and show it beside a prediction."""
    from ..import_ncu import compared, read_launches, select, table

    if (kernel is None) == (predicted is None):
        raise GemmsimError("which prediction? give --kernel and --size, or --predicted FILE")
    launch = select(read_launches(file), match, index)
    if predicted:
        if output:
            raise GemmsimError("-o needs --kernel and --size: a record says which problem it is of")
        click.echo(table(compared(_counters(predicted), launch.metrics)))
        return 0
    if size is None:
        raise GemmsimError("--kernel needs --size, such as --size 1024")
    options = "".join(f":{part}" for part in (dtype, ",".join(tunables)) if part)
    record, counters = _rung(launch, f"{kernel}{options}@{size}", gpu)
    click.echo(table(compared(counters, launch.metrics)))
    if output:
        from ..records import write_records

        write_records(output, [record])
    return 0


def _rung(launch: Profiled, text: str, gpu_name: str | None) -> tuple[dict[str, Any], dict[str, float]]:
    """The record of the launch, and what is predicted."""
    from gemmsim.api import analyze
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.cases import LadderCase, ladder_request
    from gemmsim.launch.ladder import kernel_info

    from ..import_ncu import record
    from ..measure.spec import case_id, parse_spec
    from ..store import preset_of

    (spec,) = parse_spec(text)
    name = gpu_name or (preset_of(launch.device) if launch.device else None)
    if name is None:
        raise GemmsimError("the file does not say which GPU it is of: give --gpu NAME")
    gpu = load_gpu(name)
    info = kernel_info(spec.kernel)
    request = ladder_request(LadderCase(spec.kernel, spec.m, spec.n, spec.k, spec.dtype, spec.tunables), gpu)
    grid, block = request.launch.grid, request.launch.block
    if (launch.grid and launch.grid != grid) or (launch.block and launch.block != block):
        raise GemmsimError(
            f"the launch in the file has grid {launch.grid} and block {launch.block}, "
            f"{info.name} of this size {grid} and {block}: another kernel, size or tunable?"
        )
    kind = spec.dtype or info.dtypes[0]
    chosen = request.labels.tunables
    case = {
        "id": case_id(info.name, kind, chosen, spec.m, spec.n, spec.k),
        "subject": {"name": info.name, "rung": True, "tunables": chosen, "abi": "numba", "arch": gpu.arch},
        "problem": {
            "m": spec.m, "n": spec.n, "k": spec.k, "dtype": kind, "result_dtype": info.result_dtype(kind),
            "b_transposed": info.b_transposed, "relu": info.relu, "operand_roundoff": info.operand_roundoff,
        },
        "launch": {
            "grid": list(grid), "block": list(block), "arguments": list(info.arguments),
            "dynamic_shared_bytes": request.launch.dynamic_shared_bytes,
        },
    }  # fmt: skip
    return record(launch, case, gpu.name, gpu.arch), analyze(request).evidence.counters


def _counters(path: Path) -> dict[str, float | None]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        counters: dict[str, float | None] = data["counters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GemmsimError(
            f"{path} is no report of gemmsim analyze --format json: {type(error).__name__} {error}"
        ) from None
    return counters
