"""Switches of the timing model: each changes what it says and nothing else, and without any the time is compare's."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
from gemmsim_validate.ablate.mechanisms import BY_KEY, MECHANISMS, SWITCHES
from gemmsim_validate.ablate.run import ablate
from gemmsim_validate.ablate.switch import Inputs
from gemmsim_validate.compare.predict import predict
from gemmsim_validate.records.case import Case
from gemmsim_validate.records.replay import launch_of
from gemmsim_validate.records.select import replayable_cases

from gemmsim.api import count
from gemmsim.gpu.improve import value_of

VECTORIZED = "vectorized-f32-256x256x256"
BLOCKTILE, COALESCED, HALF, TENSOR = (
    "blocktile_1d-f32-256x256x256",
    "coalesced-f32-256x256x256",
    "hgemm_warptiled-f16-bk=16-256x256x256",
    "igemm_tensorcore-i8-bk=64-256x256x256",
)


# What each switch may touch: a field of Inputs, and numbers of the GPU or fields of RecordCost.
TOUCHES = {
    "stall-counts": ("program", set()),
    "yield-hints": ("program", set()),
    "scoreboards": ("program", set()),
    "register-ports": ("options", set()),
    "oldest-block-first": ("options", set()),
    "taken-branches": ("gpu", {"pipes.cbu.latency_cycles"}),
    "instruction-fetch": ("gpu", {"fetch.near_line_cycles", "fetch.near_line_spread_cycles", "fetch.far_line_cycles"}),
    "barrier-cycles": ("gpu", {"barrier.arrival_cycles", "barrier.release_cycles"}),
    "math-behind-barriers": ("options", set()),
    "store-rate": ("gpu", {"l1.store_bytes_per_cycle", "l1.partial_line_cycles", "l2.write_share"}),
    "address-unit": ("gpu", {"pipes.lsu.issue_interval_cycles", "mio.shared_load_interval_cycles"}),
    "memory-queue": ("gpu", {"mio.queue_entries"}),
    "shared-queue": ("gpu", {"mio.shared_entries"}),
    "request-interval": ("gpu", {"shared.request_interval_cycles"}),
    "tag-stage": ("cost", {"tag_cycles"}),
    "tag-banks": ("cost", set()),  # of what hits; no launch of 256 rows hits lines that share a tag bank
    "bank-conflicts": ("cost", {"wavefronts"}),
    "data-stage": ("gpu", {"shared.wavefronts_per_cycle", "shared.request_interval_cycles"}),
    "line-fills": ("gpu", {"l1.fill_bytes_per_cycle"}),
    "tagged-requests": ("gpu", {"l1.tagged_request_cycles"}),
    "barrier-flush": ("gpu", {"barrier.flush_cycles", "barrier.flush_store_cycles"}),
    "l1-hits": ("cost", {"l2_sectors"}),
    "lines-under-way": ("trace", set()),
    "l2-bandwidth": ("gpu", {"l2.read_bytes_per_s", "l1.miss_bytes_per_cycle"}),
    "l2-far-half": ("gpu", {"l2.far_latency_cycles"}),
    "merged-requests": ("cost", {"merged_share"}),
    "dram": ("cost", {"dram_shared", "dram_sectors"}),
    "dram-bandwidth": ("gpu", {"dram.peak_bytes_per_s"}),
    "dram-in-flight": ("cost", {"dram_shared"}),
    "tensor-clock": ("gpu", {"clock.sm_tensor_load_hz"}),
    "latency-clock": ("gpu", {"l2.fixed_latency_us", "dram.fixed_latency_us"}),
    "launch-overhead": ("gpu", {"launch.overhead_us"}),
    "block-start": ("gpu", {"launch.block_start_cycles"}),
    "block-dispatcher": ("gpu", {"launch.block_interval_cycles", "launch.dispatch_interval_us"}),
    "shared-lines": ("gpu", {"dram.shared_sooner_cycles"}),
    "slowest-line": ("gpu", {"l2.latency_deviation_cycles", "dram.latency_deviation_cycles"}),
    "distance-to-sms": ("gpu", {"l2.latency_spread_cycles", "dram.latency_spread_cycles"}),
    "queues": ("gpu", {"dram.queue_latency_cycles", "tma.queue_latency_cycles"}),
    "writes-among-reads": ("gpu", {"dram.mixed_latency_cycles"}),
    "few-sectors": ("gpu", {"l2.least_sectors"}),
    "atomics": ("gpu", {"l2.atomic_sector_us", "l2.atomic_again_us", "l2.atomic_float_again_us"}),
    "drifting-apart": ("gpu", {"tma.merged_alone"}),
    "turnaround": ("gpu", {"dram.turnaround"}),
    "partial-lines": ("gpu", {"l2.partial_line_sectors"}),
    "lane-groups": ("gpu", {"shared.group_latency_cycles"}),
    "wavefronts-of-a-warp": ("gpu", {"shared.wavefront_latency_cycles"}),
    "returned-shared-words": ("gpu", {"register_file.load_write_blocking"}),
    "loaded-registers": ("gpu", {"register_file.load_write_hold_cycles"}),
    "l2-slices": ("gpu", {"l2.slice_read_share"}),
    "dirty-lines": ("gpu", {"l2.dirty_share"}),
    "narrow-loads": ("gpu", {"l1.narrow_fill_cycles"}),
    "tile-requests": ("gpu", {"tma.load_requests_per_cycle"}),
    "memory-fences": (
        "gpu",
        {
            "memory_fence.block_cycles",
            "memory_fence.gpu_cycles",
            "memory_fence.system_cycles",
            "memory_fence.acknowledged_cycles",
        },
    ),
}


@cache
def case(name: str) -> Case:
    return next(one for one in replayable_cases() if one.gpu == "h200" and one.id == name)


@cache
def inputs(name: str) -> Inputs:
    request = launch_of(case(name))
    return Inputs.of(count(request), request)


@cache
def change_us(key: str, name: str) -> float:
    """What switching it off adds to the predicted time."""
    return BY_KEY[key].switch(inputs(name)).time_us() - time_us(name)


@cache
def time_us(name: str) -> float:
    return inputs(name).time_us()


def test_nothing_off_is_what_compare_predicts() -> None:
    timed = ablate(case(BLOCKTILE), ())
    assert timed.error == "" and timed.without_us == {}
    assert timed.time_us == predict(case(BLOCKTILE)).time_us


def test_every_mechanism_is_tested() -> None:
    assert set(TOUCHES) == set(BY_KEY) and len(BY_KEY) == len(MECHANISMS)
    assert {key for key in BY_KEY if TOUCHES[key][0] != "gpu"} == set(SWITCHES)


@pytest.mark.parametrize("key", TOUCHES)
def test_a_switch_touches_nothing_else(key: str) -> None:
    """Of a kernel with conflicts; hits in L1 have another."""
    before = inputs(COALESCED if key in ("l1-hits", "merged-requests") else HALF)
    after = BY_KEY[key].switch(before)
    field, parts = TOUCHES[key]
    assert {one.name for one in fields(Inputs) if getattr(before, one.name) is not getattr(after, one.name)} == {field}
    if field == "gpu":
        keys = before.gpu.provenance
        assert {key for key in keys if value_of(before.gpu, key) != value_of(after.gpu, key)} == parts
    if field == "cost":
        names = [one.name for one in fields(before.cost)]
        pairs = {name: (getattr(before.cost, name), getattr(after.cost, name)) for name in names}
        assert {name for name, (old, new) in pairs.items() if not np.array_equal(old, new)} == parts
        assert all(old.dtype == new.dtype for old, new in pairs.values())


@pytest.mark.parametrize("name", [BLOCKTILE, TENSOR])
def test_launch_overhead_is_all_that_leaves(name: str) -> None:
    assert change_us("launch-overhead", name) == pytest.approx(-inputs(name).gpu.launch.overhead_us, rel=1e-9)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("scoreboards", BLOCKTILE),
        ("instruction-fetch", BLOCKTILE),
        ("barrier-cycles", VECTORIZED),
        ("data-stage", BLOCKTILE),
        ("line-fills", HALF),
        ("tag-stage", BLOCKTILE),
        ("dram", BLOCKTILE),
        ("block-start", BLOCKTILE),
        ("bank-conflicts", HALF),
        ("tensor-clock", TENSOR),
        ("lane-groups", VECTORIZED),
        ("wavefronts-of-a-warp", VECTORIZED),
        ("returned-shared-words", BLOCKTILE),
        ("loaded-registers", VECTORIZED),
    ],
)
def test_a_kernel_that_pays_for_it_is_quicker_without(key: str, name: str) -> None:
    assert change_us(key, name) < 0


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("stall-counts", BLOCKTILE),
        ("register-ports", BLOCKTILE),
        ("lines-under-way", COALESCED),
        ("oldest-block-first", COALESCED),
        ("taken-branches", BLOCKTILE),
        ("address-unit", HALF),
        ("memory-queue", BLOCKTILE),
        ("shared-queue", BLOCKTILE),
        ("request-interval", COALESCED),
        ("l1-hits", COALESCED),
        ("l2-bandwidth", COALESCED),
        ("dram-bandwidth", COALESCED),
    ],
)
def test_a_kernel_that_meets_it_takes_another_time(key: str, name: str) -> None:
    """Quicker or not: where warps issue earlier, they may meet in another order."""
    assert abs(change_us(key, name)) > 1e-6 * time_us(name)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("tensor-clock", BLOCKTILE),  # has no tensor-core instruction
        ("bank-conflicts", BLOCKTILE),  # has none
        ("tag-stage", COALESCED),  # its requests are of one line
        ("tag-banks", BLOCKTILE),
        ("barrier-cycles", COALESCED),  # has no barrier
    ],
)
def test_a_kernel_that_never_meets_it_takes_the_same(key: str, name: str) -> None:
    assert change_us(key, name) == 0


def test_costs_without_a_mechanism() -> None:
    given = inputs(HALF)
    shapes, cost = given.shapes, given.cost
    shared = shapes.shared[shapes.of_record]
    lines, sectors = shapes.coalesced.lines[shapes.of_record], shapes.coalesced.sectors[shapes.of_record]

    def without(key: str) -> Inputs:
        return BY_KEY[key].switch(given)

    assert cost.tag_cycles.max() > 1
    assert without("tag-stage").cost.tag_cycles.max() == 1
    evenly = without("tag-banks").cost.tag_cycles
    hits = np.where(shared, 0, np.ceil(lines / 4))  # four lines a cycle
    assert np.array_equal(evenly, np.where(~shared & (cost.l2_sectors > 0), cost.tag_cycles, hits))
    assert (evenly <= cost.tag_cycles).all()
    fewer = cost.wavefronts.astype(int) - without("bank-conflicts").cost.wavefronts
    assert (
        fewer[shared].sum() == (cost.wavefronts.astype(int) - shapes.least[shapes.of_record])[shared].clip(0).sum() > 0
    )
    assert not fewer[~shared].any()
    missed = without("l1-hits").cost.l2_sectors
    assert np.array_equal(missed[~shared], sectors[~shared]) and not missed[shared].any()
    assert not without("dram").cost.dram_sectors.any() and not without("dram-in-flight").cost.dram_shared.any()


def test_no_two_records_share_a_line() -> None:
    base = BY_KEY["lines-under-way"].switch(inputs(HALF)).trace.record_base
    assert len(np.unique(base >> np.uint64(7))) == len(base) == len(inputs(HALF).trace.record_base)


def test_control_bits_without_a_mechanism() -> None:
    def controls(key: str) -> list:
        return [one.control for one in BY_KEY[key].switch(inputs(HALF)).program.instructions]

    before = [one.control for one in inputs(HALF).program.instructions]
    assert any(one.yield_hint for one in before)
    assert controls("yield-hints") == [replace(one, yield_hint=False) for one in before]
    assert controls("scoreboards") == [replace(one, wait_mask=0) for one in before]
    assert controls("stall-counts") == [replace(one, stall_cycles=1) for one in before]
