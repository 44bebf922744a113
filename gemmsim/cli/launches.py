"""The command `gemmsim launches`, which predicts several launches in order on one memory and one L2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import filled_by, gathered
from gemmsim.cli.options import DEFAULT_GPU, FAILED, engine_option, gpu_option, gpu_sets_option, no_cache_option


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What holds for all launches of a plan, as typed."""

    gpu: str = filled_by(gpu_option, DEFAULT_GPU)
    gpu_sets: tuple[str, ...] = filled_by(gpu_sets_option, ())
    full: bool = filled_by(
        click.option("--full", is_flag=True, help="Execute every block of every launch instead of samples."),
        default=False,
    )
    max_instructions: int | None = filled_by(
        click.option("--max-instructions", type=int, metavar="N", help="Warp instructions before a kernel is given up.")
    )
    seed: int = filled_by(
        click.option("--seed", type=int, default=0, show_default=True, help="Of the random arrays."), 0
    )
    no_cache: bool = filled_by(no_cache_option, default=False)
    engine: str = filled_by(engine_option, "auto")


@click.command("launches")
@click.argument("plan", metavar="PLAN.toml")
@gathered("options", PlanOptions)
@click.option("--each", is_flag=True, help="Show each launch's own report, too.")
@format_option("text", "json", "csv")
@output_option
def command(plan: str, options: PlanOptions, each: bool, output_format: str, output: str | None) -> int:
    """Predict several launches in order, on one memory and one L2.

    \b
    gemmsim launches split_k.toml --gpu h200

    \b
    [arrays]
    A = "f32[256,256]"
    B = "f32[256,256]"
    C = "f32[256,256]=0"
    [[launch]]
    kernel = "my.cu"
    entry = "gemm"
    grid = [8, 8]
    block = 256
    args = ["&A", "&B", "&C", "i32=256"]

    Each launch finds in the arrays what those before it have stored, and in L2
    what the launch before left there.
    """
    from gemmsim.cli.output import emit
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.plan import PlanSettings, read_plan
    from gemmsim.launch.spec import DEFAULT_MAX_INSTRUCTIONS, Settings
    from gemmsim.report.studies.launches import RENDERERS
    from gemmsim.studies.launches import analyze_launches

    limit = DEFAULT_MAX_INSTRUCTIONS if options.max_instructions is None else options.max_instructions
    settings = Settings(options.full, limit, not options.no_cache, options.engine)
    common = PlanSettings(load_gpu(options.gpu, options.gpu_sets), settings, options.seed)
    reports = analyze_launches(read_plan(Path(plan), common))
    emit(RENDERERS[output_format](reports, each), output)
    return FAILED if any(report.verified.ok is False for report in reports) else 0
