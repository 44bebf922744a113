"""Makes the launches that `gemmsim compare` predicts, its tasks, from the options of the command."""

from __future__ import annotations

from gemmsim.cli.options import CompareOptions
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.cases import LadderCase, checked_tunables, ladder_launch
from gemmsim.launch.ladder import kernel_info, kernel_infos
from gemmsim.launch.notation import needed_size, parse_tunables, problem_size
from gemmsim.launch.spec import Settings, clock_of
from gemmsim.studies.baseline import Bundle, find_bundle
from gemmsim.studies.compare import Task, task_of
from gemmsim.support.errors import GemmsimError


def comparison_tasks(options: CompareOptions) -> list[Task]:
    """Make a task for each GPU and kernel. Where the options name no kernel, all built-in kernels are compared.

    Raises GemmsimError for an unknown kernel, tunable, GPU or dtype. A launch that is refused by its own kernel alone
    makes a task that is skipped.
    """
    size = needed_size(problem_size(options.size, options.m, options.n, options.k))
    if options.gpu is not None and options.gpus is not None:
        raise GemmsimError("--gpu names one GPU, --gpus several: give one of them")
    known = {one for info in kernel_infos().values() for one in info.dtypes}
    if options.dtype is not None and options.dtype not in known:
        raise GemmsimError(f"no kernel takes dtype {options.dtype}: known are {', '.join(sorted(known))}")
    wanted = [named_rung(text) for text in options.kernels] or [(name, name, {}) for name in kernel_infos()]
    settings = Settings(use_cache=not options.no_cache, engine=options.engine, clock=clock_of(options.clock))
    warm = options.caches == "warm"

    def task(shown: str, kernel: str, tunables: dict[str, int], gpu: GpuSpec) -> Task:
        case = LadderCase(kernel, *size, dtype=options.dtype, tunables=tunables, warm_caches=warm)
        return task_of(shown, gpu.name, lambda: ladder_launch(case, gpu, settings))

    gpus = [load_gpu(name, options.gpu_sets) for name in options.gpu_names]
    return [task(*one, gpu) for gpu in gpus for one in wanted]


def comparison_bundle(options: CompareOptions) -> Bundle | None:
    """Return the baseline that the options name. Raises GemmsimError where it has no launch of the problem's size."""
    if options.baseline is None:
        return None
    bundle = find_bundle(options.baseline)
    bundle.check_size(needed_size(problem_size(options.size, options.m, options.n, options.k)))
    return bundle


def named_rung(text: str) -> tuple[str, str, dict[str, int]]:
    """Return (text, kernel, tunables) of a rung: ("tiled:tile=16", "tiled", {"tile": 16}) of `tiled:tile=16`."""
    kernel, _, constants = text.partition(":")
    info = kernel_info(kernel)
    tunables = parse_tunables(constants.split(",") if constants else (), "--kernel")
    checked_tunables(info, tunables)
    return text, kernel, tunables
