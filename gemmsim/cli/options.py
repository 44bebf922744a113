"""Defines the options that several commands share, and dataclasses of the options that describe launches.

An option that describes the launch belongs here. An option of a single command belongs in that command's own file, such
as `analyze.py`. `compare` and `sweep` describe many launches at once and have dataclasses of their own here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import click

from gemmsim.cli.compiling import CompileOptions
from gemmsim.cli.defaults import GPU_SHOWN, USUAL_GPU, default_gpu
from gemmsim.cli.group import NESTED, Decorator, filled_by

DEFAULT_GPU = USUAL_GPU
FAILED = 1  # exit status where an expectation does not hold or C is wrong


def _kernel_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from gemmsim.launch.ladder import kernel_infos  # only completion needs it

    return [name for name in kernel_infos() if name.startswith(incomplete)]


def gpu_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Complete the last name of a list, as of --gpus."""
    from gemmsim.gpu import aliases, preset_names  # only completion needs it

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in sorted({*preset_names(), *aliases()}) if name.startswith(last)]


gpu_option = click.option(
    "--gpu",
    default=default_gpu,
    show_default=GPU_SHOWN,
    metavar="NAME|FILE.toml",
    shell_complete=gpu_names,
    help="gemmsim list gpus.",
)
target_argument = click.argument("target", required=False)
kernel_option = click.option(
    "--kernel", metavar="NAME", shell_complete=_kernel_names, help="A built-in kernel (gemmsim list kernels)."
)
dtype_option = click.option(
    "--dtype", metavar="TYPE", help="Of A and B, for a built-in kernel that takes several: bf16."
)
gpu_sets_option = click.option(
    "--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=25MiB."
)
arg_option = click.option(
    "--arg", "args", multiple=True, metavar="TYPE[SHAPE]=VALUE", help="A parameter: f32[256,256], i32=8, {...}."
)
array_option = click.option(
    "--array", "arrays", multiple=True, metavar="NAME:TYPE[SHAPE]", help="An array that &NAME in --arg refers to."
)
verify_option = click.option(
    "--verify", metavar="gemm|FORMULA", help="gemm: arguments are A, B, C; else 'D = relu(A @ B.T + bias)'."
)
jobs_option = click.option("--jobs", type=int, metavar="N", help="Processes at once.  [default: CPUs]")
no_cache_option = click.option("--no-cache", is_flag=True, help="Compile again.")
caches_option = click.option(
    "--caches",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="cold: L2 is empty, as Nsight Compute measures. warm: L2 and instruction caches are as an identical launch "
    "just before left them.",
)


def engine_option_saying(help_text: str) -> Decorator:
    """Make the option --engine, which chooses what runs the model of the SM, with this help text."""
    return click.option(
        "--engine",
        type=click.Choice(["auto", "simpy", "native"]),
        default="auto",
        show_default=True,
        help=help_text,
    )


engine_option = engine_option_saying(
    "auto takes SimPy for short runs, else the native loop; both give the same numbers."
)
clock_option = click.option(
    "--clock",
    metavar="NAME|HZ",
    default="burst",
    show_default=True,
    help="Of the SMs: burst (a few launches), sustained (launches in a row, power limited), or locked: 1410MHz.",
)
size_option = click.option("--size", type=int, metavar="N", help="M = N = K = N.")
m_option = click.option("--m", type=int, help="Rows of A and C.")
n_option = click.option("--n", type=int, help="Columns of B and C.")
k_option = click.option("--k", type=int, help="Columns of A, rows of B.")


