"""gemmsim analyze"""

from __future__ import annotations

from typing import Any

import click

from gemmsim.cli.options import format_option, output_option
from gemmsim.cli.output import emit
from gemmsim.errors import GemmsimError

EXPECTATION_FAILED = 1


@click.command("analyze")
@click.argument("target", required=False)
@click.option("--kernel", metavar="NAME", help="A built-in kernel (gemmsim list kernels).")
@click.option("--entry", metavar="NAME", help="Entry of a .cu, .ptx or .cubin, e.g. 'sgemm<128,8>'.")
@click.option("--size", type=int, metavar="N", help="M = N = K = N.")
@click.option("--m", type=int, help="Rows of A and C.")
@click.option("--n", type=int, help="Columns of B and C.")
@click.option("--k", type=int, help="Columns of A, rows of B.")
@click.option("--gpu", default="a100-80gb", show_default=True, metavar="NAME|FILE.toml", help="gemmsim list gpus.")
@click.option("--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=25MiB.")
@click.option("--set-kernel", "kernel_sets", multiple=True, metavar="KEY=VALUE", help="A tunable: tile=16.")
@click.option("--dtype", metavar="TYPE", help="Of A and B, for a built-in kernel that takes several: bf16.")
@click.option("--alpha", type=float, default=1.0, show_default=True)
@click.option("--beta", type=float, default=0.0, show_default=True)
@click.option("--grid", metavar="X,Y,Z", help="Blocks, for a kernel of your own.")
@click.option("--block", metavar="X,Y,Z", help="Threads a block, for a kernel of your own.")
@click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory a block.")
@click.option("--arg", "args", multiple=True, metavar="TYPE[SHAPE]=VALUE", help="A parameter: f32[256,256].")
@click.option("--verify", type=click.Choice(["gemm"]), help="Arguments are A, B, C: check C.")
@click.option("--full", is_flag=True, help="Execute every block instead of a sample.")
@click.option("--max-instructions", type=int, metavar="N", help="Warp instructions before a kernel is given up.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random arrays.")
@click.option("--no-cache", is_flag=True, help="Compile again.")
@format_option
@output_option
def command(output_format: str, output: str | None, **options: Any) -> int:
    """Predict what one kernel launch does.

    \b
    gemmsim analyze --kernel tiled --size 256
    gemmsim analyze my.py:my_gemm --grid 8,8 --block 32,32 \\
        --arg 'f32[256,256]' --arg 'f32[256,256]' --arg 'f32[256,256]=0'

    TARGET is FILE.py:function (numba.cuda), FILE.cu, FILE.ptx or FILE.cubin.
    A Python file is imported: its code runs on this machine.
    """
    if (options["kernel"] is None) == (options["target"] is None):
        raise GemmsimError("give either --kernel NAME or a TARGET such as my.py:my_gemm (see gemmsim analyze --help)")

    from gemmsim.api import analyze
    from gemmsim.cli.requests import Options, kernel_request, target_request

    wanted = Options(**options)
    request = kernel_request(wanted) if wanted.kernel else target_request(wanted)
    report = analyze(request)
    if output_format == "json":
        from gemmsim.report.json import render
    else:
        from gemmsim.report.text import render
    emit(render(report), output)
    return EXPECTATION_FAILED if report.verified.ok is False else 0
