"""Which way is better, what follows from it, and that nothing is run again in vain or left out."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import gemmsim.report
from gemmsim.analysis.studies.sensitivity import (
    RULES,
    Better,
    Changes,
    Effect,
    Rule,
    Sensitivity,
    rule_of,
    varied_keys,
)
from gemmsim.api import count, recount
from gemmsim.gpu import load_gpu, preset_names
from gemmsim.gpu.check import check
from gemmsim.gpu.fields import types
from gemmsim.gpu.improve import better_values, value_of, with_values
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import Labels
from gemmsim.report.studies.sensitivity import RENDERERS
from gemmsim.sm.schedule import schedule
from gemmsim.studies.sensitivity import sensitivity, uses
from gemmsim.support.errors import GemmsimError

H200, A100 = load_gpu("h200"), load_gpu("a100")
LESS_TIME = Rule(Better.LESS, Changes.TIME)
OF_ALL_SHARES = ("h200", "a100-80gb", "rtx2080ti", "rtx5090")
CASES = [("tiled", 64), ("tensorcore_pipelined", 128), ("async_pipelined", 128)]


def rules() -> dict[str, Rule]:
    """Of each field of the spec; those of pipes once."""
    return {f"{key.split('.')[0]}.{key.split('.')[-1]}": rule_of(key) for key in types()}


def test_every_field_of_the_spec_has_a_rule_and_no_rule_is_of_another() -> None:
    assert set(RULES) <= set(rules())
    for key, rule in rules().items():
        assert RULES.get(key) != LESS_TIME or not key.endswith(("_cycles", "_us")), "said by its name already"
        assert (rule.better == Better.NEITHER) == (rule.changes == Changes.NOTHING) == bool(rule.why)


def test_names_agree_with_which_way_is_better() -> None:
    for key in varied_keys():
        less = (
            "latency",
            "interval",
            "overhead",
            "tensor_entry",
            "tensor_exit",
            "_cycles",
            "reserved",
            "work_share",
            "accumulator_share",
            "after_shared",
            "partial_line_sectors",
            "least_sectors",
            "turnaround",
            "crowding",
            "late_share",
            "l2.atomic_",
            "write_blocking",
        )
        more = ("per_cycle", "window", "most_wait", "write_slack", "flush_interval", "block_turn", "sooner")
        expected = any(word in key for word in less) and not any(word in key for word in more)
        assert (rule_of(key).better == Better.LESS) == expected, key


class Watched:
    """A GpuSpec that notes which of its keys are read; `pipes` stays the dict that it is."""

    def __init__(self, spec: Any, seen: set[str], prefix: str = "") -> None:
        self.__dict__["_inside"] = (spec, seen, prefix)

    def __getattr__(self, name: str) -> Any:
        spec, seen, prefix = self.__dict__["_inside"]
        value = getattr(spec, name)
        if name == "pipes":
            return {pipe: Watched(one, seen, "pipes.") for pipe, one in value.items()}
        if dataclasses.is_dataclass(value):
            return Watched(value, seen, f"{name}.")
        seen.add(f"{prefix}{name}")
        return value


@pytest.mark.parametrize(("kernel", "size"), CASES)
def test_counts_read_nothing_that_is_said_to_change_only_the_time(kernel: str, size: int) -> None:
    pytest.importorskip("numba_cuda")
    request = ladder_launch(LadderCase(kernel, size, size, size), H200)
    of_counts: set[str] = set()
    of_time: set[str] = set()
    counted = count(replace(request, gpu=Watched(H200, of_counts)))
    gpu: Any = Watched(H200, of_time)
    resident = counted.occupancy.blocks_per_sm
    schedule(counted.program, request.launch, counted.execution.trace, counted.traffic.cost, gpu, resident)
    assert "l2.size_bytes" in of_counts and "pipes.latency_cycles" in of_time  # it does watch
    assert not {key for key, rule in rules().items() if key in of_counts and rule.changes == Changes.TIME}
    figures = {key for key, rule in rules().items() if "no time is made" in rule.why}
    assert "clock.sm_boost_hz" in figures and not figures & (of_counts | of_time)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        pytest.param(name, share, marks=() if share == 0.1 or name in OF_ALL_SHARES else pytest.mark.slow)
        for share in (0.01, 0.1, 0.5)
        for name in preset_names()
    ],
)
def test_every_gpu_may_be_better_in_every_way(name: str, share: float) -> None:
    gpu = load_gpu(name)
    for key in varied_keys():
        if key not in gpu.provenance:
            continue
        more = rule_of(key).better == Better.MORE
        values = better_values(gpu, key, more, share)
        better = check(with_values(gpu, values))
        before, after = value_of(gpu, key), value_of(better, key)
        pairs = zip(before, after, strict=True) if isinstance(before, tuple) else [(before, after)]
        for old, new in pairs:
            assert type(old) is type(new)
            assert new == old if not values else (new > old if more else new < old) or not old
        if values:
            changed = {one for one in types() if one in gpu.provenance and value_of(gpu, one) != value_of(better, one)}
            assert changed == set(values)


@pytest.mark.parametrize(
    ("key", "after"),
    [
        ("sm.count", 145),  # 132 + 13.2
        ("sm.max_warps", 72),  # 70.4, in fours
        ("sm.registers", 71680),  # 72089.6, in units of 4 x 256: 70.4
        ("mio.queue_entries", 11),
        ("dram.achievable_fraction", 1.0),
        ("dram.peak_bytes_per_s", 5.28e12),
        ("l2.far_latency_cycles", 267.3),
        ("shared.load_latency_cycles", (21.0, 21.0, 21.0)),  # of 23
        ("pipes.fmaheavy.latency_cycles", 3.0),  # of 4, whole cycles
        ("pipes.fmaheavy.issue_interval_cycles", 1.8),
    ],
)
def test_ten_percent_of_an_h200(key: str, after: Any) -> None:
    found = better_values(H200, key, rule_of(key).better == Better.MORE, 0.1)[key]
    assert found == pytest.approx(after)


def test_more_shared_memory_is_a_larger_configuration() -> None:
    """228 KiB + 10 % = 250.8, as 251 of the 256 that L1 and shared memory have together."""
    better = with_values(H200, better_values(H200, "shared.max_bytes_per_sm", True, 0.1))
    assert better.shared.max_bytes_per_sm == better.shared.carveouts_bytes[-1] == 251 * 1024
    assert better.shared.max_bytes_per_block == 250 * 1024 and better.l1 == H200.l1
    assert with_values(H200, better_values(H200, "shared.max_bytes_per_sm", True, 0.5)).l1.unified_bytes == 342 * 1024


@pytest.mark.parametrize("key", ["l2.size_bytes", "l1.unified_bytes", "sm.max_blocks", "sm.count", "sm.max_warps"])
def test_counted_again_as_if_from_the_start(key: str) -> None:
    pytest.importorskip("numba_cuda")
    request = ladder_launch(LadderCase("tiled", 128, 128, 128, tunables={"tile": 8}), A100)
    counted = count(request)
    gpu = with_values(A100, better_values(A100, key, True, 0.5))
    again, anew = recount(counted, replace(request, gpu=gpu)), count(replace(request, gpu=gpu))
    assert again.traffic.counters == anew.traffic.counters and again.occupancy == anew.occupancy
    assert (again.traffic.cost.dram_sectors == anew.traffic.cost.dram_sectors).all()


@pytest.fixture(scope="module")
def found() -> Sensitivity:
    pytest.importorskip("numba_cuda")
    return sensitivity(ladder_launch(LadderCase("tiled", 64, 64, 64), H200))


def test_each_number_alone_as_analyze_would_say(found: Sensitivity) -> None:
    """The launch overhead is added to the rest: a tenth less of 1.35 us saves 0.135 us."""
    by_key = {effect.key: effect for effect in found.effects}
    assert by_key["launch.overhead_us"].saved_us == pytest.approx(0.135)
    for text in ("l2.size=66MiB", "clock.sm_load=2178MHz", "pipes.fmaheavy.latency=3"):
        from gemmsim.api import analyze

        gpu = load_gpu("h200", [text])
        (key,) = [key for key, value in gpu.provenance.items() if value.source == f"--set {text}"]
        time = analyze(ladder_launch(LadderCase("tiled", 64, 64, 64), gpu)).evidence.timing.duration_us
        assert by_key[key].time_us == pytest.approx(time, rel=1e-9), key
    kept = found.time_us - H200.launch.overhead_us
    assert by_key["clock.sm_load_hz"].time_us - H200.launch.overhead_us < kept


def test_everything_is_tried_or_said_not_to_be(found: Sensitivity) -> None:
    tried = {effect.key for effect in found.effects} | set(found.skipped)
    assert tried == {key for key in varied_keys() if key in H200.provenance}
    saved = [effect.saved_us for effect in found.effects]
    assert saved == sorted(saved, reverse=True)


@pytest.mark.parametrize(("kernel", "size"), CASES)
def test_pipes_that_a_kernel_does_not_use_are_not_timed_again(kernel: str, size: int) -> None:
    """Twice as slow, they change nothing."""
    pytest.importorskip("numba_cuda")
    request = ladder_launch(LadderCase(kernel, size, size, size), H200)
    counted = count(request)
    keys = [key for key in varied_keys() if key in H200.provenance and not uses(counted.program, H200, key)]
    assert ("pipes.fp64.latency_cycles" in keys) and ("mma.half_work_share" in keys) == ("tensor" not in kernel)
    gpu = with_values(H200, {key: 2 * value_of(H200, key) for key in keys})
    times = {
        schedule(counted.program, request.launch, counted.execution.trace, counted.traffic.cost, spec, 1).duration_us
        for spec in (gpu, H200)
    }
    assert len(times) == 1


def test_a_share_that_cannot_be() -> None:
    request = ladder_launch(LadderCase("tiled", 64, 64, 64), H200)
    for share in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(GemmsimError, match="must be above 0 and below 100"):
            sensitivity(request, share)


def effect(key: str, before: float, after: float, unit: str, factor: float, saved_pct: float) -> Effect:
    rule = rule_of(key)
    change = 100 * (after / before - 1)
    return Effect(key, rule.better, rule.changes, before, after, unit, factor, change, 0.0, saved_pct, saved_pct)


MADE = Sensitivity(
    Labels("tiled", "", 64, 64, 64, {"tile": 32}), "h200", 10.0, 100.0,
    (
        effect("clock.sm_load_hz", 1.98e9, 2.178e9, "MHz", 1e6, 8.0),
        effect("l2.size_bytes", 60 * 2**20, 66 * 2**20, "MiB", 2.0**20, 2.0),
        effect("pipes.alu.latency_cycles", 4, 3, "cycles", 1.0, 0.5),
        effect("sm.count", 132, 145, "1", 1.0, 0.0),
        effect("barrier.release_cycles", 12, 10.8, "cycles", 1.0, -1.0),
    ),
    {"mio.shared_entries": "cannot be better"},
)  # fmt: skip

EXPECTED = """\
tiled, M=64 N=64 K=64, tile=32 on h200: 100 us, predicted, not measured

