"""Every tensor-core rung computes C = alpha A B + beta C on the simulator: any size, each architecture, each type."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_runs import compiled, defaults, loops, run

from gemmsim.ladder import kernel_info, kernel_infos
from gemmsim.memory.access import access_of
from gemmsim.memory.shapes import shapes_of

pytest.importorskip("numba_cuda")

RUNGS = [name for name in kernel_infos() if name.startswith("tensorcore")]
SIZES = st.one_of(st.integers(1, 12), st.sampled_from([15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130]))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", RUNGS)
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from([1.0, -1.5]), st.sampled_from([0.0, 1.0, 0.5]))
@example((1, 1, 1), 1.0, 0.0)
@example((127, 129, 65), 1.5, 0.5)
@example((136, 136, 64), 1.0, 0.0)  # aligned, and ragged all the same
@example((33, 40, 1), 1.0, 1.0)
@example((1, 32, 24), 1.0, 0.0)
def test_any_size(name: str, dtype: str, sizes: tuple[int, int, int], alpha: float, beta: float) -> None:
    run(name, "sm_90", sizes, alpha, beta, dtype)


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_120"])
@pytest.mark.parametrize("name", RUNGS)
def test_other_architectures(name: str, arch: str) -> None:
    run(name, arch, (67, 136, 40), 1.5, 0.5, "f16")
    run(name, arch, (67, 43, 21), 1.5, 0.5, "f16")


@pytest.mark.parametrize(
    "tunables",
    [
        {"stages": 2},
        {"stages": 5, "bk": 16},
        {"bm": 64, "bn": 256, "wm": 32},
        {"bm": 256, "bn": 64, "bk": 64, "stages": 2, "wn": 32},
        {"bm": 64, "bn": 64, "wm": 32, "wn": 32},
    ],
)
def test_tunables(tunables: dict[str, int]) -> None:
    run("tensorcore_pipelined", "sm_90", (139, 264, 72), 1.5, 0.5, "f16", **tunables)


def test_tiles_that_do_not_fit_are_refused() -> None:
    info = kernel_info("tensorcore_pipelined")
    for chosen, why in (
        ({"bm": 64, "bn": 64, "wm": 64, "wn": 64}, "too few to stage"),
        ({"bm": 256, "bn": 256, "wm": 32, "wn": 32}, "more than 1024"),
        ({"bm": 128, "bn": 128, "bk": 16, "wm": 32, "wn": 32}, "too many to stage"),
    ):
        with pytest.raises(ValueError, match=why):
            info.launch(256, 256, 256, defaults("tensorcore_pipelined") | chosen)


@pytest.mark.parametrize("name", ["tensorcore_warptiled", "tensorcore_pipelined"])
def test_fragments_come_without_bank_conflicts(name: str) -> None:
    done, _, program = run(name, "sm_80", (128, 128, 64), dtype="f16")
    accesses = {i.index: access for i in program.instructions if (access := access_of(i)) is not None}
    shapes = shapes_of(done.trace, accesses, 4)
    seen = [
        (int(waves), int(conflicts))
        for pc, waves, conflicts in zip(shapes.pc, shapes.wavefronts, shapes.conflicts, strict=True)
        if program.instructions[pc].opcode == "LDSM"
    ]
    assert seen and set(seen) == {(4, 0)}


@pytest.mark.parametrize("name", ["tensorcore_warptiled", "tensorcore_pipelined"])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_accumulators_stay_in_registers(name: str, arch: str) -> None:
    program = compiled(name, arch, defaults(name), "f16")
    assert program.local_bytes == 0
    inner = min((loop for loop in loops(program) if _count(program, loop, "HMMA")), key=len)
    assert _count(program, inner, "HMMA") == 32 and _count(program, inner, "LDSM") == 8


def _count(program, loop, opcode):  # type: ignore[no-untyped-def]
    return sum(program.instructions[index].opcode == opcode for index in loop)
