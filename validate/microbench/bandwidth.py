"""Measures bytes per cycle from L1 and L2 into one SM, and bytes per second from L2 and DRAM into all SMs."""

from __future__ import annotations

import numpy as np

from .bench import Bench, Found, Raw
from .ptx import fold, kernel

UNROLL = 8
THREADS = 1024
_BYTES = 16  # bytes that a thread loads at once


def kernels(arch: str) -> dict[str, str]:
    """Return kernels in which every thread loads 16 bytes again and again and combines what it has loaded.

    A load goes to the address data + (16 * (thread + i * threads) & (1024 * other - 1)), where `thread` is the thread's
    number in the grid, `i` counts its loads, and `threads` is the number of threads in the grid. Together, the threads
    read a footprint of `other` KiB.
    """
    found = {}
    for name, cache in (("l1", ""), ("l2", ".cg")):
        before = f"""mov.u32 %r0, %nctaid.x;
    mul.lo.u32 %r0, %r0, %threads;
    mul.wide.u32 %d3, %r0, {_BYTES};
    mad.lo.u32 %r1, %block, %threads, %thread;
    mul.wide.u32 %d2, %r1, {_BYTES};
    cvt.u64.u32 %d1, %other;
    shl.b64 %d1, %d1, 10;
    sub.u64 %d1, %d1, 1;"""
        lines = []
        for i in range(UNROLL):
            first = 8 + 4 * i
            lines += [
                "and.b64 %d4, %d2, %d1;",
                "add.u64 %d4, %d4, %data;",
                f"ld.global{cache}.v4.u32 {{%r{first}, %r{first + 1}, %r{first + 2}, %r{first + 3}}}, [%d4];",
                "add.u64 %d2, %d2, %d3;",
            ]
        lines += [fold([f"%r{8 + j}" for j in range(4 * UNROLL)])]
        # The sums of two lanes are combined, so that the compiler can leave out no lane's loads.
        after = (
            "shfl.sync.bfly.b32 %r1, %sink, 1, 31, -1; xor.b32 %sink, %sink, %r1; setp.eq.u32 %p2, %sink, 0x5bd1e995;"
        )
        after += "@%p2 st.global.u32 [%data], %sink;"
        found[f"read_{name}"] = kernel(f"read_{name}", before, "\n".join(lines), after)
    return found


def run(bench: Bench, arch: str) -> Raw:
    """Measure how long it takes to read a number of bytes, in cycles on one SM or in microseconds on all SMs.

    The memory that the threads read again and again is a power of two, and is passed to the kernels in KiB.
    """
    raw: Raw = {}
    small = bench.upload(np.zeros(1 << 20, np.uint64))  # 8 MiB
    for name, entry, kib in (("l1", "read_l1", 16), ("l2_one_sm", "read_l2", 2048)):
        rounds = 64
        warps = bench.launch(entry, 1, THREADS, small, rounds, kib)
        raw[name] = {"bytes": rounds * UNROLL * THREADS * _BYTES, "cycles": warps.cycles}
    l2_kib = 1 << int(np.log2(bench.l2_bytes / 4 / 1024))
    blocks = 2 * bench.sms
    rounds = max(1, 64 * (l2_kib << 10) // (blocks * THREADS * UNROLL * _BYTES))
    memory = bench.upload(np.zeros(l2_kib << 7, np.uint64))
    raw["l2"] = _all(bench, blocks, memory, rounds, l2_kib)
    dram_kib = 1 << int(np.log2(min(bench.memory_bytes / 4, 4 << 30) / 1024))
    memory = bench.upload(np.zeros(dram_kib << 7, np.uint64))
    rounds = max(1, (dram_kib << 10) // (blocks * THREADS * UNROLL * _BYTES))
    raw["dram"] = _all(bench, blocks, memory, rounds, dram_kib)
    raw["dram_peak_bytes_per_s"] = bench.dram_peak_bytes_per_s
    return raw


def _all(bench: Bench, blocks: int, memory: object, rounds: int, kib: int) -> dict[str, float]:
    us = bench.time_us("read_l2", blocks, THREADS, memory, rounds, kib)
    return {"bytes": rounds * UNROLL * blocks * THREADS * _BYTES, "us": us, "footprint_kib": kib}


def values(raw: Raw) -> list[Found]:
    def rate(name: str) -> float:
        return float(raw[name]["bytes"] / raw[name]["us"] * 1e6)

    def a_cycle(name: str) -> float:
        return float(raw[name]["bytes"] / raw[name]["cycles"])

    l2_kib, dram_kib = raw["l2"]["footprint_kib"], raw["dram"]["footprint_kib"]
    found = [
        Found("", a_cycle("l1"), "L1 hits, bytes a cycle and SM"),
        Found("l1.miss_bytes_per_cycle", a_cycle("l2_one_sm"), "one SM reads 2 MiB from L2"),
        Found("l2.read_bytes_per_s", rate("l2"), f"all SMs read {l2_kib >> 10} MiB again and again"),
        Found("", rate("dram"), f"DRAM, bytes a second: all SMs read {dram_kib >> 10} MiB once"),
    ]
    peak = raw.get("dram_peak_bytes_per_s")
    if peak:
        share = rate("dram") / peak
        found.append(Found("dram.achievable_fraction", min(1.0, share), f"all SMs read {dram_kib >> 10} MiB once"))
    return found
