"""Runs the kernels of a bundle on this machine's GPU."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

from gemmsim.support.errors import GemmsimError

from ..measure.gpu import Gpu
from .bundle import Compiled, Words
from .form import LANES


def run_on_gpu(arch: str, compiled: Sequence[Compiled]) -> tuple[str, dict[str, Words]]:
    """Run each kernel once; return the GPU's name and {form: what is in `out` then, uint32 [blocks, 32, words]}.

    A form that the driver does not load is left out, with a line on stderr. Raises GemmsimError where this machine has
    no GPU of the architecture `arch`.
    """
    gpu = Gpu()
    number = "".join(str(part) for part in gpu.capability)
    if arch != f"sm_{number}":
        raise GemmsimError(f"the bundle is for {arch}, this GPU is an {gpu.name} (sm_{number})")
    outputs: dict[str, Words] = {}
    for one in compiled:
        given, out = gpu.upload(one.given), gpu.upload(one.before())
        sizes = (ctypes.c_uint32(one.given.shape[2]), ctypes.c_uint32(one.form.words))
        arguments = [ctypes.c_void_p(_address(given)), ctypes.c_void_p(_address(out)), *sizes]
        try:
            function = gpu.load(one.cubin, "form")
        except GemmsimError as error:
            sys.stderr.write(f"{one.form.name}: {error}\n")
            continue
        gpu.launch(gpu.call(function, (len(one.given), 1, 1), (LANES, 1, 1), 0, arguments))
        gpu.synchronize()
        outputs[one.form.name] = out.copy_to_host()
    return gpu.name, outputs


def _address(array: Any) -> int:
    return int(array.__cuda_array_interface__["data"][0])
