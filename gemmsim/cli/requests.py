"""Makes a LaunchSpec from the options that describe a launch, and checks what can be checked before compiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gemmsim.cli.options import LaunchOptions
from gemmsim.compile.source import KernelSource, PythonKernel
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.checks import array_names, file_check, formula_check
from gemmsim.launch.items import Arguments
from gemmsim.launch.ladder import kernel_info, kernel_infos
from gemmsim.launch.notation import needed_size, parse_dims, parse_tunables, problem_size
from gemmsim.launch.own import check_of_arrays, own_source, split_target
from gemmsim.launch.recorded import names_bundle, recorded_launch
from gemmsim.launch.spec import (
    DEFAULT_MAX_INSTRUCTIONS,
    FileCheck,
    FormulaCheck,
    Labels,
    LaunchSpec,
    Settings,
    clock_of,
)
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch

_LARGEST = 3.4028234663852886e38  # that float32 holds


def requested_launch(options: LaunchOptions) -> LaunchSpec:
    """Make the launch that a command's options describe. Raises GemmsimError, one line, where they describe none."""
    check_one_kernel(options.kernel, options.target, "analyze")
    args = parse_arguments(options.args, options.arrays, options.symbols)
    return launch_on(load_gpu(options.gpu, options.gpu_sets), args, options)


# A function that returns a kernel and its name for reports, given the array or scalar of each parameter (None where one
# is a struct).
Source = Callable[[Sequence[Argument] | None], tuple[KernelSource, str]]


def launch_on(gpu: GpuSpec, args: Arguments, options: LaunchOptions, source: Source | None = None) -> LaunchSpec:
    """Make the launch that `options` describe, but with `gpu` and `args` instead of the GPU and arguments in them.

    source  the kernel, where the TARGET of the options only names it
    """
    _refuse_vain_numbers(options)
    size = problem_size(options.size, options.m, options.n, options.k)
    limit = DEFAULT_MAX_INSTRUCTIONS if options.max_instructions is None else options.max_instructions
    settings = Settings(options.full, limit, not options.no_cache, options.engine, clock=clock_of(options.clock))
    if options.kernel is None:
        return _own_launch(gpu, args, options, size, settings, source)
    own = {
        "--grid": options.grid,
        "--block": options.block,
        "--array" if options.arrays else "--arg": args.args,
        "--symbol": args.symbols,
        "--entry": options.entry,
        "--cooperative": options.cooperative,
        "--cluster": options.cluster,
    }
    refuse_own(options.kernel, own)
    if options.verify not in (None, "gemm"):
        raise GemmsimError(
            f"--verify '{options.verify}' is for a kernel of your own: a built-in kernel is always checked"
        )
    case = LadderCase(
        options.kernel,
        *needed_size(size),
        dtype=options.dtype,
        tunables=parse_tunables(options.kernel_sets, "--set-kernel"),
        alpha=options.alpha,
        beta=options.beta,
        dynamic_shared_bytes=options.shared,
        seed=options.seed,
        warm_caches=options.caches == "warm",
    )
    spec = ladder_launch(case, gpu, settings)
    return replace(spec, checks=_file_checks(options, array_names(spec.launch.args, spec.verify)))


def _refuse_vain_numbers(options: LaunchOptions) -> None:
    """Raises GemmsimError for numbers of a check that is not made, and for those that no result can be held against."""
    formula = options.verify not in (None, "gemm")
    if options.accumulate is not None and not formula:
        raise GemmsimError(f"--accumulate {options.accumulate} is for --verify FORMULA")
    if options.tolerance is not None and not (formula or options.reference):
        raise GemmsimError(f"--tolerance {options.tolerance:g} is for --verify FORMULA and --reference")
    for name, value in (("--alpha", options.alpha), ("--beta", options.beta)):
        if not abs(value) <= _LARGEST:
            raise GemmsimError(f"{name} {value:g} must be a finite number of 32 bits")


def check_one_kernel(kernel: str | None, target: str | None, command: str) -> None:
    """Raises GemmsimError, which names `command`, unless exactly one of --kernel and TARGET was given."""
    if kernel is not None and target is not None:
        raise GemmsimError(
            "give either --kernel NAME or a TARGET, not both: --kernel names a built-in kernel, --entry one of a file"
        )
    if kernel is None and target is None:
        raise GemmsimError(
            f"give either --kernel NAME or a TARGET such as my.py:my_gemm (see gemmsim {command} --help)"
        )


