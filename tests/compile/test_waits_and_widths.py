"""Warps that wait for each other at an mbarrier in shared memory, as cuda::barrier does; accesses of 256 bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cubins import SM_86

pytest.importorskip("cuda.bindings")

from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin
from gemmsim.memory.requests.access import access_of
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import Executor, execute
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.types import Argument, Launch

SOURCE = Path(__file__).parents[1] / "sources" / "waits_and_widths.cu"


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89"])
def test_what_one_warp_copies_reaches_the_others(arch: str) -> None:
    """The second round overwrites what all warps have read in the first, and only then."""
    cubin = compile_cuda(CudaKernel(SOURCE.read_text(), SOURCE), arch)[0]
    program = decode_cubin(cubin, "handover", arch, abi="c")
    assert {"ATOMS.ARRIVE.64", "ARRIVES.LDGSTSBAR.64"} <= {i.mnemonic for i in program.instructions}
    given = np.arange(64, dtype=np.uint32).reshape(2, 32) * 1000
    args = (Argument("u32", (2, 32), given), Argument("u32", (2, 128), np.zeros((2, 128), np.uint32)))
    out = execute(program, Launch((3, 1, 1), (128, 1, 1), args), max_instructions=1_000_000).outputs[1]
    expected = np.tile(given, (1, 4)) + np.arange(128) // 32
    np.testing.assert_array_equal(out, expected)


def test_the_sanitizer_refuses_mbarriers() -> None:
    cubin = compile_cuda(CudaKernel(SOURCE.read_text(), SOURCE), "sm_80")[0]
    program = decode_cubin(cubin, "handover", "sm_80", abi="c")
    args = (Argument("u32", (64,), 0), Argument("u32", (256,), 0))
    executor = Executor(program, Launch((1, 1, 1), (128, 1, 1), args), sanitizing=True)
    with pytest.raises(GemmsimError, match="mbarriers"):
        sanitize(executor, [0])


def test_accesses_of_256_bits() -> None:
    """They are recorded as two accesses of 16 bytes a lane; a word of the upper half comes from the upper register."""
    cubin = compile_cuda(CudaKernel(SOURCE.read_text(), SOURCE), "sm_120")[0]
    program = decode_cubin(cubin, "wide", "sm_120", abi="c")
    wide = [i for i in program.instructions if "256" in i.modifiers]
    assert [i.opcode for i in wide] == ["LDG", "STG"]
    given = np.arange(256, dtype=np.uint32) * 3
    args = (Argument("u32", (256,), given), Argument("u32", (288,), np.zeros(288, np.uint32)))
    done = execute(program, Launch((1, 1, 1), (32, 1, 1), args))
    out = done.outputs[1]
    assert out is not None
    np.testing.assert_array_equal(out, np.concatenate([given, given[5::8]]))
    for instruction in wide:
        access = access_of(instruction)
        assert access is not None and access.width_bytes == 16
        assert (done.trace.record_pc == instruction.index).sum() == 2
