"""Streams through DRAM and L2, and the dispatch of blocks, on an H200: numbers of its preset read off the record."""

import json
from pathlib import Path

import pytest
from timed import timing

from gemmsim.gpu.load import load_gpu
from gemmsim.sm.spec import Rates

H200 = load_gpu("h200")
MEASURED = json.loads(Path(__file__).with_name("h200_streams.json").read_text(encoding="utf-8"))
SOURCE = Path(__file__).parents[1] / "sources" / "streams.cu"
SMS, CLOCK_HZ, OVERHEAD_US = 132, 1.98e9, H200.launch.overhead_us
STREAMS = {(kernel, tuple(sizes)): us for kernel, _, block, sizes, _, us in MEASURED["streams"] if block[0] == 256}
MIB = 1 << 20


@pytest.mark.parametrize("threads", [32, 128, 256, 512])
def test_blocks_leave_the_dispatcher_at_its_interval(threads: int) -> None:
    (us,) = (us for t, blocks, us in MEASURED["blocks"] if (t, blocks) == (threads, 131072))
    assert 131072 * H200.launch.dispatch_interval_us + OVERHEAD_US == pytest.approx(us, rel=0.01)


def test_it_does_not_matter_how_many_sms_take_them_until_each_is_too_slow() -> None:
    """65,536 empty blocks of 256 threads: within 1 % on 132, 99 and 66 SMs; on 33 and 16 an SM needs 45 cycles each."""
    us = {
        SMS - held: us for held, kernel, _, threads, us in MEASURED["occupied"] if (kernel, threads) == ("empty", 256)
    }
    assert us[99] == pytest.approx(us[SMS], rel=0.01) and us[66] == pytest.approx(us[SMS], rel=0.01)
    for sms in (33, 16):
        cycles = Rates.share(H200, sms, CLOCK_HZ).block_interval_cycles
        assert cycles == 45
        assert 65536 / sms * cycles / CLOCK_HZ * 1e6 == pytest.approx(us[sms], rel=0.08)


@pytest.mark.parametrize(
    ("kernel", "read", "written"), [("copy4", 1, 1), ("add4", 2, 1), ("read4", 1, 0), ("fill4", 0, 1)]
)
def test_dram_moves_reads_and_writes_at_the_rates_of_the_preset(kernel: str, read: int, written: int) -> None:
    """From 64 to 256 MiB an array, so that what each launch takes to begin and to end does not count."""
    sizes = [next(us for (k, s), us in STREAMS.items() if k == kernel and s[0] == mib * MIB) for mib in (64, 256)]
    moved = 192 * MIB * (read + written + min(read, written) * H200.dram.turnaround)
    us = moved / (H200.dram.peak_bytes_per_s * H200.dram.achievable_fraction) * 1e6
    assert us == pytest.approx(sizes[1] - sizes[0], rel=0.04)


def test_loads_wait_longer_as_dram_fills_up() -> None:
    """One load of 16 bytes a thread, at 27 and 51 % of DRAM's rate, beside those at 14 %.

    The SM's own warps ask in bursts: without a queue, they were simulated to take 13 and 43 cycles longer.
    """
    found = {}
    for where, _, threads, blocks, count, passes, us in MEASURED["flight"]:
        if where == "dram" and threads * blocks <= 1024:
            loads = count * passes / (SMS * threads * blocks)
            found[threads * blocks] = (us - OVERHEAD_US) / loads * CLOCK_HZ * 1e-6, 16 * count * passes / (us * 1e-6)
    base, peak = found[128][0], H200.dram.peak_bytes_per_s * H200.dram.achievable_fraction
    for threads, bursts in ((256, 13), (512, 43)):
        cycles, rate = found[threads]
        queue = H200.dram.queue_latency_cycles * rate / (peak - rate)
        assert base + bursts + queue == pytest.approx(cycles, abs=25)


@pytest.mark.parametrize(("kernel", "mib", "least", "most"), [("copy4x4", 16, -18, -5), ("readloop4", 64, -4, 4)])
def test_whole_launches(kernel: str, mib: int, least: float, most: float) -> None:
    """Copies of tens of megabytes come out 5 to 16 % too fast: deviation 44."""
    launch = next(row for row in MEASURED["streams"] if row[0] == kernel and row[3][0] == mib * MIB)
    _, grid, block, sizes, n, us = launch
    args = [*(f"f32[{max(size, 4) // 4}]" for size in sizes), f"i32={n}"]
    found = timing(SOURCE, entry=kernel, grid=tuple(grid), block=tuple(block), args=args, gpu="h200")
    assert least < 100 * (found.duration_us / us - 1) < most
