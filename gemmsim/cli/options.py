"""Options that several commands share, and the record of those that say which launch is meant."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_GPU = "a100-80gb"
FAILED = 1  # exit status where an expectation does not hold or C is wrong


def format_option(*forms: str) -> Decorator:
    """--format; the first of `forms` is the default."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Form of the data.",
    )


output_option = click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
target_argument = click.argument("target", required=False)
kernel_option = click.option("--kernel", metavar="NAME", help="A built-in kernel (gemmsim list kernels).")
dtype_option = click.option(
    "--dtype", metavar="TYPE", help="Of A and B, for a built-in kernel that takes several: bf16."
)
gpu_sets_option = click.option(
    "--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=25MiB."
)
verify_option = click.option("--verify", type=click.Choice(["gemm"]), help="Arguments are A, B, C: check C.")
jobs_option = click.option("--jobs", type=int, metavar="N", help="Processes at once.  [default: CPUs]")
no_cache_option = click.option("--no-cache", is_flag=True, help="Compile again.")
caches_option = click.option(
    "--caches",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="cold: L2 is empty, as Nsight Compute measures. warm: as an identical launch just before left it.",
)
engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "simpy", "native"]),
    default="auto",
    show_default=True,
    help="What runs the model of the SM; auto takes SimPy where it costs at most about 0.2 s.",
)
size_options = (
    click.option("--size", type=int, metavar="N", help="M = N = K = N."),
    click.option("--m", type=int, help="Rows of A and C."),
    click.option("--n", type=int, help="Columns of B and C."),
    click.option("--k", type=int, help="Columns of A, rows of B."),
)


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """TARGET and the options that say which launch is meant, as typed; `requests` makes a LaunchSpec of them."""

    target: str | None = None
    kernel: str | None = None
    entry: str | None = None
    size: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    gpu: str = DEFAULT_GPU
    gpu_sets: tuple[str, ...] = ()
    kernel_sets: tuple[str, ...] = ()
    dtype: str | None = None
    alpha: float = 1.0
    beta: float = 0.0
    grid: str | None = None
    block: str | None = None
    shared: int = 0
    args: tuple[str, ...] = ()
    verify: str | None = None
    full: bool = False
    caches: str = "cold"
    max_instructions: int | None = None
    seed: int = 0
    no_cache: bool = False
    engine: str = "auto"


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of `compare` that say what is compared, as typed."""

    kernels: tuple[str, ...] = ()
    size: int | None = None
    m: int | None = None
    n: int | None = None
    k: int | None = None
    gpu: str | None = None
    gpus: str | None = None
    gpu_sets: tuple[str, ...] = ()
    dtype: str | None = None
    caches: str = "cold"
    no_cache: bool = False
    engine: str = "auto"

    @property
    def gpu_names(self) -> list[str]:
        return [self.gpu or DEFAULT_GPU] if self.gpus is None else [name.strip() for name in self.gpus.split(",")]


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """TARGET and the options of `sweep` that say which launches are predicted, as typed."""

    target: str | None = None
    kernel: str | None = None
    kernel_sets: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    gpus: str = DEFAULT_GPU
    gpu_sets: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    dtype: str | None = None
    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    shared: str = "0"
    args: tuple[str, ...] = ()
    verify: str | None = None
    caches: str = "cold"
    no_cache: bool = False
    engine: str = "auto"


_LAUNCH = (
    target_argument,
    kernel_option,
    click.option("--entry", metavar="NAME", help="Entry of a .cu, .ptx or .cubin, e.g. 'sgemm<128,8>'."),
    *size_options,
    click.option("--gpu", default=DEFAULT_GPU, show_default=True, metavar="NAME|FILE.toml", help="gemmsim list gpus."),
    gpu_sets_option,
    click.option("--set-kernel", "kernel_sets", multiple=True, metavar="KEY=VALUE", help="A tunable: tile=16."),
    dtype_option,
    click.option("--alpha", type=float, default=1.0, show_default=True),
    click.option("--beta", type=float, default=0.0, show_default=True),
    click.option("--grid", metavar="X,Y,Z", help="Blocks, for a kernel of your own."),
    click.option("--block", metavar="X,Y,Z", help="Threads a block, for a kernel of your own."),
    click.option("--shared", type=int, default=0, metavar="BYTES", help="Dynamic shared memory a block."),
    click.option("--arg", "args", multiple=True, metavar="TYPE[SHAPE]=VALUE", help="A parameter: f32[256,256]."),
    verify_option,
    click.option("--full", is_flag=True, help="Execute every block instead of a sample."),
    caches_option,
    click.option("--max-instructions", type=int, metavar="N", help="Warp instructions before a kernel is given up."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of the random arrays."),
    no_cache_option,
)


def gathered(record: type, options: Sequence[Decorator]) -> Decorator:
    """A decorator: adds `options` to a command, which gets what `record` has fields for as one record, `options`."""
    names = [field.name for field in fields(record)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_record(**values: Any) -> Any:
            taken = {name: values.pop(name) for name in names if name in values}
            return command(options=record(**taken), **values)

        found: Callable[..., Any] = with_record
        for option in reversed(options):
            found = option(found)
        return found

    return decorate


# TARGET and the options of `analyze` that say which launch is meant; the command gets them as LaunchOptions.
launch_options = gathered(LaunchOptions, _LAUNCH)
timed_launch_options = gathered(LaunchOptions, (*_LAUNCH, engine_option))
