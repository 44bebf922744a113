"""tcgen05, which a B200 has for its tensor cores, is refused by its name, in ready code of sm_100a too."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmsim.cli.main import main

pytest.importorskip("numba_cuda")

KERNEL = """
extern "C" __global__ void allocate(unsigned* out) {
    __shared__ unsigned place;
    unsigned to = (unsigned)__cvta_generic_to_shared(&place), found;
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(to));
    __syncthreads();
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(found) : "r"(place));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    out[threadIdx.x] = found;
}
"""


def test_tensor_memory_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cuda.core import Program, ProgramOptions

    cubin = tmp_path / "allocate.cubin"
    options = ProgramOptions(arch="sm_100a", std="c++17")
    cubin.write_bytes(bytes(Program(KERNEL, "c++", options).compile("cubin").code))
    asked = ["--grid", "1", "--block", "32", "--arg", "u32[32]", "--gpu", "b200"]
    assert main(["analyze", str(cubin), *asked]) == 2
    refused = capsys.readouterr().err
    assert "kernel 'allocate' (sm_100) needs" in refused
    for opcode in ("UTCATOMSWS", "LDTM"):
        assert f"opcode {opcode} (the tensor memory of sm_100, tcgen05)" in refused