def plot_option(kinds: Sequence[str]) -> Decorator:
    """Make the option --plot, which may be given several times; `kinds` are the pictures that the command can draw."""
    named = f"{kinds[0]}.png" if len(kinds) == 1 else " or ".join(f"{kind}.png" for kind in kinds)
    return click.option(
        "--plot",
        "plots",
        multiple=True,
        metavar="[KIND:]FILE",
        help=f"Draw {named} (.svg, .pdf); another name as {kinds[0]}:FILE. Needs matplotlib.",
    )


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """TARGET and the options that describe one launch, as typed; `cli/requests.py` makes a LaunchSpec of them."""

    target: str | None = filled_by(target_argument)
    kernel: str | None = filled_by(kernel_option)
    entry: str | None = filled_by(
        click.option("--entry", metavar="NAME", help="Kernel of a .cu, .ptx or binary file: 'sgemm<128,8>'.")
    )
    compiling: CompileOptions = field(default_factory=CompileOptions, metadata=NESTED)
    size: int | None = filled_by(size_option)
    m: int | None = filled_by(m_option)
    n: int | None = filled_by(n_option)
    k: int | None = filled_by(k_option)
    gpu: str = filled_by(gpu_option, DEFAULT_GPU)
    gpu_sets: tuple[str, ...] = filled_by(gpu_sets_option, ())
    kernel_sets: tuple[str, ...] = filled_by(
        click.option("--set-kernel", "kernel_sets", multiple=True, metavar="KEY=VALUE", help="A tunable: tile=16."), ()
    )
    dtype: str | None = filled_by(dtype_option)
    alpha: float = filled_by(click.option("--alpha", type=float, default=1.0, show_default=True), 1.0)
    beta: float = filled_by(click.option("--beta", type=float, default=0.0, show_default=True), 0.0)
    grid: str | None = filled_by(click.option("--grid", metavar="X,Y,Z", help="Blocks, for a kernel of your own."))
    block: str | None = filled_by(
        click.option("--block", metavar="X,Y,Z", help="Threads a block, for a kernel of your own.")
    )
    shared: int = filled_by(
        click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory a block."), 0
    )
    cooperative: bool = filled_by(
        click.option(
            "--cooperative", is_flag=True, help="A cooperative launch: all blocks must fit on the GPU at once."
        ),
        default=False,
    )
    cluster: str | None = filled_by(
        click.option(
            "--cluster", metavar="X,Y,Z", help="Blocks of a cluster, for a kernel of your own (from sm_90 on)."
        )
    )
    args: tuple[str, ...] = filled_by(arg_option, ())
    arrays: tuple[str, ...] = filled_by(array_option, ())
    symbols: tuple[str, ...] = filled_by(
        click.option(
            "--symbol", "symbols", multiple=True, metavar="NAME=VALUE", help="A __constant__ variable: scale=f32=2."
        ),
        (),
    )
    verify: str | None = filled_by(verify_option)
    accumulate: str | None = filled_by(
        click.option("--accumulate", metavar="TYPE", help="In which the kernel adds up, for --verify FORMULA: f16.")
    )
    reference: tuple[str, ...] = filled_by(
        click.option(
            "--reference", multiple=True, metavar="FILE.npz|NAME=FILE", help="Compare arrays with these after the run."
        ),
        (),
    )
    tolerance: float | None = filled_by(
        click.option(
            "--tolerance", type=float, metavar="X", help="Of FORMULA and --reference: part of the largest value."
        )
    )
    full: bool = filled_by(
        click.option("--full", is_flag=True, help="Execute every block instead of a sample."), default=False
    )
    caches: str = filled_by(caches_option, "cold")
    max_instructions: int | None = filled_by(
        click.option("--max-instructions", type=int, metavar="N", help="Warp instructions before a kernel is given up.")
    )
    seed: int = filled_by(
        click.option("--seed", type=int, default=0, show_default=True, help="Of the random arrays."), 0
    )
    no_cache: bool = filled_by(no_cache_option, default=False)
    engine: str = "auto"  # no options here: subclasses add them
    clock: str = "burst"


