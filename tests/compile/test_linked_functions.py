"""Functions and variables of other files, linked by NVIDIA's linker, and code that was compiled for debugging."""

from __future__ import annotations

import numpy as np
import pytest

from gemmsim.compile.decode import decode_cubin
from gemmsim.isa.program import ADDRESS_BANK, Program
from gemmsim.isa.serialize import program_from_bytes, programs_to_bytes
from gemmsim.trace.execute import Executor
from gemmsim.trace.types import Argument, Launch

KERNEL = """
extern __device__ float halve_until_small(float);
typedef float (*Function)(float);
extern __device__ Function pick(int);
extern __device__ int calls;
extern __device__ float table[64];
extern "C" __global__ void k(float* out, int n) {
    __shared__ float tile[32];
    int i = threadIdx.x;
    tile[i] = table[i + n];
    __syncthreads();
    out[i] = halve_until_small(out[i]) + 100.0f * pick(i)(tile[31 - i]);
    atomicAdd(&calls, 1);
}
"""
OTHERS = """
__device__ int calls = 5;
__device__ float table[64] = {0, 0, 7, 9};
typedef float (*Function)(float);
__device__ __noinline__ float halve_until_small(float x) { return x < 1 ? x : halve_until_small(x / 2) + 1; }
__device__ __noinline__ float twice(float x) { return x * 2; }
__device__ Function pick(int i) { return i & 1 ? halve_until_small : twice; }
"""


def linked(arch: str, debug: bool) -> Program:
    from cuda.core import Linker, LinkerOptions, ProgramOptions
    from cuda.core import Program as Source

    options = ProgramOptions(arch=arch, relocatable_device_code=True, debug=debug)
    parts = [Source(text, "c++", options).compile("cubin") for text in (KERNEL, OTHERS)]
    cubin = bytes(Linker(*parts, options=LinkerOptions(arch=arch)).link("cubin").code)
    return decode_cubin(cubin, "k", arch)


def halved(x: float) -> float:
    return x if x < 1 else halved(x / 2) + 1


@pytest.mark.parametrize(("arch", "debug"), [("sm_80", False), ("sm_80", True), ("sm_90", False), ("sm_120", True)])
def test_a_kernel_calls_functions_of_another_file(arch: str, debug: bool) -> None:
    program = linked(arch, debug)
    args = Argument("f32", (32,), np.arange(32, dtype=np.float32)), Argument("i32", (), 0)
    run = Executor(program, Launch((1, 1, 1), (32, 1, 1), args)).run([0])
    tile = [0.0, 0.0, 7.0, 9.0, *[0.0] * 28]
    expected = [halved(i) + 100 * (halved(tile[31 - i]) if i % 2 else 2 * tile[31 - i]) for i in range(32)]
    assert run.outputs[0] == pytest.approx(expected)
    assert run.variables["calls"].content.view(np.int32) == [5 + 32]


def test_addresses_in_the_code_survive_being_stored() -> None:
    program = linked("sm_90", False)
    assert program_from_bytes(programs_to_bytes([program])) == program
    halves = [o for i in program.instructions for o in i.operands if o.bank == ADDRESS_BANK and o.name]
    assert {"32@lo(table)", "32@hi(table)", "32@lo(calls)", "32@hi(calls)"} <= {half.name for half in halves}
    texts = [i.text for i in program.instructions if "@srel" in i.text]
    assert texts  # return addresses, which the linker leaves open too
