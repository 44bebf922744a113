"""The measured ladder as a table: which record counts, and what is worked out from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gemmsim_validate.ladder.markdown import library_markdown, markdown
from gemmsim_validate.ladder.rows import LadderRow, ladder_rows, library_rows, product_shares, rows_of_runs
from gemmsim_validate.records.case import Case, Series

from gemmsim.support.errors import GemmsimError


def case(name: str, us: float, size: int = 1024, dtype: str = "f32", rung: bool = True, **tunables: int) -> Case:
    data: dict[str, Any] = {
        "subject": {"registers": 64, "static_shared_bytes": 8192}, "launch": {"dynamic_shared_bytes": 1024}
    }  # fmt: skip
    return Case(
        id=name, kind="measured", folder="h200", name=name, gpu="h200", rung=rung, tunables=tunables,
        m=size, n=size, k=size, dtype=dtype, result_dtype=dtype, grid=(32, 32, 1), block=(256, 1, 1),
        times={"back_to_back": Series(us)}, counters={}, cubin=Path("x"), data=data,
    )  # fmt: skip


def shares(*_: Any) -> dict[str, float]:
    return {"sm_90": 0.625}


def test_numbers_of_a_row() -> None:
    """64 registers x 256 threads: 4 blocks of 16,384 registers, 1024 of 2048 threads; 2 x 1024^3 in 1 ms."""
    (row,) = ladder_rows([case("naive", 1000.0), case("cublas", 250.0, rung=False)], 1024, shares)
    assert (row.registers, row.shared_bytes, row.occupancy_pct) == (64, 9216, 50.0)
    assert row.tflops == pytest.approx(2 * 1024**3 / 1e-3 / 1e12)
    assert (row.time_us, row.cublas_us) == (1000.0, 250.0)


def test_ladder_order_default_tunables_and_own_dtype() -> None:
    found = ladder_rows(
        [case("tiled", 90.0, tile=8), case("tiled", 100.0, tile=32), case("naive", 500.0), case("naive", 1.0, size=512),
         case("tensorcore_naive", 40.0, dtype="f16"), case("cublas", 10.0, dtype="f16", rung=False)],
        1024, shares,
    )  # fmt: skip
    assert [(row.name, row.time_us, row.cublas_us) for row in found] == [
        ("naive", 500.0, None), ("tiled", 100.0, None), ("tensorcore_naive", 40.0, 10.0)
    ]  # fmt: skip


def test_without_the_default_the_fastest_is_named() -> None:
    found = ladder_rows([case("tiled", 90.0, tile=8), case("tiled", 80.0, tile=16)], 1024, shares)
    assert [row.name for row in found] == ["tiled tile=16"]


def test_runs_have_their_own_reference() -> None:
    """cuBLAS took 10 us in one run and 20 in the other; a run without a rung of that size says nothing."""
    one = (case("naive", 100.0), case("cublas", 10.0, rung=False))
    other = (case("tiled", 100.0, tile=32), case("cublas", 20.0, rung=False))
    third = (case("tiled", 1.0, size=64, tile=32), case("cublas", 5.0, rung=False))
    found = rows_of_runs([one, other, third], 1024, shares)
    assert [(row.name, row.cublas_us) for row in found] == [("naive", 10.0), ("tiled", 20.0)]
    with pytest.raises(GemmsimError, match="no record of a rung at size 4096"):
        rows_of_runs([one, other], 4096, shares)


def test_no_record_is_an_error() -> None:
    with pytest.raises(GemmsimError, match="no record of a rung at size 4096"):
        ladder_rows([case("naive", 1.0), case("cublas", 1.0, size=4096, rung=False)], 4096, shares)


def test_markdown() -> None:
    row = LadderRow("tiled", "f32", 40, 8192, 75.0, 1234.5, 12.345, 250.0, {"sm_90": 0.625})
    assert markdown([row], 4096, "h200").splitlines()[-1] == (
        "| tiled | f32 | 40 | 8,192 B | 75% | 1,234.5 us | 12.35 | 20.3% | - | 62% |"
    )
    assert len({line.count("|") for line in markdown([row], 4096, "h200").splitlines()[2:]}) == 1


def test_share_of_products_by_execution() -> None:
    """Of blocktile_2d at least 60 % everywhere: the promise of the ladder."""
    pytest.importorskip("numba_cuda")
    found = product_shares("blocktile_2d", "f32", {})
    assert set(found) == {"sm_80", "sm_90"} and min(found.values()) >= 0.6


def test_library_beside_the_fastest_rung() -> None:
    """2 x 1024^3 in 100 us are 21.47 TFLOP/s; a rung of 125 us in another run reaches 80 % of that."""
    one = (case("cublas", 100.0, rung=False), case("naive", 500.0), case("tf32_tensorcore", 80.0))
    other = (case("cublas", 400.0, rung=False), case("tiled", 125.0, tile=32), case("cublas_tf32", 40.0, rung=False))
    (row,) = library_rows([one, other])
    assert (row.m, row.n, row.k) == (1024, 1024, 1024)
    assert row.tflops == pytest.approx({"f32": 21.4748, "tf32": 53.687}, rel=1e-4)
    assert row.best["f32"] == ("tiled", pytest.approx(80.0)) and row.best["tf32"] == (
        "tf32_tensorcore",
        pytest.approx(50.0),
    )
    assert "| 1024 x 1024 x 1024 | 21.5; tiled 80 % | 53.7; tf32_tensorcore 50 % |" in library_markdown([row])
