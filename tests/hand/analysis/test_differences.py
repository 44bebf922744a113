"""Why one launch is faster than another: each rule by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from launch_summary_factory import BASE, rung, uses

from gemmsim.analysis.findings import Bottleneck, Verification
from gemmsim.analysis.studies.comparison import Skipped, compare_launches
from gemmsim.analysis.studies.differences import Cause, Quantity, causes
from gemmsim.analysis.studies.launch_summary import LaunchSummary, SpaceTraffic, Use

FAST = {"time_us": 502.0, "kernel_us": 500.0}


def first(below: LaunchSummary, above: LaunchSummary) -> Cause:
    return causes(below, above)[0]


def test_fewer_conflicts() -> None:
    """79 -> 35 M wavefronts for as many requests; 800 - 350 = 450 us of a stage that was 80 % busy."""
    shared = BASE.spaces | {"shared": SpaceTraffic(7e7, 0, 3.5e7, 0, 0)}
    cause = first(BASE, rung(**FAST, spaces=shared, uses=uses(data_stage=(70.0, 350.0, 3.6e7))))
    assert cause.rule == "l1_data" and cause.weight_us == pytest.approx(450 * 0.8)
    assert cause.quantity == Quantity("shared wavefronts", "", 7.9e7, 3.5e7)
    assert cause.detail == Quantity("wavefronts a request", "ratio", 7.9e7 / 7e7, 0.5)


def test_a_slower_kernel_is_explained_from_its_own_limit() -> None:
    """The same pair the other way round: before and after change places, the weight does not."""
    shared = BASE.spaces | {"shared": SpaceTraffic(7e7, 0, 3.5e7, 0, 0)}
    fast = rung(**FAST, spaces=shared, uses=uses(data_stage=(70.0, 350.0, 3.6e7)))
    up, down = first(BASE, fast), first(fast, BASE)
    assert down.weight_us == up.weight_us
    assert (down.quantity.before, down.quantity.after) == (up.quantity.after, up.quantity.before)


def test_coalescing_shows_as_sectors_a_request() -> None:
    """32 sectors a request become 4; the requests stay."""
    slow = rung(spaces=BASE.spaces | {"global": SpaceTraffic(1e6, 3.2e7, 3.2e7, 0, 1e6), "shared": SpaceTraffic()})
    fast = rung(
        **FAST,
        spaces=BASE.spaces | {"global": SpaceTraffic(1e6, 4e6, 1e6, 0, 1e6), "shared": SpaceTraffic()},
        uses=uses(data_stage=(20.0, 100.0, 1e6)),
    )
    cause = first(slow, fast)
    assert cause.quantity == Quantity("global wavefronts", "", 3.2e7, 1e6)
    assert cause.detail == Quantity("sectors a request", "ratio", 32.0, 4.0)


def test_fewer_instructions_name_the_kind() -> None:
    slow = rung(uses=uses(issue=(90.0, 900.0, 4e6)))
    fast = rung(
        **FAST, uses=uses(issue=(80.0, 400.0, 2.2e6)), warp_instructions=2.2e6,
        kinds={"multiply-add": 2e6, "integer and address": 2e5},
    )  # fmt: skip
    cause = first(slow, fast)
    assert (cause.rule, cause.quantity.after) == ("issue", 2.2e6)
    assert cause.detail == Quantity("integer and address", "", 2e6, 2e5)


def test_a_pipe() -> None:
    slow, fast = rung(uses=uses(alu=(90.0, 900.0, 2e6))), rung(**FAST, uses=uses(alu=(50.0, 250.0, 1e6)))
    assert first(slow, fast).quantity == Quantity("alu pipe instructions", "", 2e6, 1e6)


def test_l2_traffic_by_requests_or_by_hits_in_l1() -> None:
    """1 M of 4 M sectors go to L2, then 0.4 M of 4 M; or 0.4 M of 1.6 M."""
    slow = rung(uses=uses(l2=(90.0, 900.0, 1e6)))
    used = uses(l2=(70.0, 350.0, 4e5))
    hits = rung(**FAST, uses=used, spaces=BASE.spaces | {"global": SpaceTraffic(1e6, 4e6, 1e6, 0, 4e5)})
    fewer = rung(**FAST, uses=used, spaces=BASE.spaces | {"global": SpaceTraffic(4e5, 1.6e6, 4e5, 0, 4e5)})
    assert first(slow, hits).detail == Quantity("of those sent on", "%", 25.0, 10.0)
    assert first(slow, fewer).detail == Quantity("sectors asked of L1", "", 4e6, 1.6e6)


def test_dram_traffic_in_bytes() -> None:
    slow, fast = (
        rung(uses=uses(dram=(90.0, 900.0, 1e5))),
        rung(**FAST, dram_sectors=5e4, uses=uses(dram=(90, 450, 5e4))),
    )
    cause = first(slow, fast)
    assert cause.quantity == Quantity("DRAM bytes", "byte", 3.2e6, 1.6e6)
    assert cause.detail == Quantity("of those sent on", "%", 10.0, 5.0)


def test_waiting_counts_for_the_time_in_which_no_unit_was_busy() -> None:
    """The busiest unit works 40 % of the time: 400 us less of barriers weigh 240."""
    slow = rung(uses=uses(issue=(40.0, 400.0, 4e6)))
    fast = rung(**FAST, uses=uses(issue=(80.0, 400.0, 4e6)), waits_us={"selected": 300.0, "barrier": 200.0})
    cause = first(slow, fast)
    assert cause.quantity == Quantity("time in barrier stalls", "us", 600.0, 200.0)
    assert cause.weight_us == pytest.approx(0.6 * 400)


def test_a_unit_far_from_the_busiest_explains_nothing() -> None:
    """The ALU is spared all of its 200 us, but it was busy for 20 % where the data stage was for 80."""
    fast = rung(**FAST, uses=tuple(use for use in BASE.uses if use.unit != "alu pipe"))
    assert "pipe" not in [cause.rule for cause in causes(BASE, fast)]


def test_more_resident_warps_where_waiting_was_the_matter() -> None:
    slow = rung(uses=uses(issue=(20.0, 200.0, 4e6)), warps=16.0, waits_us={"selected": 1000.0})
    fast = rung(**FAST, uses=uses(issue=(40.0, 200.0, 4e6)), warps=32.0, waits_us={"selected": 500.0})
    cause = first(slow, fast)
    assert cause.quantity == Quantity("active warps an SM", "ratio", 16.0, 32.0)
    assert cause.weight_us == pytest.approx(1000 * 0.5 * 0.8)


def test_idle_sms_and_the_last_wave() -> None:
    """50 of 100 SMs have a block; 250 blocks on 100 SMs fill 250 of 300 places."""
    small = rung(blocks=50, waves=0.25)
    assert first(small, rung(**FAST)).quantity == Quantity("SM time with a block to run", "%", 50.0, 100.0)
    tail = rung(blocks=250, waves=1.25, uses=uses(issue=(10.0, 100.0, 4e6)))
    full = rung(time_us=862.0, kernel_us=860.0, uses=uses(issue=(12.0, 100.0, 4e6)))
    assert first(tail, full).weight_us == pytest.approx(1000 / 6)


def test_a_launch_of_one_wave_may_share_its_work_out_itself() -> None:
    persistent = rung(**FAST, blocks=100, waves=0.5)
    assert "idle_sms" not in [cause.rule for cause in causes(rung(blocks=250, waves=1.25), persistent)]


def test_another_gpu_with_a_faster_unit() -> None:
    """The same 80 M wavefronts at 100,000 and at 200,000 a us."""
    other = rung(**FAST, gpu="h200", uses=uses(data_stage=(80.0, 400.0, 8e7)))
    assert first(BASE, other).quantity == Quantity("L1/shared data stage, wavefronts a us", "/us", 1e5, 2e5)


def test_a_quantity_that_stayed_is_no_cause() -> None:
    """The lsu pipe of the same GPU took half the time for the same wavefronts: its cause is elsewhere."""
    slow = rung(uses=(Use("lsu pipe", 80.0, 800.0, 1e6), Use("issue slots", 30.0, 300.0, 4e6)))
    fast = rung(**FAST, uses=(Use("lsu pipe", 80.0, 400.0, 1e6), Use("issue slots", 60.0, 300.0, 4e6)))
    assert "l1_data" not in [cause.rule for cause in causes(slow, fast)]
    other = first(slow, replace(fast, gpu="h200"))
    assert other.quantity == Quantity("lsu pipe, instructions a us", "/us", 1250.0, 2500.0)


def test_as_much_work_or_more_is_no_cause() -> None:
    """A unit that fewer SMs share is busy for longer with less work; and nothing, before and after, is no number."""
    slow = rung(uses=uses(alu=(90.0, 900.0, 1e6)))
    fast = rung(**FAST, uses=uses(alu=(50.0, 250.0, 2e6)))
    assert "pipe" not in [cause.rule for cause in causes(slow, fast)]
    none = {name: SpaceTraffic() for name in ("global", "shared", "local")}
    slow = rung(spaces=none)
    fast = rung(**FAST, spaces=none, uses=uses(data_stage=(70.0, 350.0, 3.6e7)))
    assert "l1_data" not in [cause.rule for cause in causes(slow, fast)]


def test_launch_overhead() -> None:
    """1 us of a difference of 201 is below what is named; 98 of 98 is all of it."""
    assert causes(BASE, rung(time_us=801.0, kernel_us=800.0)) == ()
    cause = first(rung(time_us=1100.0), rung(time_us=1002.0))
    assert cause.quantity == Quantity("launch overhead", "us", 100.0, 2.0)


def test_equal_times_need_no_cause() -> None:
    assert causes(BASE, rung(time_us=990.0, kernel_us=988.0, warps=64.0)) == ()


def test_groups_by_dtype_and_precision_in_order() -> None:
    """Speed-ups stay within a group: the tensor-core rung between the two others does not count."""
    half = rung(name="tc", dtype="f16", precision="tensor_fp16")
    found = compare_launches((64, 64, 64), [BASE, half, rung(name="fast", **FAST)], [Skipped("x", "a100", "no")], False)
    assert [[row.launch.name for row in group.rows] for group in found.groups] == [["tiled", "fast"], ["tc"]]
    assert [row.speed_up for row in found.groups[0].rows] == [None, pytest.approx(1002 / 502)]
    assert found.skipped[0].reason == "no" and found.wrong == ()


def test_gpus_in_one_group() -> None:
    found = compare_launches((64, 64, 64), [BASE, rung(gpu="h200", arch="sm_90", **FAST)], [], True)
    assert [group.title for group in found.groups] == ["tiled, f32 operands"]


def test_wrong_results_are_named() -> None:
    bad = replace(BASE, verified=Verification(False, 1.0, "NO"), bottleneck=Bottleneck("latency", "latency: ...", 1.0))
    assert compare_launches((64, 64, 64), [bad], [], False).wrong == (bad,)
