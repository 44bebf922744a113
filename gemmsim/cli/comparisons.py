"""From the options of `compare` to its tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmsim.cli.parse import parse_assignments
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, checked_tunables
from gemmsim.launch.ladder import kernel_info, kernel_infos
from gemmsim.studies.compare import Task
from gemmsim.support.errors import GemmsimError


def comparison_tasks(
    kernels: Sequence[str],
    size: tuple[int, int, int],
    gpus: Sequence[str],
    gpu_sets: tuple[str, ...],
    dtype: str | None,
    use_cache: bool,
    warm_caches: bool = False,
) -> list[Task]:
    """A task for each GPU and kernel; all of the ladder where none is named.

    Whatever no rung could make sense of (an unknown kernel, tunable, GPU or dtype) is an error; what a rung alone
    refuses is found when it is analysed.
    """
    known = {one for info in kernel_infos().values() for one in info.dtypes}
    if dtype is not None and dtype not in known:
        raise GemmsimError(f"no kernel takes dtype {dtype}: known are {', '.join(sorted(known))}")
    wanted = [_named(text) for text in kernels] or [(name, name, {}) for name in kernel_infos()]
    specs = [load_gpu(name, gpu_sets) for name in gpus]
    return [
        Task(
            shown,
            LadderCase(kernel, *size, dtype=dtype, tunables=tunables, warm_caches=warm_caches),
            spec,
            use_cache=use_cache,
        )
        for spec in specs
        for shown, kernel, tunables in wanted
    ]


def _named(text: str) -> tuple[str, str, dict[str, int]]:
    """`tiled:tile=16` -> ("tiled:tile=16", "tiled", {"tile": 16})"""
    kernel, _, constants = text.partition(":")
    info = kernel_info(kernel)
    tunables = {}
    for key, value in parse_assignments(constants.split(",") if constants else (), "--kernel").items():
        if not re.fullmatch(r"-?[0-9]+", value):
            raise GemmsimError(f"--kernel {text}: '{value}' is not an integer")
        tunables[key] = int(value)
    checked_tunables(info, tunables)
    return text, kernel, tunables
