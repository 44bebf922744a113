"""Calibration: it finds the values that made the times, and reports error on what it has not seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmsim_validate.calibrate.fit import calibrate, parameters, scaled
from gemmsim_validate.calibrate.sample import Sample, case_sample
from gemmsim_validate.calibrate.table import table
from gemmsim_validate.cli.main import main
from gemmsim_validate.records.case import load_cases

from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.support.errors import GemmsimError

GPU = load_gpu("h200")
KEYS = ["l2.hit_latency_cycles", "dram.latency_cycles"]


def made_of(a: float, b: float) -> object:
    """A time that is a power law of two parameters, so that the linearisation is exact."""

    def predict(gpu: GpuSpec) -> float:
        return 10 * (gpu.l2.hit_latency_cycles / 100) ** a * (gpu.dram.latency_cycles / 100) ** b

    return predict


def some(truth: GpuSpec, noise: float = 1.0) -> list[Sample]:
    """Three rungs of two sizes, measured on `truth`; one of them is off by `noise`."""
    laws = {("a", "1"): (0.5, 0.1), ("a", "2"): (0.8, 0.1), ("b", "1"): (0.1, 0.9), ("b", "2"): (0.3, 0.4),
            ("c", "1"): (0.2, 0.2), ("c", "2"): (0.6, 0.6)}  # fmt: skip
    return [
        Sample(rung + size, rung, size, law(truth) * (noise if rung + size == "c2" else 1), law)  # type: ignore[operator]
        for (rung, size), law in ((key, made_of(*powers)) for key, powers in laws.items())
    ]


def test_values_that_made_the_times_are_found() -> None:
    """And held-out cases, from the same values, are as good."""
    samples = some(scaled(GPU, "h200", {KEYS[0]: 1.3, KEYS[1]: 0.8}))
    found = calibrate(samples, GPU, "h200", KEYS)
    assert found.factors == pytest.approx({KEYS[0]: 1.3, KEYS[1]: 0.8}, rel=0.01)
    assert max(map(abs, found.before.values())) > 0.1
    for errors in (found.fitted, found.without_rung, found.without_size):
        assert set(errors) == {one.id for one in samples} and max(map(abs, errors.values())) < 0.01
    shown = table(found, GPU)
    assert "l2.hit_latency_cycles" in shown and "its rung left out" in shown


def test_one_bad_case_does_not_spoil_the_fit_and_is_worst_where_it_was_left_out() -> None:
    """Robust: a case measured three times too long moves the values little, and shows as an error of two thirds."""
    found = calibrate(some(scaled(GPU, "h200", {KEYS[0]: 1.3}), noise=3.0), GPU, "h200", KEYS)
    assert found.factors[KEYS[0]] == pytest.approx(1.3, rel=0.12)
    assert found.without_rung["c2"] == pytest.approx(1 / 3 - 1, abs=0.02)
    assert abs(found.without_rung["c2"]) >= abs(found.fitted["c2"])


def test_factors_stay_within_the_limit_and_what_has_no_influence_stays() -> None:
    samples = some(scaled(GPU, "h200", {KEYS[0]: 3.0}))
    found = calibrate(samples, GPU, "h200", [*KEYS, "pipes.xu.latency_cycles"], limit=1.5)
    assert found.factors[KEYS[0]] == pytest.approx(1.5, rel=1e-3)
    assert found.factors["pipes.xu.latency_cycles"] == pytest.approx(1)


def test_what_may_be_fitted() -> None:
    assert parameters(GPU, KEYS) == KEYS
    estimated, everything = parameters(GPU), parameters(GPU, everything=True)
    assert set(estimated) < set(everything) and set(KEYS) <= set(everything)
    assert "l2.far_latency_cycles" not in everything  # moves with the near one
    assert all(GPU.provenance[key].status in ("estimated", "copied") for key in estimated)
    with pytest.raises(GemmsimError, match=r"l2.size_bytes' is not calibratable"):
        parameters(GPU, ["l2.size_bytes"])
    with pytest.raises(GemmsimError, match="nothing to fit"):
        calibrate([], GPU, "h200", KEYS)


def test_lists_are_scaled_as_a_whole() -> None:
    gpu = scaled(GPU, "h200", {"shared.load_latency_cycles": 2.0})
    assert gpu.l2 == GPU.l2
    assert scaled(GPU, "h200", {KEYS[0]: 1.5}).l2.far_latency_cycles == 1.5 * GPU.l2.far_latency_cycles
    assert scaled(GPU, "h200", {"dram.achievable_fraction": 2}).dram.achievable_fraction == 1
    assert gpu.shared.load_latency_cycles == tuple(2 * value for value in GPU.shared.load_latency_cycles)


def test_the_sm_model_is_fitted_to_what_it_predicts_elsewhere() -> None:
    """Times of two recorded launches, made by the model with a slower launch: that launch is found again."""
    cases = [case for case in load_cases() if case.n == 256 and case.name in ("tiled", "coalesced")][:2]
    truth = scaled(GPU, "h200", {"launch.overhead_us": 1.5})
    samples = [case_sample(case, GPU, max_instructions=10_000) for case in cases]
    made = [Sample(one.id, one.rung, one.size, one.predict(truth), one.predict) for one in samples]
    found = calibrate(made, GPU, "h200", ["launch.overhead_us"])
    assert found.factors["launch.overhead_us"] == pytest.approx(1.5, rel=0.1)
    assert max(map(abs, found.fitted.values())) < max(map(abs, found.before.values()))
    assert found.without_size == {}  # one size only


def test_the_command_writes_a_gpu_file_that_says_what_was_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two recorded times, predicted by a formula in place of the SM model."""
    monkeypatch.setattr(
        "gemmsim_validate.calibrate.sample.case_sample",
        lambda case, gpu: Sample(
            case.id, case.name, str(case.n), case.calibrated_time_us, lambda g: 9 + g.launch.overhead_us
        ),
    )
    target = tmp_path / "mine.toml"
    words = ["calibrate", "--gpu", "h200", "-o", str(target), "--only", "tiled-f32-tile=32", "--max-size", "512"]
    assert main([*words, "--parameter", "launch.overhead_us"]) == 0
    assert "held out: its size left out" in capsys.readouterr().out
    gpu = load_gpu(str(target))
    value = gpu.provenance["launch.overhead_us"]
    assert "fitted by gemmsim-validate calibrate on 2 cases" in value.source and value.status == "calibrated"
    assert value.records == ("tiled-f32-tile=32-256x256x256", "tiled-f32-tile=32-512x512x512")
    assert gpu.fitted_keys == ("launch.overhead_us",) and not load_gpu("h200").fitted_keys
    assert "on the cases seen" in target.read_text().splitlines()[1]
    assert main([*words[:-1], "8"]) == 2
    assert "no timed records" in capsys.readouterr().err
