"""Every tensor-core rung computes C = alpha A B + beta C on the simulator: any size, each architecture, each type."""

from __future__ import annotations

import numpy as np
import pytest
from cubins import SM_86
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernel_runs import defaults, loops, run

from gemmsim.launch.ladder import kernel_info, kernel_infos
from gemmsim.memory.requests.banks import wavefronts

pytest.importorskip("numba_cuda")

RUNGS = [name for name in kernel_infos() if name.startswith("tensorcore")]
FROM_SHARED = [name for name in RUNGS if name != "tensorcore_naive"]
SLOW = pytest.mark.slow
OF_TUTORIAL = {"bm": 64, "bn": 64, "wm": 32, "wn": 32}  # compiled for its GPU when the tutorial runs
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
@example((8, 8, 232), 1.0, 0.0)  # more tiles than slots of the ring
@example((136, 264, 72), 1.0, 0.5)
def test_any_size(name: str, dtype: str, sizes: tuple[int, int, int], alpha: float, beta: float) -> None:
    run(name, "sm_90", sizes, alpha, beta, dtype)


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89", "sm_120"])
@pytest.mark.parametrize("name", RUNGS)
def test_other_architectures(name: str, arch: str) -> None:
    run(name, arch, (67, 136, 40), 1.5, 0.5, "f16")
    run(name, arch, (67, 43, 21), 1.5, 0.5, "f16")


@pytest.mark.parametrize(
    ("name", "tunables"),
    [
        pytest.param("tensorcore_pipelined", {"stages": 2}, marks=SLOW),
        ("tensorcore_pipelined", OF_TUTORIAL),
        pytest.param("tensorcore_pipelined", {"stages": 5, "bn": 128, "group": 1}, marks=SLOW),
        pytest.param("tensorcore_pipelined", {"bm": 64, "bn": 256, "wm": 32}, marks=SLOW),
        pytest.param("tensorcore_pipelined", {"bm": 256, "bn": 64, "bk": 64, "stages": 2, "wn": 32}, marks=SLOW),
        pytest.param("tensorcore_pipelined", {"bm": 64, "bn": 64, "wm": 32, "wn": 32, "stages": 3}, marks=SLOW),
        ("tensorcore_warptiled", OF_TUTORIAL),
        pytest.param("tensorcore_warptiled", {"bm": 64, "bn": 64, "bk": 16, "wm": 32, "wn": 32}, marks=SLOW),
        pytest.param("tensorcore_warptiled", {"bk": 64}, marks=SLOW),
        ("tensorcore_double_buffered", {"bk": 16, "wn": 32}),
    ],
)
def test_tunables(name: str, tunables: dict[str, int]) -> None:
    for k in (72, 200):
        arch = "sm_86" if tunables == OF_TUTORIAL else "sm_90"
        _, launch, program = run(name, arch, (139, 264, k), 1.5, 0.5, "f16", **tunables)
        assert program.registers * launch.threads_per_block <= 65536 and program.local_bytes == 0


def test_tiles_that_do_not_fit_are_refused() -> None:
    info = kernel_info("tensorcore_pipelined")
    for chosen, why in (
        ({"bm": 64, "bn": 64, "wm": 64, "wn": 64}, "too few to stage"),
        ({"bm": 256, "bn": 256, "wm": 32, "wn": 32}, "more than 1024"),
        ({"bm": 128, "bn": 256, "wm": 32, "wn": 32}, "too many to stage"),
    ):
        with pytest.raises(ValueError, match=why):
            info.launch(256, 256, 256, defaults("tensorcore_pipelined") | chosen)


@pytest.mark.parametrize("name", FROM_SHARED)
def test_no_bank_conflicts(name: str) -> None:
    """16 bytes a lane take at least four wavefronts: of ldmatrix and of what stages the tiles none takes more."""
    done, _, program = run(name, "sm_80", (256, 256, 128), dtype="f16")
    trace = done.trace
    shared = trace.record_base < 2**32  # global memory lies far above
    opcodes = {program.instructions[pc].opcode for pc in np.unique(trace.record_pc[shared])}
    assert opcodes == {"LDSM", "STS"} or opcodes == {"LDSM", "LDGSTS"}
    used = np.unique(trace.record_pattern[shared])
    active = (trace.patterns.active_mask[used][:, None] >> np.arange(32, dtype=np.uint32)) & 1 == 1
    assert set(wavefronts(trace.patterns.offsets_bytes[used], active, 16, merges=False)) == {4}


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", FROM_SHARED)
def test_mostly_products(name: str, arch: str) -> None:
    """Of the instructions issued in the K loop at least 60 % are HMMA, and nothing spills."""
    done, _, program = run(name, arch, (256, 256, 512), dtype="f16")
    assert program.local_bytes == 0
    executed = done.trace.weight @ done.trace.executed
    loop = max(loops(program), key=lambda indices: sum(executed[i] for i in indices))
    products = sum(executed[i] for i in loop if program.instructions[i].opcode == "HMMA")
    assert products >= 0.6 * sum(executed[i] for i in loop)
    fragments = sum(executed[i] for i in loop if program.instructions[i].opcode == "LDSM")
    assert products == 4 * fragments