EACH NUMBER 10 % BETTER, ALONE
  GPU file key   from    to  unit         time
  clock.sm_load  1980  2178  MHz   +10%  -8.0%  ############
  l2.size          60    66  MiB   +10%  -2.0%  ###

WITHIN THE SCATTER OF THE SCHEDULE
  Better numbers also made it slower, by up to 1.0 %: another order in which
      warps come first. These change the time by no more than that:
  pipes: alu.latency
  barrier: release

LESS THAN 0.05 % OF THE TIME
  sm: count

NOT TRIED
  mio.shared_entries: cannot be better

"""


def test_text() -> None:
    text = RENDERERS["text"](MADE)
    assert RENDERERS["html"](MADE).count('class="bar"') == len(MADE.effects)
    assert text.startswith(EXPECTED) and text.isascii() and max(map(len, text.splitlines())) <= 80


def test_json_and_csv(found: Sensitivity) -> None:
    schema = json.loads((Path(gemmsim.report.__file__).parent / "sensitivity.schema.json").read_text())
    for one in (found, MADE):
        data = json.loads(RENDERERS["json"](one))
        jsonschema.validate(data, schema)
        assert len(RENDERERS["csv"](one).splitlines()) == 1 + len(one.effects)
    assert data["scatter_pct"] == 1.0 and data["effects"][1]["set"] == "l2.size"
    assert data["effects"][1]["group"] == "l2" and data["effects"][1]["before"] == 60 * 2**20


def test_keys_as_set_takes_them(found: Sensitivity) -> None:
    """Each number of the table, set on the command line, is the value that was tried."""
    for one in json.loads(RENDERERS["json"](found))["effects"]:
        if one["key"] == "shared.max_bytes_per_sm" or isinstance(value_of(H200, one["key"]), tuple):
            continue
        gpu = load_gpu("h200", [f"{one['set']}={one['after'] / one['unit_factor']!r}{one['unit'].replace('1', '')}"])
        assert value_of(gpu, one["key"]) == pytest.approx(one["after"]), one["key"]
