"""gemmsim-validate measure: compiles cases into a bundle, measures a bundle on a GPU, or does both at once."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.group import gathered
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural

from ..measure.options import Options
from .options import PATH

if TYPE_CHECKING:
    from ..measure.spec import Spec


@dataclass(frozen=True)
class Cases:
    """What the user wants measured: specs as text, and kernels, each of them at every size of `sizes` with `dtype`."""

    specs: tuple[str, ...]
    kernels: tuple[str, ...]
    sizes: tuple[str, ...]
    dtype: str | None

    def parsed(self) -> list[Spec]:
        """Return a `Spec` for each case that is wanted. Raises GemmsimError, one line, for a text that is no spec."""
        from ..measure.spec import parse_spec

        if self.kernels and not self.sizes:
            raise GemmsimError("--kernel needs --size, such as --size 1024")
        suffix = f"{f':{self.dtype}' if self.dtype else ''}@{','.join(self.sizes)}"
        texts = (*self.specs, *(f"{kernel}{suffix}" for kernel in self.kernels))
        return [spec for text in texts for spec in parse_spec(text)]


@click.command()
@click.argument("specs", nargs=-1, metavar="[CASE]...")
@click.option(
    "--kernel", "kernels", multiple=True, help="A rung of the ladder, or cublas; with --size. May be repeated."
)
@click.option("--size", "sizes", multiple=True, metavar="N|MxNxK", help="Of every --kernel. May be repeated.")
@click.option("--dtype", help="Of every --kernel that takes it; the rung's default otherwise.")
@click.option("--gpu", metavar="NAME", help="Preset that predicts this GPU; with --prepare: what to compile for.")
@click.option("--prepare", "bundle_out", type=PATH, metavar="FOLDER", help="Only compile, to FOLDER.")
@click.option("--bundle", type=PATH, metavar="FOLDER", help="Measure what --prepare wrote.")
@click.option("-o", "--output", type=PATH, metavar="FILE", help="File of records; continued.")
@click.option("--no-counters", is_flag=True, help="Times only, without Nsight Compute.")
@click.option("--jit", is_flag=True, help="Launch the @cuda.jit functions through numba too, and compare the code.")
@click.option(
    "--samples", type=click.IntRange(20), default=Options.samples, show_default=True, help="Of each series of times."
)
@click.option(
    "--profile-timeout",
    "profile_timeout_s",
    type=float,
    default=540,
    show_default=True,
    help="Seconds for one run of ncu.",
)
@gathered("cases", Cases)
@gathered("options", Options)
def command(
    cases: Cases,
    gpu: str | None,
    bundle_out: Path | None,
    bundle: Path | None,
    output: Path | None,
    options: Options,
) -> int:
    """Measure cases: kernel[:dtype][:tunable=value,...]@size[,size], or --kernel and --size.

    A size is N or MxNxK; with a `t` behind it, it is only timed.
    """
    wanted = cases.parsed()
    if bundle_out:
        return _prepare(wanted, gpu, bundle_out)
    if output is None:
        raise GemmsimError("where to? give -o FILE for the records")
    from ..measure.__main__ import run

    if bundle:
        return run(bundle, output, options)
    with tempfile.TemporaryDirectory() as folder:
        from ..records.store import keep_cubins

        _prepare_here(wanted, gpu, Path(folder))
        status = run(Path(folder), output, options)
        keep_cubins(output, Path(folder))
    return status


def _prepare(wanted: list[Spec], gpu: str | None, folder: Path) -> int:
    from gemmsim.gpu import load_gpu

    from ..measure.prepare import prepare

    if gpu is None:
        raise GemmsimError("--prepare needs --gpu, such as --gpu h200")
    spec = load_gpu(gpu)
    made = prepare(wanted, spec.arch, spec.name, folder)
    click.echo(f"{plural(len(made.cases), 'case')} for {spec.title} in {folder}", err=True)
    return 0


def _prepare_here(wanted: list[Spec], gpu: str | None, folder: Path) -> None:
    """Write a bundle of the wanted cases for the GPU of this machine."""
    from gemmsim.gpu import load_gpu

    from ..gpu_files.device import preset_of
    from ..measure.gpu import Gpu
    from ..measure.prepare import prepare

    found = Gpu()
    arch = f"sm_{found.capability[0]}{found.capability[1]}"
    prepare(wanted, arch, load_gpu(gpu).name if gpu else preset_of(found.name), folder)