@dataclass(frozen=True, slots=True)
class TimedLaunchOptions(LaunchOptions):
    """`LaunchOptions` with --engine and --clock, for a command that reports how long the launch takes."""

    engine: str = filled_by(engine_option, "auto")
    clock: str = filled_by(clock_option, "burst")


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of `compare`, as typed."""

    kernels: tuple[str, ...] = filled_by(
        click.option(
            "--kernel",
            "kernels",
            multiple=True,
            metavar="NAME[:KEY=VALUE,...]",
            shell_complete=_kernel_names,
            help="A rung; repeat it. All else.",
        )
    )
    size: int | None = filled_by(size_option)
    m: int | None = filled_by(m_option)
    n: int | None = filled_by(n_option)
    k: int | None = filled_by(k_option)
    gpu: str | None = filled_by(
        click.option(
            "--gpu",
            metavar="NAME|FILE.toml",
            shell_complete=gpu_names,
            help=f"gemmsim list gpus.  [default: ({GPU_SHOWN})]",
        )
    )
    gpus: str | None = filled_by(
        click.option(
            "--gpus",
            metavar="NAME,NAME,...",
            shell_complete=gpu_names,
            help="Several: one kernel over them, or the ladder on each.",
        )
    )
    gpu_sets: tuple[str, ...] = filled_by(gpu_sets_option)
    dtype: str | None = filled_by(
        click.option("--dtype", metavar="TYPE", help="Of A and B, where a rung takes it; each rung's default else.")
    )
    baseline: str | None = filled_by(
        click.option(
            "--baseline", metavar="NAME|BUNDLE[#N,...]", help="cublas, or launches captured on a GPU, beside the rungs."
        )
    )
    caches: str = filled_by(caches_option)
    engine: str = filled_by(engine_option)
    clock: str = filled_by(clock_option)
    jobs: int | None = filled_by(jobs_option)
    no_cache: bool = filled_by(no_cache_option)

    @property
    def gpu_names(self) -> list[str]:
        """Return the names of the GPUs that --gpu or --gpus gives; the default GPU where neither was given."""
        return [self.gpu or default_gpu()] if self.gpus is None else [name.strip() for name in self.gpus.split(",")]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """TARGET and the options of `sweep`, as typed."""

    target: str | None = filled_by(target_argument)
    kernel: str | None = filled_by(kernel_option)
    kernel_sets: tuple[str, ...] = filled_by(
        click.option(
            "--set-kernel", "kernel_sets", multiple=True, metavar="KEY=V,V,...", help="Values of a tunable, or all."
        )
    )
    sizes: tuple[str, ...] = filled_by(
        click.option("--size", "sizes", multiple=True, metavar="N,MxNxK,...", help="Problem sizes.")
    )
    gpus: str = filled_by(
        click.option(
            "--gpus",
            "--gpu",
            default=default_gpu,
            show_default=GPU_SHOWN,
            metavar="NAME,...",
            shell_complete=gpu_names,
            help="gemmsim list gpus.",
        )
    )
    gpu_sets: tuple[str, ...] = filled_by(
        click.option("--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPUs: l2.size=25MiB.")
    )
    where: tuple[str, ...] = filled_by(
        click.option("--where", multiple=True, metavar="CONDITION", help="Leave out what does not meet it: 'bm >= bn'.")
    )
    dtype: str | None = filled_by(dtype_option)
    entry: str | None = filled_by(
        click.option("--entry", metavar="NAME", help="Of a .cu, .ptx or binary file: 'sgemm<{bm},{bn}>'.")
    )
    compiling: CompileOptions = field(default_factory=CompileOptions, metadata=NESTED)
    grid: str | None = filled_by(
        click.option("--grid", metavar="X,Y,Z", help="Blocks, for a kernel of your own: '{n//bn},{m//bm}'.")
    )
    block: str | None = filled_by(
        click.option("--block", metavar="X,Y,Z", help="Threads a block, for a kernel of your own.")
    )
    shared: str = filled_by(
        click.option(
            "--shared", default="0", metavar="BYTES", help="Dynamic shared memory a block, for a kernel of your own."
        )
    )
    args: tuple[str, ...] = filled_by(
        click.option("--arg", "args", multiple=True, metavar="TYPE[SHAPE]=VALUE", help="A parameter: 'f32[{m},{k}]'.")
    )
    arrays: tuple[str, ...] = filled_by(array_option)
    verify: str | None = filled_by(verify_option)
    caches: str = filled_by(caches_option)
    engine: str = filled_by(engine_option)
    top: int = filled_by(
        click.option(
            "--top", type=int, default=10, show_default=True, help="Results to show of each size and GPU; 0: all."
        )
    )
    jobs: int | None = filled_by(jobs_option)
    scheduler: str | None = filled_by(
        click.option("--scheduler", metavar="tcp://HOST:PORT", help="Predict on the dask cluster there instead.")
    )
    no_cache: bool = filled_by(click.option("--no-cache", is_flag=True, help="Compile and predict again."))
