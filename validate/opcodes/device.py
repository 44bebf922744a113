"""Runs a bundle's kernels on this machine's GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gemmsim.support.errors import GemmsimError

from ..measure.gpu import Gpu
from .bundle import Bundle
from .cases import BLOCK_THREADS
from .outputs import Outputs


def run_on_gpu(bundle: Bundle) -> Outputs:
    """Run every kernel of `bundle` and return what each stored. Raises GemmsimError where this machine has no GPU for
    which the bundle was compiled."""
    gpu = Gpu()
    number = "".join(str(part) for part in gpu.capability)
    if bundle.arch != f"sm_{number}":
        raise GemmsimError(f"the bundle is for {bundle.arch}, this GPU is an {gpu.name} (sm_{number})")
    facts = {"arch": bundle.arch, "inputs_sha256": bundle.inputs_sha256, "toolchain": bundle.toolchain}
    outputs = Outputs(facts | gpu.machine)
    given: dict[tuple[str, ...], Any] = {}
    for name, cases in bundle.cubins:
        cubin = (bundle.folder / name).read_bytes()
        for case in cases:
            if case.sources not in given:
                given[case.sources] = gpu.upload(bundle.inputs(case))
            stored = gpu.upload(np.zeros((len(case.results), bundle.rows), np.uint64))
            addresses = [ctypes.c_void_p(_address(array)) for array in (given[case.sources], stored)]
            function = gpu.load(cubin, case.symbol)
            gpu.launch(gpu.call(function, (bundle.rows // BLOCK_THREADS, 1, 1), (BLOCK_THREADS, 1, 1), 0, addresses))
            gpu.synchronize()
            outputs.values[case.symbol] = stored.copy_to_host()
    return outputs


def _address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])
