"""Measures the wavefronts of shared loads and stores for each lane map, and of global loads for each stride.

Many equal requests in a row give cycles per request. The cycles of a request with 32-way conflicts say how many
wavefronts the data stage takes in a cycle; the wavefronts of any request are its cycles times that number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmsim.support.warp import WARP_LANES

from .bench import Bench, Found, Raw, cycles_per_step
from .maps import REGION_BYTES, lane_maps
from .ptx import fold, unrolled

WIDTHS = {32: 1, 64: 2, 128: 4}
WARPS = 16
ROUNDS = 16
GLOBAL_STRIDES = (1, 2, 3, 4, 8, 16, 32, 33)  # in units of the access's size
_AHEAD = 8  # loads that a warp has under way at once
# The table at %data has one word for each lane: the lane's byte offset into the array.
_LANE_OFFSET = "mul.wide.u32 %d0, %lane, 4; add.u64 %d0, %d0, %data; ld.global.u32 %r0, [%d0];"
# Global loads read the memory behind the table, which takes 128 bytes.
_PLACE = "cvt.u64.u32 %d1, %r0; add.u64 %d1, %d1, %data; add.u64 %d1, %d1, 128;"


def kernels(arch: str, timed: bool = True) -> dict[str, str]:
    found: dict[str, str] = {}
    for bits, words in WIDTHS.items():
        registers = [[f"%r{8 + 4 * i + j}" for j in range(words)] for i in range(_AHEAD)]
        clear = "\n".join(f"mov.u32 {name}, %lane;" for group in registers for name in group)
        vector = "" if words == 1 else f".v{words}"
        everything = fold([name for group in registers for name in group])
        shared = f"{clear}\n{_LANE_OFFSET}\nmov.u32 %r1, area; add.u32 %r0, %r0, %r1;"

        def load(i: int, vector: str = vector, groups: list[list[str]] = registers) -> str:
            return f"ld.volatile.shared{vector}.u32 {_braced(groups[i % _AHEAD])}, [%r0];{_use(groups[i % _AHEAD], i)}"

        def save(i: int, vector: str = vector, groups: list[list[str]] = registers) -> str:
            return f"st.volatile.shared{vector}.u32 [%r0], {_braced(groups[i % _AHEAD])};"

        # Neighbouring loads go to different lines, or the compiler would keep one in a register.
        def read(i: int, vector: str = vector, groups: list[list[str]] = registers) -> str:
            group = groups[i % _AHEAD]
            return f"ld.global{vector}.u32 {_braced(group)}, [%d1+{128 * i}];{_use(group, i)}"

        sums = [f"%r{2 + j}" for j in range(words)]
        zero = "".join(f"mov.u32 {name}, 0;" for name in sums)
        found |= unrolled(f"lds_{bits}", shared + zero, load, fold(sums), REGION_BYTES, timed)
        found |= unrolled(f"sts_{bits}", shared, save, everything, REGION_BYTES, timed)
        place = "\n".join([clear, zero, _LANE_OFFSET, _PLACE])
        found |= unrolled(f"ldg_{bits}", place, read, fold(sums), 0, timed)
    return found


def _braced(registers: list[str]) -> str:
    return registers[0] if len(registers) == 1 else "{" + ", ".join(registers) + "}"


def _use(group: list[str], i: int) -> str:
    """Return PTX that combines what the i-th step loaded, so that the compiler cannot leave the loads out.

    It has a barrier of the warp. Without it, the compiler moves so many loads ahead that they need too many registers.
    """
    used = "".join(f" xor.b32 %r{2 + j}, %r{2 + j}, {name};" for j, name in enumerate(group))
    return used + (" bar.warp.sync -1;" if i % _AHEAD == _AHEAD - 1 else "")


def run(bench: Bench, arch: str) -> Raw:
    """Measure {"lds_32": {map: cycles of a request on an SM}, ..., "ldg_32": {stride: cycles}}."""
    raw: Raw = {}
    for bits in WIDTHS:
        size = bits // 8
        for kind in ("lds", "sts"):
            raw[f"{kind}_{bits}"] = {
                name: _cycles(bench, f"{kind}_{bits}", bench.upload(offsets.astype(np.uint32)))
                for name, offsets in lane_maps(size).items()
            }
        raw[f"ldg_{bits}"] = {
            str(stride): _cycles(bench, f"ldg_{bits}", _table(bench, stride * size)) for stride in GLOBAL_STRIDES
        }
    return raw


def _table(bench: Bench, stride_bytes: int) -> Any:
    """Return a device array of the lanes' offsets, and behind them the memory that the loads go to."""
    memory = np.zeros((128 + 128 * 96 + WARP_LANES * 33 * 16) // 4 + 64, np.uint32)
    memory[:WARP_LANES] = stride_bytes * np.arange(WARP_LANES)
    return bench.upload(memory)


def _cycles(bench: Bench, entry: str, data: Any) -> float:
    return cycles_per_step(bench, entry, WARP_LANES * WARPS, data, ROUNDS) / WARPS


def values(raw: Raw) -> list[Found]:
    """Return two rates of the data stage.

    The wavefronts per cycle come from 32-way conflicts, where nothing else limits the rate. The cycles per request come
    from requests of one wavefront.
    """
    conflict, single = raw["lds_32"]["stride_32"], raw["lds_32"]["stride_1"]
    return [
        Found("shared.wavefronts_per_cycle", 32 / conflict, "32-bit loads with 32-way conflicts"),
        Found("shared.request_interval_cycles", single, "32-bit loads without conflicts"),
    ]


def against_model(raw: Raw) -> list[tuple[str, str, float, int]]:
    """Return (kind, map, measured wavefronts, wavefronts by gemmsim.memory.requests.banks) for each shared access."""
    from gemmsim.memory.requests.banks import wavefronts

    rate = 32 / raw["lds_32"]["stride_32"]
    rows = []
    active = np.ones((1, WARP_LANES), bool)
    for bits in WIDTHS:
        maps = lane_maps(bits // 8)
        for kind in ("lds", "sts"):
            for name, cycles in raw[f"{kind}_{bits}"].items():
                expected = wavefronts(maps[name][None, :], active, bits // 8, kind == "lds")
                rows.append((f"{kind}_{bits}", name, cycles * rate, int(expected[0])))
    return rows
