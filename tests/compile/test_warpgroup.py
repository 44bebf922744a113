"""wgmma, compiled from inline PTX and executed: bit for bit against a slow twin of the PTX ISA's layouts, and against
what an H200 left in memory (`tests/records/h200_wgmma.npz`)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from wgmma_forms import FORMS, IMAGE_WORDS, Case, Form, cases, source
from wgmma_twin import accumulators, expected

pytest.importorskip("cuda.bindings")

from gemmsim.analysis.code.operations import floating_point_operations
from gemmsim.api import count, time
from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin, decode_kernels
from gemmsim.gpu import load_gpu
from gemmsim.isa.matrix import matrix_multiply
from gemmsim.isa.program import Program
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.support.provenance import Provenance
from gemmsim.trace import words
from gemmsim.trace.blocks import choice, sampled
from gemmsim.trace.blocks.choice import plan
from gemmsim.trace.blocks.sampled import execute_plan
from gemmsim.trace.execute import Executor, execute
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.micro import OP
from gemmsim.trace.slicing.program_slice import program_slice
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.types import Argument, Execution, Launch

GEMM = Path(__file__).parents[1] / "sources" / "wgmma_gemm.cu"
HOPPER = ("-arch=sm_90a",)
SHARED_AT = 1024  # the address at which a block's own shared memory begins
# Forms of every type, where A and B lie and how they are turned and negated; of the large ones only a few layouts
CHOSEN = [form for form in FORMS if form.n <= 72]
ALL = [case for case in cases() if case.kind == "small"]


@cache
def _programs() -> dict[str, Program | GemmsimError]:
    """Kernels of all forms by their names, from one file: to start, the disassembler takes longer than to read it."""
    text = "\n".join(map(source, FORMS))
    cubin = compile_cuda(CudaKernel(text, Path("wgmma.cu"), options=HOPPER), "sm_90")[0]
    return dict(decode_kernels(cubin, [form.name for form in FORMS]))


def program(form: Form) -> Program:
    found = _programs()[form.name]
    assert isinstance(found, Program), found
    return found


def run(case: Case) -> NDArray[np.uint32]:
    image, a, c = case.operands()
    scalars = ("u64", case.a.descriptor), ("u64", case.b.descriptor), ("i32", case.scale_d)
    arrays = [Argument("u32", x.shape, x) for x in (image, a, c, np.zeros_like(c))]
    args = (*arrays[:2], *(Argument(type_, (), value) for type_, value in scalars), *arrays[2:])
    done = execute(program(case.form), Launch((1, 1, 1), (128, 1, 1), args, dynamic_shared_bytes=4 * IMAGE_WORDS))
    assert done.outputs[-1] is not None
    return done.outputs[-1]


def agrees(case: Case) -> bool:
    """Whether all results are those of the twin: sums that are exact in the type of the accumulators."""
    found = accumulators(run(case), case.form)
    sums = np.array(expected(case, SHARED_AT, lambda pairs, c: sum(x * y for x, y in pairs) + c), object)
    if case.form.d == "s32":
        sums = np.clip(sums, -(2**31), 2**31 - 1) if case.form.saturates else (sums + 2**31) % 2**32 - 2**31
        sums = sums.astype(np.int64)
    return bool((found == sums.astype(found.dtype)).all())


# What each of these cases left on an H200 (driver API; cubins by NVRTC 13.5 for sm_90a): numbers of any exponent, and
# any bits, with subnormal ones, infinities and NaN.
MEASURED = np.load(Path(__file__).parents[1] / "records" / "h200_wgmma.npz", allow_pickle=False)


@pytest.mark.parametrize("name", MEASURED.files)
def test_sums_are_those_of_an_h200(name: str) -> None:
    (case,) = [case for case in cases() if f"{case.form.name} {case.label}" == name]
    np.testing.assert_array_equal(run(case).reshape(-1), MEASURED[name])


@pytest.mark.parametrize("form", CHOSEN, ids=lambda form: form.name)
def test_products_of_every_form(form: Form) -> None:
    """Three layouts each, and once without the accumulators' values."""
    of_form = [case for case in ALL if case.form == form]
    chosen = [case for case in of_form if case.label in ("layout 0", "layout 3", "layout 5", "zero")]
    assert len(chosen) == 4
    for case in chosen:
        assert agrees(case), case


@pytest.mark.parametrize("number", range(11))
@pytest.mark.parametrize(("transposed_a", "transposed_b"), [(False, False), (True, True)])
def test_layouts(transposed_a: bool, transposed_b: bool, number: int) -> None:
    wanted = [f for f in FORMS if f.n in (8, 72) and (f.transposed_a, f.transposed_b) == (transposed_a, transposed_b)]
    form = next(f for f in wanted if f.a == "f16" and not f.a_in_registers)
    assert all(agrees(case) for case in ALL if case.form == form and case.label == f"layout {number}")


@pytest.mark.parametrize("form", [f for f in FORMS if f.n >= 128 and f.a in ("f16", "s8")][:3], ids=lambda f: f.name)
def test_wide_products(form: Form) -> None:
    assert agrees(next(case for case in ALL if case.form == form and case.label == "layout 5"))


@cache
def gemm_program() -> Program:
    cubin = compile_cuda(CudaKernel(GEMM.read_text(), GEMM, options=HOPPER), "sm_90")[0]
    return decode_cubin(cubin, "wgmma_gemm", "sm_90", abi="c")


