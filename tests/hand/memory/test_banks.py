"""Wavefronts by hand, and against counters that others published or that an H200 read.

Patterns of measured kernels are what their source says each lane reads; the counts of instructions are the kernels'
own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gemmsim.memory.requests.banks import conflict_free, copy_wavefronts, floor_wavefronts, wavefronts

LANES = range(32)


def waves(address: Callable[[int], int | None], width: int = 4, load: bool = True) -> int:
    """Wavefronts of a request whose lane l accesses address(l)."""
    addresses = [address(lane) for lane in LANES]
    offsets = np.array([[a or 0 for a in addresses]], np.int64)
    return int(wavefronts(offsets, np.array([[a is not None for a in addresses]]), width, load)[0])


def least(address: Callable[[int], int], width: int = 4) -> int:
    """Wavefronts of a load without its conflicts."""
    offsets = np.array([[address(lane) for lane in LANES]], np.int64)
    return int(conflict_free(offsets, np.full((1, 32), True), width)[0])


@pytest.mark.parametrize(("stride", "expected"), [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (33, 1), (0, 1)])
@pytest.mark.parametrize("load", [True, False])
def test_stride_in_words(stride: int, expected: int, load: bool) -> None:
    assert waves(lambda lane: 4 * stride * lane, load=load) == expected


def test_one_other_word_in_the_bank_costs_one_more() -> None:
    assert waves(lambda lane: 128 if lane == 31 else 0) == 2


def test_bytes_of_one_word_cost_once() -> None:
    assert waves(lambda lane: lane, width=1) == 1


# cicuvc/nvidia-sass-document, notes/sm90/arch/shared_bank_conflicts.md and tests/bankconf/run.py: measured on an RTX
# 5090.
WIDE = [
    # 128 bits: element of 16 bytes by lane, wavefronts of a load, of a store
    (16, lambda lane: lane, 4, 4),
    (16, lambda lane: 0, 2, 4),
    (16, lambda lane: lane >> 1, 2, 4),
    (16, lambda lane: lane >> 2, 2, 4),
    (16, lambda lane: lane >> 3, 2, 4),
    (16, lambda lane: lane >> 2 << 1 | lane & 1, 2, 4),  # lane and lane^2 share
    (16, lambda lane: lane >> 3 << 2 | lane & 3, 4, 4),  # lane and lane^4: not routable
    (16, lambda lane: lane & 15, 4, 4),  # lane and lane^16
    (16, lambda lane: 2 * lane, 8, 8),
    (16, lambda lane: 4 * lane, 16, 16),
    (16, lambda lane: 8 * lane, 32, 32),
    # 64 bits: element of 8 bytes
    (8, lambda lane: lane, 2, 2),
    (8, lambda lane: 0, 1, 2),
    (8, lambda lane: lane >> 1, 1, 2),
    (8, lambda lane: 15 - (lane >> 1), 1, 2),
    (8, lambda lane: ((lane >> 1) + 1) % 16, 1, 2),
    (8, lambda lane: lane % 16, 2, 2),  # both halves the same, but not neighbours
    (8, lambda lane: (lane >> 1) * 16, 16, 16),  # pairs share, all in one bank
]


@pytest.mark.parametrize(("width", "element", "load", "store"), WIDE)
def test_wide_accesses(width: int, element: Callable[[int], int], load: int, store: int) -> None:
    assert waves(lambda lane: width * element(lane), width) == load
    assert waves(lambda lane: width * element(lane), width, load=False) == store


def test_all_groups_merge_or_none() -> None:
    """dist_q0: three words of bank 0 in the first quarter, the others broadcast. 3 + 1 + 1 + 1 on the RTX 5090."""
    first = [0, 128, 12, 16, 20, 24, 28, 32]
    assert waves(lambda lane: 4 * (first[lane] if lane < 8 else 16), 16) == 6


def test_a_group_without_an_active_lane_costs_nothing() -> None:
    assert waves(lambda lane: 16 * lane if lane < 8 else None, 16) == 1
    assert waves(lambda lane: 16 * lane if lane % 8 == 0 else None, 16, load=False) == 4


@pytest.mark.parametrize(("width", "expected"), [(1, 1), (4, 1), (8, 2), (16, 4)])
def test_floor(width: int, expected: int) -> None:
    assert floor_wavefronts(width) == expected


class TestMeasured:
    """Loads agree within the counters' arbitration noise, 0.2 %."""

    @staticmethod
    def near(predicted: float, measured: float, tolerance: float = 0.002) -> None:
        assert predicted == pytest.approx(measured, rel=tolerance)

    def test_h200_tiled_32(self) -> None:
        """A row of A by 8 broadcast LDS.128, B by 32 LDS, for each of 32768 warps and 32 tiles."""
        a, b = waves(lambda lane: 0, 16), waves(lambda lane: 4 * lane)
        self.near(32768 * 32 * (8 * a + 32 * b), 50_374_496)

    def test_h200_tiled_16(self) -> None:
        """A warp has two rows of 16 threads: 4 LDS.128 at two addresses 64 bytes apart, 16 LDS of 16 words."""
        a, b = waves(lambda lane: lane // 16 * 64, 16), waves(lambda lane: lane % 16 * 4)
        self.near(32768 * 64 * (4 * a + 16 * b), 50_411_105)

    @pytest.mark.parametrize(("columns", "measured"), [(8, 25_167_063), (16, 25_165_824)])
    def test_h200_block_tile_of_8x8_a_thread(self, columns: int, measured: int) -> None:
        """64 LDS of A, tiles 8 wide, rows 8 apart, and 64 of B, every eighth word; 65536 warp tiles."""
        a = waves(lambda lane: lane // columns * 8 * 8 * 4)
        b = waves(lambda lane: lane % columns * 8 * 4)
        self.near(65536 * 64 * (a + b), measured)

    def test_a100_1d_block_tile(self) -> None:
        """SwayamInSync/SGEMM-Worklog, kernel 4: 16 broadcast LDS.128 and 8 LDS a tile; 1 store each for A and B."""
        tiles = 4096 * 16 * 512
        self.near(tiles * (16 * waves(lambda lane: 0, 16) + 8 * waves(lambda lane: 4 * lane)), 1_342_347_365)

    def test_a100_2d_block_tile(self) -> None:
        """Kernel 5, as NVRTC compiles it for sm_80: A by 16 LDS.128 and 8 LDS, B by 16 LDS.128 of 16 x 32 bytes.

        A's two addresses are 256 bytes apart, in the same banks: only if they merge in half-warps is it 176.
        """
        wide, narrow = (waves(lambda lane: lane // 16 * 256, width) for width in (16, 4))
        b = waves(lambda lane: lane % 16 * 32, 16)
        assert 16 * wide + 8 * narrow + 16 * b == 176
        self.near(1024 * 512 * 8 * 176, 738_332_752)
        self.near(1024 * 512 * 8 * (8 * (narrow - 1) + 16 * (b - 4)), 302_118_267)  # bank conflicts

    def test_rtx4090_2d_block_tile(self) -> None:
        """kapilsh.github.io, "Learn CUTLASS the hard way", tiles of 64 x 64 x 8 and 8 x 8: 40 loads, 224 wavefronts.

        A by 16 LDS.128 and 8 LDS, four addresses 256 bytes apart; B by 16 LDS.128 of 8 x 32 bytes. A's wide loads could
        be routed in pairs, so that 2 wavefronts of each 4 are conflicts; B's not: 4 of 8.
        """
        tiles = 4096 * 512 * 2
        a, b = (lambda lane: lane // 8 * 256), (lambda lane: lane % 8 * 32)
        total, free = 0, 0
        for times, address, width in ((16, a, 16), (8, a, 4), (16, b, 16)):
            total += times * waves(address, width)
            free += times * least(address, width)
        assert tiles * 40 == 167_772_160
        assert (total, free) == (224, 104)
        assert tiles * total == pytest.approx(939_534_036, rel=2e-5)
        assert tiles * (total - free) == 503_316_480

    def test_a100_vectorised(self) -> None:
        """Kernel 7, tiles 64x64x16 of 256 threads: 16 LDS.128 of A^T (two addresses), 16 of B (256 bytes).

        Stores: A^T by 4 STS whose four columns share a bank, B by one STS.128; the store counter's noise is 0.5 %.
        """
        tiles = 4096 * 256 * 8
        a, b = waves(lambda lane: lane // 16 * 16, 16), waves(lambda lane: lane % 16 * 16, 16)
        self.near(tiles * 16 * (a + b), 805_365_052)
        a_store = waves(lambda lane: (lane % 4 * 4 * 64 + lane // 4) * 4, load=False)
        b_store = waves(lambda lane: lane * 16, 16, load=False)
        self.near(tiles * (4 * a_store + b_store), 168_525_368, 0.006)

    def test_a100_warp_tile(self) -> None:
        """Kernel 8, 64x128x16, warp tiles 32x64: 4 LDS.128 of A^T at two addresses, 1 of B over 256 bytes, 16 times."""
        a, b = waves(lambda lane: lane // 16 * 16, 16), waves(lambda lane: lane % 16 * 16, 16)
        self.near(64 * 32 * 256 * 4 * 16 * (4 * a + b), 402_673_299)

    def test_t4_vectorised(self) -> None:
        """alexkato29/cuda-gemm 03_vectorized_dram, 128x32x128: 64 LDS.128 of A^T and 64 of B (16 x 32 bytes) a tile."""
        a, b = waves(lambda lane: lane // 16 * 32, 16), waves(lambda lane: lane % 16 * 32, 16)
        self.near(256 * 64 * 8 * 64 * (a + b), 83_915_648)
        self.near(256 * 64 * 8 * 64 * (b - 4), 33_584_000)

    @pytest.mark.parametrize(
        ("a", "b", "c", "stores", "measured", "tolerance"),
        [
            # loads of A and B: 33554432 warp instructions each; address by lane at n = 1024
            (lambda x: 4096 * x, lambda x: 0, lambda x: 4096 * x, 32768, 1_108_480_190, 0.0002),
            (lambda x: 0, lambda x: 4 * x, lambda x: 4 * x, 32768, 67_234_116, 0.002),
            (
                lambda x: x // 16 * 4096,
                lambda x: x % 16 * 4,
                lambda x: x // 16 * 4096 + x % 16 * 4,
                32768,
                100_826_762,
                0.001,
            ),
        ],
        ids=["naive32", "coal32", "coal16"],
    )
    def test_h200_global_accesses(self, a, b, c, stores: int, measured: int, tolerance: float) -> None:  # type: ignore[no-untyped-def]
        loads = 33_554_432 * (waves(a) + waves(b))
        self.near(loads + stores * waves(c, load=False), measured, tolerance)

    @pytest.mark.parametrize(
        ("columns", "loads", "measured"), [(8, 524_288, 3_007_104), (16, 262_144, 1_604_468)], ids=["bt2d", "bt2d128"]
    )
    def test_h200_global_accesses_of_block_tiles(self, columns: int, loads: int, measured: int) -> None:
        """A by rows of 8 words 4096 bytes apart, B packed, C each lane's eighth word; the rest of the counter is noise:
        4 %.

        Without the bank rule for stores it would be 12 % and 16 % short."""
        a, b = waves(lambda lane: lane // 8 * 4096 + lane % 8 * 4), waves(lambda lane: 4 * lane)
        c = waves(lambda lane: lane // columns * 8 * 4096 + lane % columns * 32, load=False)
        self.near(loads * (a + b) + 32768 * c, measured, 0.045)


@pytest.mark.parametrize("row_bytes", [16, 32, 64, 128, 256, 512])
def test_copies_past_l1_take_one_wavefront(row_bytes: int) -> None:
    """16 bytes a lane, of rows 8 KiB apart. An H200 counts 0.57 a request, whatever the rows (h200_copies.json)."""
    lane = np.arange(32)
    offsets = (lane * 16 // row_bytes * 8192 + lane * 16 % row_bytes)[None]
    assert copy_wavefronts(offsets, np.ones((1, 32), bool), 16, bypasses=True).tolist() == [1]
    assert copy_wavefronts(offsets, np.zeros((1, 32), bool), 16, bypasses=True).tolist() == [0]


# Own microbenchmarks on an H200 (Nsight Compute): wavefronts of an LDGSTS through L1, 4 or 8 bytes a lane.
@pytest.mark.parametrize(
    ("address", "width", "measured"),
    [(lambda lane: 4 * lane, 4, 1), (lambda lane: 8 * lane, 8, 2), (lambda lane: 4096 * lane, 4, 32),
     (lambda lane: 0, 4, 32),      (lambda lane: 4096 * lane, 8, 32)],
)  # fmt: skip
def test_copies_through_l1_take_the_measured_wavefronts(address, width, measured):
    offsets = np.array([[address(lane) for lane in range(32)]])
    assert copy_wavefronts(offsets, np.ones((1, 32), bool), width, bypasses=False).tolist() == [measured]
