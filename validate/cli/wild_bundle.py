"""gemmsim-validate wild-bundle: compiles kernels of public repositories, to be measured on a GPU."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--root",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of checkouts, OWNER+NAME each.",
)
@click.option("--kernel", "kernels", multiple=True, metavar="PATTERN", help="Only kernels so named; repeatable.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(root: Path, kernels: tuple[str, ...], folder: Path) -> int:
    """Compile kernels of the manifest for an H200 and write them to FOLDER, a bundle.

    Which kernels, at which sizes, stands in validate/wild/measured.toml.

    `python -m validate.measure --bundle FOLDER -o FILE` measures it on the GPU's machine, from a checkout of gemmsim.
    The records are there to judge gemmsim by: no number of a GPU or of a model is fitted to them.
    """
    from ..wild.bundle import make_bundle
    from ..wild.manifest import read_manifest

    bundle = make_bundle(read_manifest(), root, folder, kernels)
    click.echo(f"{len(bundle.cases)} cases of {len({case['subject']['name'] for case in bundle.cases})} kernels")
    return 0
