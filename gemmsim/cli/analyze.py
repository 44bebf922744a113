"""gemmsim analyze"""

from __future__ import annotations

from typing import Any

import click

from gemmsim.cli.options import format_option, launch_options, output_option
from gemmsim.cli.output import emit

EXPECTATION_FAILED = 1


@click.command("analyze")
@click.argument("target", required=False)
@launch_options
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
    from gemmsim.api import analyze
    from gemmsim.cli.requests import Options, launch_request

    report = analyze(launch_request(Options(**options)))
    if output_format == "json":
        from gemmsim.report.json import render
    else:
        from gemmsim.report.text import render
    emit(render(report), output)
    return EXPECTATION_FAILED if report.verified.ok is False else 0
