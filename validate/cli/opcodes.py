"""gemmsim-validate opcodes: compares what gemmsim computes for each scalar instruction with a GPU, bit for bit."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gemmsim.cli.group import gathered
from gemmsim.support.errors import GemmsimError
from gemmsim.support.plurals import plural

from .options import EXPRESSION, PATH, emit, output_option

if TYPE_CHECKING:
    from ..opcodes.bundle import Bundle
    from ..opcodes.outputs import Outputs


@dataclass(frozen=True)
class Sources:
    """Where kernels and results come from: a bundle, a file of a GPU's outputs, what is recorded; and where to keep the
    digests of outputs."""

    bundle: Path | None
    measured: Path | None
    recorded: bool
    digests: Path | None


@click.command()
@click.option("--arch", default="sm_90", show_default=True, metavar="sm_NN", help="Architecture to compile for.")
@click.option(
    "--only", type=EXPRESSION, default="", metavar="REGEX", help="Only PTX instructions that it finds: 'cvt.*f16'."
)
@click.option("--prepare", "bundle_out", type=PATH, metavar="FOLDER", help="Only compile, to FOLDER; needs no GPU.")
@click.option("--bundle", type=PATH, metavar="FOLDER", help="Take the kernels that --prepare wrote.")
@click.option("--measured", type=PATH, metavar="FILE", help="Outputs of a GPU: python -m validate.opcodes wrote them.")
@click.option("--recorded", is_flag=True, help="Compare with what is kept of an H200; sm_90 only.")
@click.option("--digests", type=PATH, metavar="FILE", help="Keep digests of the GPU's outputs in FILE, for --recorded.")
@output_option
@gathered("sources", Sources)
def command(arch: str, only: str, bundle_out: Path | None, sources: Sources, output: Path | None) -> int:
    """Run a generated kernel for each scalar PTX instruction, in gemmsim and on a GPU, and compare their results.

    Without --measured and --recorded, the GPU of this machine runs them. Writes JSON; the exit status is 1 where
    results differ.
    """
    from ..opcodes.bundle import read_bundle
    from ..opcodes.compare import compare
    from ..opcodes.digests import compare_digests, digests_of, read_digests, write_digests
    from ..opcodes.prepare import prepare
    from ..opcodes.simulate import run_in_gemmsim

    if bundle_out is not None:
        made = prepare(bundle_out, arch, only)
        click.echo(f"{plural(len(made.cases), 'kernel')} for {made.arch} in {bundle_out}", err=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="gemmsim-") as folder:
        kernels = read_bundle(sources.bundle) if sources.bundle is not None else prepare(Path(folder), arch, only)
        if sources.recorded:
            document = compare_digests(kernels, run_in_gemmsim(kernels), read_digests())
        else:
            theirs = _outputs(kernels, sources.measured)
            if sources.digests is not None:
                write_digests(sources.digests, digests_of(kernels, theirs))
            document = compare(kernels, run_in_gemmsim(kernels), theirs)
    emit(json.dumps(document, indent=1) + "\n", output)
    count = document["count"]
    click.echo(", ".join(f"{number} {status}" for status, number in count.items()), err=True)
    return 1 if count.get("differs") else 0


def _outputs(kernels: Bundle, measured: Path | None) -> Outputs:
    """Read a GPU's outputs, or run the kernels on this machine's GPU. Raises GemmsimError for those of other inputs."""
    from ..opcodes.outputs import read_outputs

    if measured is None:
        from ..opcodes.device import run_on_gpu

        return run_on_gpu(kernels)
    outputs = read_outputs(measured)
    if outputs.facts.get("inputs_sha256") != kernels.inputs_sha256:
        raise GemmsimError("these outputs were measured with other inputs than this bundle has")
    return outputs