def gemm_launch(m: int, n: int, k: int) -> Launch:
    random = np.random.default_rng(7)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    arrays = [
        Argument("f16", a.shape, a),
        Argument("f16", b.shape, b),
        Argument("f32", (m, n), np.zeros((m, n), np.float32)),
    ]
    sizes = [Argument("i32", (), size) for size in (m, n, k)]
    return Launch((n // 128, m // 128, 1), (128, 1, 1), (*arrays, *sizes))


@cache
def gemm(m: int, n: int, k: int) -> Execution:
    return execute(gemm_program(), gemm_launch(m, n, k))


def test_a_gemm_of_one_warpgroup_a_block() -> None:
    """Small integers, whose sums are exact."""
    done, launch = gemm(256, 384, 128), gemm_launch(256, 384, 128)
    a, b = (np.asarray(argument.value, np.float64) for argument in launch.args[:2])
    np.testing.assert_array_equal(done.outputs[2], a @ b)


def test_operations_are_counted_once_for_the_warpgroup() -> None:
    """2 M N K, of 64 x 128 x 16 = 131,072 multiply-adds each; the four warps do a quarter each."""
    done = gemm(256, 384, 128)
    found = floating_point_operations(gemm_program(), done.trace)
    assert found.precision == "tensor_fp16" and found.total == 2 * 256 * 384 * 128
    multiplies = [i for i in gemm_program().instructions if matrix_multiply(i) is not None]
    assert sum(int(done.trace.executed[:, i.index].sum()) for i in multiplies) == 4 * 256 * 384 * 128 // (64 * 128 * 16)


def test_counters_of_an_h200() -> None:
    """Nsight Compute's, of this GEMM at 512: wavefronts of operands, and the tensor pipes' instructions and cycles."""
    gpu = load_gpu("h200")
    text = CudaKernel(GEMM.read_text(), GEMM, "wgmma_gemm", HOPPER)
    spec = LaunchSpec(text, gemm_launch(512, 512, 512), gpu, Labels("gemm"))
    counted = count(spec)
    assert counted.traffic.counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"] == 49_152
    assert counted.traffic.counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 32_768
    multiplies = [i.index for i in gemm_program().instructions if matrix_multiply(i) is not None]
    assert counted.execution.trace.executed[:, multiplies].sum() == 4096
    timing = time(counted, spec)
    active = timing.pipe_utilisation_pct["tensor"] / 100 * timing.cycles * 4 * 16  # of the SMs that have a block
    assert active == pytest.approx(262_144, rel=0.001)
    assert timing.stalls["gmma"] > 0.3


def test_products_are_left_out_of_what_decides_the_trace() -> None:
    lowered = Executor(gemm_program(), gemm_launch(128, 128, 64)).micro
    code, number = program_slice(lowered), CONTROL_NUMBER["multiply_warpgroup"]
    assert code is not None
    assert (lowered.code[:, OP] == number).sum() == 8 and (code[:, OP] == number).sum() == 0


def test_sampled_counts_equal_full_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "FULL_BELOW", 0)
    text = CudaKernel(GEMM.read_text(), GEMM, "wgmma_gemm", HOPPER)
    launch, gpu = gemm_launch(512, 640, 128), load_gpu("h200")
    full, sample = (count(LaunchSpec(text, launch, gpu, Labels("gemm"), settings=Settings(x))) for x in (True, False))
    assert sample.execution.sampled and len(sample.execution.trace.blocks) < 20
    exact = [name for name, how in full.traffic.provenance.items() if how is Provenance.EXACT]
    assert len(exact) > 10
    assert {n: sample.traffic.counters[n] for n in exact} == {n: full.traffic.counters[n] for n in exact}


def test_products_that_nobody_wants_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "MOST_COLUMNS", 1)
    launch = gemm_launch(256, 256, 128)
    wanted, unwanted = (
        execute_plan(one, plan(one, 1, 132), results)
        for one, results in ((Executor(gemm_program(), launch), True), (Executor(gemm_program(), launch), False))
    )
    assert np.array_equal(wanted.trace.executed, unwanted.trace.executed)
    assert np.array_equal(wanted.trace.record_base, unwanted.trace.record_base)
    assert not np.array_equal(np.asarray(wanted.outputs[2]), np.asarray(unwanted.outputs[2]))
    assert any("is not checked" in note for note in unwanted.notes) and wanted.notes == ()


def test_where_a_kernel_reads_what_it_stored_all_is_computed_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is where A, B and C lie in one allocation, as those of PyTorch do, and TMA loads A and B."""
    executor = Executor(gemm_program(), gemm_launch(256, 256, 128))
    usual, calls = executor.run, []

    def run(*of: object) -> Execution:
        calls.append((executor.columns, executor.stale.any()))
        if len(calls) == 1:
            executor.stale[:] = 1  # as the slice leaves it
            raise Stopped("reads what it did not store", words.STALE, 0)
        return usual(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(executor, "run", run)
    execution = execute_plan(executor, plan(executor, 1, 132), results=False)
    assert calls == [(sampled.MOST_COLUMNS, False), (words.UNLIMITED, False)]
    np.testing.assert_array_equal(execution.outputs[2], gemm(256, 256, 128).outputs[2])
