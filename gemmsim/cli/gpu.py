"""The command `gemmsim gpu`, which shows where a GPU's numbers come from and writes GPU files from data sheets."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.options import gpu_names
from gemmsim.cli.output import emit, write_file
from gemmsim.support.errors import GemmsimError, nearest

HEADS = {"vendor": "FROM THE DATA SHEET", "scaled": "SCALED BY A RULE", "copied": "COPIED"}


class _Group(click.Group):
    """The group of this command's commands; the names of all GPUs, which people seek here, are in another command."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            known = self.list_commands(ctx)
            raise GemmsimError(
                f"gemmsim gpu has no command '{cmd_name}'{nearest(cmd_name, known)}: it has {' and '.join(known)}; "
                "gemmsim list gpus names the GPUs"
            )
        return found


@click.group(
    "gpu",
    cls=_Group,
    invoke_without_command=True,
    short_help="Show a GPU's numbers, or write a GPU file from a data sheet.",
)
@click.pass_context
def command(context: click.Context) -> None:
    """Show where a GPU's numbers come from, or write a GPU file from what a data sheet says."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@command.command("show", short_help="List a GPU's numbers with status and source.")
@click.argument("gpu", metavar="NAME|FILE.toml", shell_complete=gpu_names)
@format_option("text", "json")
@output_option
def show(gpu: str, output_format: str, output: str | None) -> None:
    """List every number of a GPU: its key, value, status and source."""
    import json

    from gemmsim.gpu import load_gpu
    from gemmsim.gpu.units import shown

    spec = load_gpu(gpu)
    rows = [(key, shown(key, one.value), one.status, one.source) for key, one in spec.provenance.items()]
    if output_format == "json":
        names = ("key", "value", "status", "source")
        numbers = [dict(zip(names, row, strict=True)) for row in rows]
        emit(json.dumps({"gpu": spec.name, "arch": spec.arch, "numbers": numbers}, indent=2), output)
        return
    lines = [f"{spec.name}: {spec.title} ({spec.arch})"]
    for key, value, status, source in rows:
        lines += [f"{key:36} {value} ({status})", *textwrap.wrap(source, 80, **_INDENTS)]
    emit("\n".join(lines), output)


_INDENTS: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}


@command.command("new", short_help="Write a GPU file from a data sheet.")
@click.argument("name")
@click.option("--like", required=True, metavar="GPU", shell_complete=gpu_names, help="The GPU that it is most like.")
@click.option("--sms", required=True, type=int, help="SMs (CUDA cores / 128; of Turing and A100, / 64).")
@click.option("--boost-mhz", required=True, type=float, help="Rated boost clock.")
@click.option("--dram-gbs", required=True, type=float, help="Bandwidth of the memory, GB/s.")
@click.option("--l2-mib", required=True, type=float, help="L2 cache, MiB.")
@click.option("--base-mhz", type=float, help="Base clock.")
@click.option("--dram-gib", type=float, help="Memory, GiB.")
@click.option("--tensor-tflops", type=float, help="FP16 tensor peak, dense, FP32 accumulation.")
@click.option("--watts", type=float, help="Power of the board.")
@click.option("--title", help="What reports call it; else NAME.")
@click.option("--source", help="The data sheet's name, which its numbers cite.")
@click.option("-o", "--output", metavar="FILE", help="Where the file goes; else NAME.toml, which must not exist.")
def new(name: str, like: str, title: str | None, source: str | None, output: str | None, **sheet: float | None) -> None:
    """Write a GPU file from what a data sheet says, and list where each number comes from.

    What the data sheet does not say follows from the GPU that it is --like, by the rules of docs/model/gpu-rules.md.
    """
    from gemmsim.gpu.describe import file_text

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise GemmsimError(f"'{name}' is no name for a GPU: letters, digits, '-', '_' and '.', please")
    stated = {option: float(number) for option, number in sheet.items() if number is not None}
    path = Path(output or f"{name}.toml")
    if path.suffix.lower() != ".toml":
        raise GemmsimError(f"{path}: a GPU file's name ends in .toml")
    if output is None and path.exists():
        raise GemmsimError(f"{path} exists; -o {path} writes over it")
    text = file_text(title or name, _known(like), stated, source or f"data sheet of {title or name}")
    found = _checked(text, path)
    write_file(text.encode(), str(path))
    lines = [f"{path}: like {like}; --gpu {path} uses it"]
    for status, rows in sorted(found.items(), key=lambda item: list(HEADS).index(item[0])):
        lines += ["", HEADS[status]]
        for key, value, origin in rows:
            lines += [f"  {key:36} {value}", *textwrap.wrap(origin, 80, **_INDENTS)]
    emit("\n".join(lines), None)


def _known(like: str) -> str:
    """Return the name that the file has for a GPU: a path becomes absolute, as the file may lie elsewhere."""
    return str(Path(like).expanduser().resolve()) if like.lower().endswith(".toml") else like.lower()


def _checked(text: str, path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return where the numbers come from. Raises GemmsimError for a GPU that cannot exist."""
    import tempfile

    from gemmsim.gpu.describe import origins

    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / path.name
        trial.write_text(text, encoding="utf-8")
        return origins(trial)
