"""Runs a bundle's kernels in gemmsim."""

from __future__ import annotations

import numpy as np

from gemmsim.compile.decode import decode_kernels
from gemmsim.support.errors import GemmsimError
from gemmsim.support.version import __version__
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Launch

from .bundle import Bundle
from .cases import BLOCK_THREADS
from .outputs import Outputs


def run_in_gemmsim(bundle: Bundle) -> Outputs:
    """Execute every kernel of `bundle` and return what each stored; a kernel that is refused is listed as failed."""
    facts = {"device": f"gemmsim {__version__}", "arch": bundle.arch, "inputs_sha256": bundle.inputs_sha256}
    outputs = Outputs({**facts, "toolchain": bundle.toolchain})
    for name, cases in bundle.cubins:
        by_symbol = {case.symbol: case for case in cases}
        for symbol, program in decode_kernels((bundle.folder / name).read_bytes(), by_symbol):
            if isinstance(program, GemmsimError):
                outputs.failed[symbol] = str(program)
                continue
            case = by_symbol[symbol]
            given = bundle.inputs(case)
            stored = np.zeros((len(case.results), bundle.rows), np.uint64)
            arguments = tuple(Argument("u64", array.shape, array) for array in (given, stored))
            launch = Launch((bundle.rows // BLOCK_THREADS, 1, 1), (BLOCK_THREADS, 1, 1), arguments)
            try:
                result = execute(program, launch).outputs[1]
            except GemmsimError as error:
                outputs.failed[case.symbol] = str(error)
                continue
            assert result is not None, "the second argument is an array"
            outputs.values[case.symbol] = result.reshape(stored.shape).astype(np.uint64)
    return outputs
