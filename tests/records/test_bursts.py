"""Loads of up to 64 KiB an SM at once, from L2 and from DRAM, on an H200: `tests/sources/bursts.cu`, predicted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from timed import timing

from gemmsim.gpu.load import load_gpu

HERE = Path(__file__).parent
RECORD: dict[str, Any] = json.loads((HERE / "h200_bursts.json").read_text(encoding="utf-8"))
SOURCE = (HERE.parent / "sources" / "bursts.cu").read_text(encoding="utf-8")
H200 = load_gpu("h200")
SMS = 132
# Threads, KiB, from L2 or DRAM; a thread makes at most four loads.
LOADS = [(256, 4, "l2"), (256, 8, "l2"), (256, 16, "l2"), (512, 32, "l2"), (1024, 64, "l2"),
         (256, 8, "dram"), (256, 16, "dram"), (512, 32, "dram")]  # fmt: skip


def kernel(threads: int, kib: int) -> str:
    return f"bursts<{kib * 64 // threads},{threads}>"


INSTANCES = tuple({kernel(threads, kib) for threads, kib, _ in LOADS})


def row(threads: int, kib: int, origin: str, work: int = 0, few: bool = False) -> dict[str, float]:
    [found] = [one for one in RECORD["rows"] if one[:6] == [threads, kib, 1, origin, work, few]]
    return dict(zip(("step", "waits", "at_first", "later"), (found[7], found[9], found[10], found[11]), strict=True))


def predicted_step(threads: int, kib: int, origin: str) -> float:
    """Return the cycles a step of blocks that load again at once."""
    loads = kib * 64 // threads
    span = loads * threads * (2 if origin == "l2" else 64)  # none of DRAM's comes again
    steps, us = (20, 40) if origin == "l2" else (30, 60), []  # twice and four times as many take as long each
    for number in steps:
        found = timing(
            SOURCE,
            file="bursts.cu",
            instances=INSTANCES,
            entry=kernel(threads, kib),
            grid=SMS,
            block=threads,
            shared=120 << 10,
            args=(f"f32[{SMS * span * 4}]=0", f"i64={span}", f"i32={number}", "i32=0", f"f32[{SMS * threads}]=0",
                  f"i64[{SMS * 3}]=0"),
            gpu=H200,
            caches="warm" if origin == "l2" else "cold",
        )  # fmt: skip
        us.append(found.duration_us)
    return (us[1] - us[0]) * 1e-6 * H200.clock.sm_load_hz / (steps[1] - steps[0])


BETWEEN = (256, 16, "dram")


@pytest.mark.parametrize(
    "load", [pytest.param(load, marks=pytest.mark.slow if load == BETWEEN else (), id=str(load)) for load in LOADS]
)
def test_loads_over_and_over(load: tuple[int, int, str]) -> None:
    """Before SMs got more than their share at a time, those from DRAM took 14 to 34 % too long."""
    assert predicted_step(*load) == pytest.approx(row(*load)["step"], rel=0.115)


@pytest.mark.parametrize(("threads", "kib"), [(512, 32), (1024, 48), (1024, 64)])
def test_an_sm_gets_more_than_its_share_while_others_compute(threads: int, kib: int) -> None:
    """All SMs together wait no longer than few, where they compute in between; at first they wait for each other."""
    share = kib * 1024 / (H200.l2.read_bytes_per_s / SMS / H200.clock.sm_load_hz)
    computing, few = row(threads, kib, "l2", 1000), row(threads, kib, "l2", 1000, few=True)
    assert computing["later"] == pytest.approx(few["later"], rel=0.03)
    assert computing["later"] < 0.6 * (H200.l2.hit_latency_cycles + share)
    in_step = 75 * (computing["at_first"] - computing["later"]) / (H200.l2.hit_latency_cycles + share - few["later"])
    assert 0.5 < in_step < 3
    assert row(threads, kib, "l2")["waits"] > 1.1 * few["waits"]  # where nobody computes, L2 is full
