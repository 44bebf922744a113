"""Kernels whose blocks take their tiles in many orders: counters worked out by hand, and samples like the whole."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from gemmsim_validate.sampling.closed_forms import FFMA
from gemmsim_validate.sampling.compare import Comparison, compare
from gemmsim_validate.sampling.corpus import KERNELS, Case, launch_spec
from gemmsim_validate.sampling.document import as_data, sections
from gemmsim_validate.sampling.extrapolate import extrapolated
from gemmsim_validate.sampling.large import held_to, predict
from gemmsim_validate.sampling.limits import limits
from gemmsim_validate.sampling.others import mma_forms, mma_launch

from gemmsim.api import count
from gemmsim.gpu import load_gpu
from gemmsim.launch.spec import Settings
from gemmsim.support.errors import GemmsimError

pytestmark = pytest.mark.usefixtures("native_engine")
GPU = load_gpu("a100")
FASTER = pytest.mark.xfail(strict=True, reason="the sample is 1.8 % faster, which is to be 1.5 (deviation 8)")
SIZES = {"aligned": (256, 256, 128, 0), "ragged": (148, 178, 77, 1)}
LARGER = {"aligned": (512, 512, 512, 0), "ragged": (500, 530, 269, 1)}  # as `gemmsim-validate sampling` has them


@cache
def compared(name: str, tile: int, size: str) -> Comparison:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    return compare(Case(kernel, tile, *(SIZES | {f"larger {key}": value for key, value in LARGER.items()})[size]), GPU)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("swizzled", 32),
        ("K from a table, grouped", 32),
        ("grouped", 32),
        ("grouped", 128),
        ("Hilbert", 32),
        ("lower triangle, packed", 32),
        ("batched, grouped", 32),
        ("split-K, atomic", 32),
        ("stream-K", 32),
        ("work counter", 32),
        ("per thread", 32),
    ],
)
def test_full_executions_count_what_follows_from_the_text(name: str, tile: int, size: str) -> None:
    """C too is what the list of all work says, so that the list and the kernel are about the same blocks."""
    found = compared(name, tile, size)
    assert found.wrong_forms == {}
    assert found.wrong_c < 1


def test_tensor_cores_in_groups_of_rows_count_what_follows_from_the_text() -> None:
    counted = count(mma_launch(256, "rtx4090"))
    assert not counted.execution.sampled
    forms = mma_forms(256)
    assert {name: counted.traffic.counters[name] for name in forms} == forms
    a, b = (np.asarray(argument.value).astype(np.float32) for argument in counted.launch.args[:2])
    np.testing.assert_allclose(counted.execution.outputs[2], a @ b, atol=1e-4)


@pytest.mark.parametrize(("name", "tile"), [("grouped", 128), ("split-K, workspace", 32), ("per thread", 32)])
def test_counters_of_a_long_k_follow_from_short_ones(name: str, tile: int) -> None:
    kernel = next(kernel for kernel in KERNELS if kernel.name == name)
    case = Case(kernel, tile, 192, 160, 512)
    long = count(launch_spec(case, GPU, Settings(full=True))).traffic.counters
    found = extrapolated(case, GPU)
    assert len(found) > 40
    assert {name: long[name] for name in found} == found


@pytest.mark.parametrize(("name", "size"), [("row-major", "ragged"), ("snake", "aligned"), ("Hilbert", "ragged")])
def test_a_small_sample_counts_as_the_whole(name: str, size: str) -> None:
    """These launches last some 10 us, and how long they wait for DRAM is estimated: the time may be off by 2.5 %."""
    assert [failure for failure in compared(name, 32, size).failures if not failure.startswith("time")] == []


@pytest.mark.parametrize(
    ("name", "tile", "size"),
    [
        pytest.param("row-major", 32, "larger ragged", marks=FASTER),
        ("snake", 32, "larger aligned"),
        ("Hilbert", 128, "larger ragged"),
    ],
)
def test_a_sample_is_as_the_whole(name: str, tile: int, size: str) -> None:
    assert compared(name, tile, size).failures == []


def test_what_differs_is_said() -> None:
    """A comparison with one counter that differs, and DRAM reads too many, is listed with both."""
    fine = compared("snake", 32, "larger aligned")
    wrong = replace(fine, wrong_exact={"smsp__inst_executed.sum": (3.0, 2.0)}, errors_pct={"DRAM read": 40.0})
    assert fine.failures == []
    assert wrong.failures == ["1 exact counters differ", "DRAM read +40.0 %"]
    assert [one["failures"] for one in as_data([fine, wrong], [])["compared"]] == [[], wrong.failures]
    table = sections([replace(wrong, errors_pct=fine.errors_pct)], [])[1].table
    assert table and table.rows[0][3:] == ("smsp__inst_executed.sum", "sampled and full", "3", "2")


def test_a_large_launch_is_held_to_what_is_known_of_it() -> None:
    """A launch is fine by the true numbers; another count of multiply-adds and another footprint are both noticed."""
    case = Case(KERNELS[0], 32, 128, 128, 64)
    fine = predict(case, GPU)
    assert (fine.failures, fine.inexact) == ([], {})
    assert fine.roomy_sectors == fine.compulsory == 2 * 128 * 64 // 8
    wrong = held_to("x", 32, "128", launch_spec(case, GPU, Settings()), {FFMA: 1.0}, 2 * fine.compulsory)
    assert wrong.wrong_forms == {FFMA: (128 * 128 * 64.0, 1.0)}
    assert wrong.failures[1:] == [
        "0.50 times the sectors that the kernel reads",
        "DRAM is read for 0.50 of the sectors that the kernel reads",
    ]


def endless() -> None:
    while True:
        pass


def test_a_prediction_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(GemmsimError, match="given up after 1 s"), limits(1):
        endless()
