"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the data.",
)
output_option = click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
caches_option = click.option(
    "--caches",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="cold: L2 is empty, as Nsight Compute measures. warm: as an identical launch just before left it.",
)

# What says which launch to analyse, beside a TARGET: the fields of `requests.Options`.
_LAUNCH = (
    click.option("--kernel", metavar="NAME", help="A built-in kernel (gemmsim list kernels)."),
    click.option("--entry", metavar="NAME", help="Entry of a .cu, .ptx or .cubin, e.g. 'sgemm<128,8>'."),
    click.option("--size", type=int, metavar="N", help="M = N = K = N."),
    click.option("--m", type=int, help="Rows of A and C."),
    click.option("--n", type=int, help="Columns of B and C."),
    click.option("--k", type=int, help="Columns of A, rows of B."),
    click.option("--gpu", default="a100-80gb", show_default=True, metavar="NAME|FILE.toml", help="gemmsim list gpus."),
    click.option("--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=25MiB."),
    click.option("--set-kernel", "kernel_sets", multiple=True, metavar="KEY=VALUE", help="A tunable: tile=16."),
    click.option("--dtype", metavar="TYPE", help="Of A and B, for a built-in kernel that takes several: bf16."),
    click.option("--alpha", type=float, default=1.0, show_default=True),
    click.option("--beta", type=float, default=0.0, show_default=True),
    click.option("--grid", metavar="X,Y,Z", help="Blocks, for a kernel of your own."),
    click.option("--block", metavar="X,Y,Z", help="Threads a block, for a kernel of your own."),
    click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory a block."),
    click.option("--arg", "args", multiple=True, metavar="TYPE[SHAPE]=VALUE", help="A parameter: f32[256,256]."),
    click.option("--verify", type=click.Choice(["gemm"]), help="Arguments are A, B, C: check C."),
    click.option("--full", is_flag=True, help="Execute every block instead of a sample."),
    caches_option,
    click.option("--max-instructions", type=int, metavar="N", help="Warp instructions before a kernel is given up."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the random arrays."),
    click.option("--no-cache", is_flag=True, help="Compile again."),
)


def launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: adds the options of `analyze` that say which launch."""
    for option in reversed(_LAUNCH):
        command = option(command)
    return command