def refuse_own(kernel: str, given: Mapping[str, object]) -> None:
    """Raises GemmsimError where one of the options `given` has a value, as the built-in kernel `kernel` takes none, and
    where there is no such kernel."""
    kernel_info(kernel)
    for name, value in given.items():
        if value:
            raise GemmsimError(f"{name} is for a kernel of your own; --kernel {kernel} takes it from the size")


def refuse_dtype(dtype: str | None) -> None:
    """Raises GemmsimError where --dtype was given for a kernel of the user's own."""
    if dtype is not None:
        raise GemmsimError("--dtype is for the built-in kernels: --arg says what a kernel of your own takes")


def _own_launch(
    gpu: GpuSpec,
    arguments: Arguments,
    options: LaunchOptions,
    size: tuple[int, int, int] | None,
    settings: Settings,
    given: Source | None = None,
) -> LaunchSpec:
    refuse_dtype(options.dtype)
    target, grid, block = str(options.target), options.grid, options.block
    if names_bundle(target):
        return _recorded_launch(gpu, options, settings)
    if given is None and target in kernel_infos() and not Path(target).exists():
        raise GemmsimError(f"'{target}' is a built-in kernel: --kernel {target}")
    tunables = parse_tunables(options.kernel_sets, "--set-kernel")
    if tunables and (given or not split_target(target)[1]):
        raise GemmsimError("--set-kernel is for built-in kernels, and functions of FILE.py:function that make a kernel")
    if grid is None or block is None:
        missing = "--grid" if grid is None else "--block"
        raise GemmsimError(f"{missing} is missing: {target} needs --grid X,Y,Z and --block X,Y,Z")
    dims = parse_dims(grid, "--grid"), parse_dims(block, "--block")
    cluster = parse_dims(options.cluster, "--cluster") if options.cluster is not None else None
    launch = Launch(
        *(*dims, arguments.args, options.shared, arguments.parameters, options.cooperative, arguments.symbols, cluster)
    )
    check, checks = None, _file_checks(options, array_names(arguments.args))
    if options.verify == "gemm":
        check, size = check_of_arrays(arguments.args, size, options.alpha, options.beta)
    elif options.verify is not None:
        numbers = {"alpha": options.alpha, "beta": options.beta}
        formula = formula_check(options.verify, arguments.args, numbers, options.accumulate, options.tolerance)
        checks = (formula, *checks)
    if given is not None:
        source, name = given(arguments.passed())
    else:
        source, name = own_source(target, options.entry, arguments.passed(), *options.compiling.given())
    if isinstance(source, PythonKernel) and tunables:
        source = replace(source, tunables=tuple(tunables.items()))
    m, n, k = size or (None, None, None)
    return LaunchSpec(
        kernel=source,
        launch=launch,
        gpu=gpu,
        labels=Labels(name, target, m, n, k, tunables),
        verify=check,
        checks=checks,
        settings=settings,
        warm_caches=options.caches == "warm",
        seed=options.seed,
    )


def _recorded_launch(gpu: GpuSpec, options: LaunchOptions, settings: Settings) -> LaunchSpec:
    """Make the launch of a bundle, which brings all but the GPU and how it is predicted."""
    given = {
        "--grid": options.grid,
        "--block": options.block,
        "--array" if options.arrays else "--arg": options.args or options.arrays,
        "--symbol": options.symbols,
        "--entry": options.entry,
        "--shared": options.shared,
        "--cooperative": options.cooperative,
        "--cluster": options.cluster,
        "--set-kernel": options.kernel_sets,
        "--verify": options.verify,
        "--reference": options.reference,
    }
    for name, value in given.items():
        if value:
            raise GemmsimError(f"{name}: {options.target} is a recorded launch, which brings it")
    warm = options.caches == "warm"
    return replace(recorded_launch(str(options.target), gpu), settings=settings, warm_caches=warm, seed=options.seed)


def _file_checks(options: LaunchOptions, names: Mapping[str, int]) -> tuple[FormulaCheck | FileCheck, ...]:
    return tuple(file_check(text, names, options.tolerance) for text in options.reference)
