"""Every shipped GPU: complete, sourced, and consistent with itself."""

from __future__ import annotations

import pytest

from gemmsim.gpu import DEFAULT_GPU, aliases, load_gpu, preset_names
from gemmsim.gpu.layer import read_layer
from gemmsim.gpu.load import PRESETS, _sources
from gemmsim.gpu.spec import STATUSES
from gemmsim.sm.pipes import port_pipes

ROOT = PRESETS.parents[2]

WANTED = {
    *("t4", "rtx2080ti", "rtx2080super"),
    *("a100-40gb", "a100-80gb", "a30", "a800"),
    *(
        "a10",
        "a10g",
        "a40",
        "rtxa6000",
        "rtx3050",
        "rtx3060",
        "rtx3060-laptop",
        "rtx3060ti",
        "rtx3070",
        "rtx3080",
        "rtx3090",
    ),
    *(
        "l4",
        "l20",
        "l40",
        "l40s",
        "rtx6000ada",
        "rtx4060",
        "rtx4060ti",
        "rtx4070",
        "rtx4070tisuper",
        "rtx4080",
        "rtx4090",
    ),
    *("rtx4090-laptop", "h100", "h100-pcie", "h100-nvl", "h800", "h20", "h200", "gh200"),
    *("rtx5060ti", "rtx5070", "rtx5070ti", "rtx5080", "rtx5090", "rtxpro6000"),
    *("b200", "orin"),
}
# Tensor peaks that data sheets state at another clock than rated boost, or do not follow from mma.sync's rate.
STATED_OTHERWISE = {
    "l40s": "362.05 TFLOP/s are those of the L40's boost, 2490 MHz",
    "h100-nvl": "835.5 TFLOP/s are those of 1545 MHz",
    "b200": "2250 TFLOP/s are tcgen05's, of which mma.sync is taken to reach what it reaches on an H200",
    "h20": "what mma.sync reaches of wgmma's rate is not known there",
}


def test_the_promised_gpus_ship() -> None:
    assert set(preset_names()) >= WANTED
    assert DEFAULT_GPU == aliases()["a100"] == "a100-80gb"


@pytest.mark.parametrize("name", preset_names())
def test_every_value_has_a_source_and_a_status(name: str) -> None:
    gpu = load_gpu(name)
    for value in gpu.provenance.values():
        assert value.source and value.unit
        assert value.status in STATUSES
        # A vendor's or a measurer's word needs the document or repository that a short name stands for.
        assert value.status in ("estimated", "copied", "scaled") or "[" in value.source, value
        assert (value.status == "calibrated") <= bool(value.records)
        assert all((ROOT / record).is_file() for record in value.records)


def test_what_was_found_on_one_architecture_is_copied_on_others() -> None:
    key = "register_file.load_write_most_wait_cycles"
    hopper, ampere = load_gpu("h200").provenance[key], load_gpu("a100").provenance[key]
    assert (hopper.status, ampere.status) == ("calibrated", "copied")
    assert hopper.records == ampere.records == ("tests/records/h200_write_ports.json",)
    assert ampere.source.startswith("found on sm_90: ")
    key = "pipes.alu.latency_cycles"
    assert {name: load_gpu(name).provenance[key].status for name in ("rtxa6000", "h100", "t4")} == {
        "rtxa6000": "measured",
        "h100": "measured",
        "t4": "copied",
    }


def test_the_files_of_architectures_restate_nothing() -> None:
    """What is the same in all of them stands in base.toml alone."""
    layers = [read_layer(path, {}) for path in sorted((PRESETS / "arch").glob("sm_*.toml"))]
    in_all = set.intersection(*(set(layer.values) for layer in layers))
    same = {key for key in in_all if len({str(layer.values[key].value) for layer in layers}) == 1}
    assert len(layers) == 8 and all(layer.extends == "base" for layer in layers)
    assert same == set()


@pytest.mark.parametrize("name", preset_names())
def test_peaks_agree_with_the_pipes(name: str) -> None:
    """SMs * sub-partitions * lanes a cycle * 2 * boost is the fp32 peak; likewise the others, tensor cores included."""
    gpu = load_gpu(name)
    cycles = gpu.sm.count * gpu.sm.sub_partitions * gpu.clock.sm_boost_hz
    halves = [gpu.pipes[pipe].issue_interval_cycles for pipe in ("fmaheavy", "fmalite") if pipe in gpu.pipes]
    assert sum(32 * 2 / interval for interval in halves) * cycles == pytest.approx(gpu.peak.fp32_flops, rel=0.01)
    assert 32 * 2 / gpu.pipes["fp64"].issue_interval_cycles * cycles == pytest.approx(gpu.peak.fp64_flops, rel=0.02)
    half = [max(gpu.pipes[pipe].issue_interval_cycles for pipe in port_pipes("half", gpu.pipes))]
    if "fp16" in gpu.pipes and port_pipes("half", gpu.pipes) != ("fp16",):  # HFMA2.MMA beside HFMA2
        half.append(gpu.pipes["fp16"].issue_interval_cycles)
    assert sum(32 * 4 / interval for interval in half) * cycles == pytest.approx(gpu.peak.fp16_flops, rel=0.01)
    hmma_flops = 2 * 16 * 8 * 16
    interval = gpu.pipes["tensor"].issue_interval_cycles
    tensor_hz = gpu.clock.sm_boost_hz
    if gpu.arch == "sm_90":  # data sheets state tensor peaks at 1830 of 1980 MHz; mma.sync reaches two thirds of WGMMA
        tensor_hz, interval = tensor_hz * 1830 / 1980, interval * 4 / 6.03
    tensor = hmma_flops / interval * cycles * tensor_hz / gpu.clock.sm_boost_hz
    assert (tensor == pytest.approx(gpu.peak.tensor_fp16_flops, rel=0.01)) == (name not in STATED_OTHERWISE)


def test_what_an_h200_said_of_itself() -> None:
    # torch and Nsight Compute on an H200, driver 580.159.04: 60 MB of L2 where the data sheet says 50; 1980 MHz.
    gpu = load_gpu("h200")
    assert (gpu.sm.count, gpu.l2.size_bytes, gpu.clock.sm_load_hz) == (132, 60 * 2**20, 1980e6)


def test_every_citation_is_used() -> None:
    text = "".join(path.read_text() for path in PRESETS.rglob("*.toml") if path.stem != "sources")
    assert [name for name in _sources() if name not in text] == []
