"""Measures load latencies by pointer chase: shared memory, L1, the near and far halves of L2, and DRAM."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bench import Bench, Found, Raw, address, cycles_per_step
from .ptx import UNROLLS, fold, kernel, unrolled

LINE_WORDS = 16  # 64-bit words in a cache line
L1_BYTES = 8 << 10  # memory that a chase through L1 covers
L2_BYTES = 4 << 20  # memory that a chase through L2 covers
VISITED = 4096  # lines that a chase through L2 or DRAM visits; one through L1 visits all of its memory
WIDTHS = {32: 1, 64: 2, 128: 4}
_RING = 16  # elements of the ring in shared memory


def kernels(arch: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for bits, words in WIDTHS.items():
        found |= _shared(bits, words)
    # Plain loads are cached in L1, loads with .cg in L2 only.
    found |= _global("chase_l1_64", "ld.global.u64 %d0, [%d0];") | _global(
        "chase_l2_64", "ld.global.cg.u64 %d0, [%d0];"
    )
    found |= unrolled(
        "chase_l1_128",
        "mov.u64 %d0, %data;",
        lambda i: "ld.global.v2.u64 {%d0, %d1}, [%d0]; xor.b64 %d2, %d2, %d1;",
        "cvt.u32.u64 %r1, %d2;" + _last() + fold(["%r1"]),
    )
    # Each load is timed by itself: a store to shared memory makes the second clock wait for it.
    found["each_cg"] = kernel(
        "each_cg",
        "mov.u64 %d0, %data; mov.u64 %d4, %out; add.u64 %d4, %d4, 32;",
        """mov.u64 %d1, %clock64;
    ld.global.cg.u64 %d0, [%d0];
    st.volatile.shared.u64 [area], %d0;
    mov.u64 %d2, %clock64;
    sub.u64 %d3, %d2, %d1;
    st.global.u64 [%d4], %d3;
    add.u64 %d4, %d4, 8;""",
        _last(),
    )
    return found


def _global(entry: str, step: str) -> dict[str, str]:
    return unrolled(entry, "mov.u64 %d0, %data;", lambda i: step, _last())


def _last() -> str:
    return "cvt.u32.u64 %r0, %d0;" + fold(["%r0"])


def _shared(bits: int, words: int) -> dict[str, str]:
    """Return the kernels that chase through a ring of `_RING` elements in shared memory.

    Each element holds the address of the next one in its first word.
    """
    size = bits // 8
    lines = ["mov.u32 %r10, area;"]
    for i in range(_RING):
        lines.append(f"add.u32 %r11, %r10, {(i + 1) % _RING * size}; st.shared.u32 [area+{i * size}], %r11;")
        lines += [f"st.shared.u32 [area+{i * size + 4 * word}], %other;" for word in range(1, words)]
    lines.append("mov.u32 %r0, %r10; mov.u32 %r9, 0;")
    registers = ", ".join(f"%r{i}" for i in range(words))
    vector = "" if words == 1 else f".v{words}"
    rest = "".join(f" xor.b32 %r9, %r9, %r{i};" for i in range(1, words))
    step = f"ld.shared{vector}.u32 {registers if words == 1 else '{' + registers + '}'}, [%r0];{rest}"
    last = fold(["%r0", "%r9"])
    return unrolled(f"chase_shared_{bits}", "\n".join(lines), lambda i: step, last, shared_bytes=_RING * size)


def ring(base: int, size_bytes: int, visited: int, seed: int = 0) -> NDArray[np.uint64]:
    """Return the contents, as 64-bit words, of `size_bytes` of memory at the address `base` for a pointer chase.

    The chase visits `visited` cache lines in random order, spread over the memory; each holds the address of the next.
    It begins at the first line of the memory.
    """
    lines = size_bytes // (8 * LINE_WORDS)
    random = np.random.default_rng(seed)
    rest = (
        1 + random.permutation(lines - 1)[: min(visited, lines) - 1]
        if lines < 1 << 22
        else _some(random, lines, visited)
    )
    order = np.concatenate([[0], rest]).astype(np.uint64)
    memory = np.zeros(size_bytes // 8, np.uint64)
    places = order * np.uint64(LINE_WORDS)
    memory[places] = np.uint64(base) + np.roll(places, -1) * np.uint64(8)
    return memory


def _some(random: np.random.Generator, lines: int, visited: int) -> NDArray[np.int64]:
    found = np.unique(random.integers(1, lines, 2 * visited))
    return random.permutation(found)[: visited - 1]


def run(bench: Bench, arch: str) -> Raw:
    """Measure the cycles per load of chases, as means for shared memory, L1 and L2, and each load in L2 and DRAM."""
    raw: Raw = {}
    for bits in WIDTHS:
        raw[f"shared_{bits}"] = cycles_per_step(bench, f"chase_shared_{bits}", 32, None, 64)
    # All lanes chase along the same addresses, so a request is one sector.
    for bits in (64, 128):
        raw[f"l1_{bits}"] = cycles_per_step(bench, f"chase_l1_{bits}", 32, _on_device(bench, L1_BYTES, VISITED), 64)
    raw["l2_mean"] = cycles_per_step(
        bench, "chase_l2_64", 32, _on_device(bench, L2_BYTES, VISITED), VISITED // UNROLLS[0]
    )
    raw["l2_each"] = _each(bench, _on_device(bench, L2_BYTES, VISITED), VISITED)
    size = min(1 << 30, bench.memory_bytes // 4) & ~0xFFFF
    raw["dram_bytes"] = size
    # Each line is visited once, as a second visit would find it in L2.
    raw["dram_each"] = _each(bench, _on_device(bench, size, VISITED), VISITED - 1, warm=False)
    return raw


def _on_device(bench: Bench, size_bytes: int, visited: int) -> Any:
    array = bench.upload(np.zeros(size_bytes // 8, np.uint64))
    array.copy_to_device(ring(address(array), size_bytes, visited))
    return array


def _each(bench: Bench, data: Any, count: int, warm: bool = True) -> list[int]:
    """Return the cycles of each load of a chase; they include reading the clock and a store."""
    if warm:
        bench.launch_words("each_cg", data, count, 4 + count)
    words = bench.launch_words("each_cg", data, count, 4 + count)
    return [int(word) for word in words[4:]]


def near_and_far(each: list[int]) -> tuple[float, float]:
    """Return the centres of the two clusters of latencies in `each`; both are equal where there is only one.

    Outliers such as TLB misses are left out.
    """
    values = np.sort(np.asarray(each, float))
    values = values[values <= np.median(values) * 1.5]
    low, high = np.percentile(values, [10, 90])
    for _ in range(50):
        near = values < (low + high) / 2
        if near.all() or not near.any():
            return float(values.mean()), float(values.mean())
        low, high = values[near].mean(), values[~near].mean()
    return float(low), float(high)


def values(raw: Raw) -> list[Found]:
    """Return the values of a preset.

    Where each load is timed by itself, reading the clock and a store always add the same time. This added time is the
    mean of the loads timed by themselves less the mean of the chase, and is subtracted.
    """
    shared = [raw[f"shared_{bits}"] for bits in WIDTHS]
    # A 32-bit pointer needs arithmetic on a GPU with 64-bit addresses, so its latency is taken to be the 64-bit one.
    l1 = [raw["l1_64"], raw["l1_64"], raw["l1_128"]]
    each = raw["l2_each"]
    typical = [value for value in each if value <= 1.5 * float(np.median(each))]
    extra = float(np.mean(typical)) - raw["l2_mean"]
    near, far = near_and_far(each)
    dram = float(np.median(raw["dram_each"])) - extra
    return [
        Found("shared.load_latency_cycles", shared, "pointer chase, 32, 64 and 128 bits"),
        Found("l1.hit_latency_cycles", l1, "pointer chase, 64 and 128 bits; 32 bits taken like 64"),
        Found("l2.hit_latency_cycles", near - extra, "pointer chase over 4 MiB, the faster of two clusters"),
        Found("l2.far_latency_cycles", far - extra, "pointer chase over 4 MiB, the slower of two clusters"),
        Found("dram.latency_cycles", dram, f"pointer chase over {raw['dram_bytes'] >> 20} MiB, median"),
    ]
