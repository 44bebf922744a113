"""Microbenchmarks without a GPU: they assemble, hold what they say, and their analysis gives back what was put in."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cubins import SM_86
from gemmsim_validate.cli.main import main
from gemmsim_validate.microbench import arithmetic, bandwidth, barrier, bundle, latency, launch, wavefronts
from gemmsim_validate.microbench.bench import Warps
from gemmsim_validate.microbench.groups import GROUPS
from gemmsim_validate.microbench.maps import REGION_BYTES, lane_maps
from gemmsim_validate.microbench.ptx import UNROLLS, module
from gemmsim_validate.microbench.run import run

from gemmsim.api import count
from gemmsim.compile.decode import decode_kernels
from gemmsim.compile.elf import read_cubin
from gemmsim.compile.link import link
from gemmsim.compile.source import CubinKernel
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Program
from gemmsim.launch.spec import Labels, LaunchSpec, Settings
from gemmsim.memory.requests.banks import wavefronts as by_the_model
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.types import Argument, Launch

MACHINE = {"device": "NVIDIA H200", "compute_capability": [9, 0], "driver": "1.0", "sms": 130}
# What the fake GPU is made of: cycles of one step, by the beginning of the entry's name
LATENCIES = {"ffma": 4.1, "imad": 4.2, "prmt": 4.3, "hfma2": 5.1, "dfma": 8.2, "popc": 17.5, "shfl": 23.0,
             "hmma_16816": 24.5, "hmma_1688": 17.0, "imma_16832": 25.0, "dmma_884": 26.0}  # fmt: skip
INTERVALS = {"ffma": 1.0, "imad": 2.0, "prmt": 2.1, "hfma2": 1.5, "dfma": 2.2, "popc": 8.0, "shfl": 4.0,
             "hmma_16816": 6.0, "hmma_1688": 4.0, "imma_16832": 6.5, "dmma_884": 16.0}  # fmt: skip
CHASES = {"chase_shared_32": 23.0, "chase_shared_64": 23.5, "chase_shared_128": 26.0, "chase_l1_64": 32.0,
          "chase_l1_128": 36.0, "chase_l2_64": 280.0}  # fmt: skip
AROUND = 15  # cycles of the clocks and the store around a single access


class FakeBench:
    """Answers as a GPU would whose numbers are those above; every launch has an overhead that must cancel."""

    sms, l2_bytes, memory_bytes, max_shared_bytes = 130, 60 << 20, 1 << 26, 227 << 10
    dram_peak_bytes_per_s = 4e12

    def upload(self, array: np.ndarray) -> Any:
        array = array.copy()
        fake = SimpleNamespace(values=array, __cuda_array_interface__={"data": (array.ctypes.data, False)})
        fake.copy_to_device = lambda source: array.__setitem__(slice(None), source)
        return fake

    def launch(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, shared_bytes: int = 0
    ) -> Warps:
        if entry == "alone":  # blocks of 32 warps, 300 cycles apart, on each SM one after another
            blocks, warps = np.arange(grid), block // 32
            start = np.repeat(blocks // self.sms * (other + 300), warps)
            return Warps(start, start + other, np.repeat(blocks % self.sms, warps))
        if entry == "wall":
            cycles = other * 1.755
        elif entry.startswith("read"):
            cycles = count * bandwidth.UNROLL * 1024 * 16 / {"read_l1": 120.0, "read_l2": 62.0}[entry]
        else:
            name, _, unroll = entry.rpartition("_")
            cycles = 777 + count * (50 + int(unroll) * self._step(name, block // 32, data))
        warps = grid * block // 32
        return Warps(np.zeros(warps), np.full(warps, round(cycles)), np.zeros(warps))

    def _step(self, name: str, warps: int, data: Any) -> float:
        if name in CHASES:
            return CHASES[name]
        if name == "barrier":
            return 12.0 + 2.0 * warps
        kind, _, what = name.rpartition("_")
        if what == "chain":
            return LATENCIES[kind]
        if what == "rate":  # one warp a sub-partition cannot fill the pipe
            return INTERVALS[kind] * max(warps / 4, 1.5)
        offsets = data.values[:WARP_LANES].astype(np.int64)[None, :]
        active = np.ones((1, WARP_LANES), bool)
        return warps * float(by_the_model(offsets, active, int(what) // 8, kind != "sts")[0])

    def launch_words(self, entry: str, data: Any, count: int, words: int) -> np.ndarray:
        assert entry == "each_cg" and words == 4 + count
        each = np.full(count, 650)
        if data.values.nbytes == latency.L2_BYTES:  # half near, half far, and one TLB miss
            each = np.where(np.arange(count) % 2, 264, 296)
            each[5] = 2000
        return np.concatenate([np.zeros(4, np.int64), each + AROUND])

    def time_us(
        self, entry: str, grid: int, block: int, data: Any, count: int, other: int = 0, launches: int = 1
    ) -> float:
        if entry == "spin":
            return 1.5 + other / 1980.0
        moved = count * bandwidth.UNROLL * grid * block * 16
        return moved / (9e12 if data.values.nbytes < 1 << 24 else 3.2e12) * 1e6

    def clock_mhz(self) -> float:
        return 1980.0


@pytest.mark.parametrize("arch", ["sm_80", SM_86, "sm_89", "sm_90", "sm_120"])
def test_every_group_assembles(arch: str, tmp_path: Path) -> None:
    bundle.prepare(arch, tmp_path)
    made = bundle.read(tmp_path)
    assert made.arch == arch and list(made.modules) == list(GROUPS)
    assert all(cubin[:4] == b"\x7fELF" and entries for cubin, entries in made.modules.values())


MEASURED = [
    (arithmetic, "ffma_chain", "FFMA"),
    (arithmetic, "ffma_rate", "FFMA"),
    (arithmetic, "imad_rate", "IMAD"),
    (arithmetic, "prmt_chain", "PRMT"),
    (arithmetic, "popc_chain", "POPC"),
    (arithmetic, "hmma_16816_rate", "HMMA.16816.F32"),
    (latency, "chase_shared_32", "LDS"),
    (latency, "chase_shared_128", "LDS.128"),
    (latency, "chase_l1_64", "LDG.E.64"),
    (latency, "chase_l1_128", "LDG.E.128"),
    (barrier, "barrier", "BAR.SYNC.DEFER_BLOCKING"),
    (wavefronts, "lds_32", "LDS"),
    (wavefronts, "lds_128", "LDS.128"),
    (wavefronts, "sts_64", "STS.64"),
    (wavefronts, "ldg_32", "LDG.E"),
    (wavefronts, "ldg_128", "LDG.E.128"),
]


@pytest.mark.parametrize(("group", "entry", "opcode"), MEASURED)
def test_unrolls_differ_by_the_instruction_that_is_measured(group: Any, entry: str, opcode: str) -> None:
    """The compiler neither drops steps nor adds memory instructions, and keeps one loop: the way back is one branch."""
    few, many = (_instructions(group)[f"{entry}_{n}"] for n in UNROLLS)
    difference = {name: many[name] - few[name] for name in many if many[name] != few[name]}
    assert difference.pop(opcode) == UNROLLS[1] - UNROLLS[0]
    assert {name.split(".")[0] for name in difference} <= {"LOP3", "MOV", "UIADD3", "IMAD", "NOP"}
    assert few["BRA"] == many["BRA"] == 2  # the loop, and the one behind the kernel's end


@cache
def _linked(group: Any) -> bytes:
    entries = {f"{entry}_{n}" for of, entry, _ in MEASURED if of is group for n in UNROLLS}
    kernels = {entry: text for entry, text in group.kernels("sm_90").items() if entry in entries}
    return link([module("sm_90", kernels)], "sm_90")


@cache
def _instructions(group: Any) -> dict[str, Counter[str]]:
    """How many of each instruction the kernels of a group have that are in MEASURED, by their entries."""
    cubin, found = _linked(group), {}
    for entry, program in decode_kernels(cubin, {kernel.symbol for kernel in read_cubin(cubin).kernels}):
        assert isinstance(program, Program)
        found[entry] = Counter(one.mnemonic for one in program.instructions)
    return found


def test_arithmetic() -> None:
    found = {one.key: one.value for one in arithmetic.values(arithmetic.run(FakeBench(), "sm_90"))}
    assert found == pytest.approx({
        "pipes.fmaheavy.latency_cycles": 4.1, "pipes.fmalite.latency_cycles": 4.1, "pipes.alu.latency_cycles": 4.3,
        "pipes.fp16.latency_cycles": 5.1, "pipes.fp64.latency_cycles": 8.2, "pipes.xu.latency_cycles": 17.5,
        "pipes.lsu.latency_cycles": 23.0, "pipes.tensor.latency_cycles": 24.5, "mma.half_work_latency_cycles": 17.0,
        "mma.imma_latency_cycles": 25.0, "mma.dmma_latency_cycles": 26.0, "pipes.fmaheavy.issue_interval_cycles": 2.0,
        "pipes.fmalite.issue_interval_cycles": 2.0, "pipes.alu.issue_interval_cycles": 2.1,
        "pipes.fp16.issue_interval_cycles": 1.5, "pipes.fp64.issue_interval_cycles": 2.2,
        "pipes.xu.issue_interval_cycles": 8.0, "pipes.tensor.issue_interval_cycles": 6.0, "mma.half_work_share": 4 / 6,
        "mma.imma_interval_cycles": 6.5, "mma.dmma_interval_cycles": 16.0,
    }, rel=1e-3)  # fmt: skip


def test_latency() -> None:
    found = {one.key: one.value for one in latency.values(latency.run(FakeBench(), "sm_90"))}
    assert found["shared.load_latency_cycles"] == pytest.approx([23.0, 23.5, 26.0], rel=1e-3)
    assert found["l1.hit_latency_cycles"] == pytest.approx([32, 32, 36], rel=1e-3)
    assert found["l2.hit_latency_cycles"] == pytest.approx(264, abs=0.1)
    assert found["l2.far_latency_cycles"] == pytest.approx(296, abs=0.1)
    assert found["dram.latency_cycles"] == pytest.approx(650, abs=0.1)


def test_one_cluster_of_latencies_is_both_near_and_far() -> None:
    assert latency.near_and_far([250] * 100) == (250, 250)
    near, far = latency.near_and_far([200] * 30 + [205] * 30 + [300] * 40)
    assert (near, far) == (202.5, 300)


@pytest.mark.parametrize("size", [1 << 16, 1 << 23])
def test_a_ring_visits_its_lines_once_and_closes(size: int) -> None:
    base, visited = 1 << 40, 100
    memory = latency.ring(base, size, visited)
    place, seen = 0, set()
    while place not in seen:
        seen.add(place)
        assert place % 128 == 0
        place = int(memory[place // 8]) - base
    assert place == 0 and len(seen) == visited


def test_barrier_bandwidth_and_launch() -> None:
    found = {one.key: one.value for one in barrier.values(barrier.run(FakeBench(), "sm_90"))}
    assert found == pytest.approx({"barrier.arrival_cycles": 2, "barrier.release_cycles": 12}, rel=1e-3)
    found = {one.key or one.what[:7]: one.value for one in bandwidth.values(bandwidth.run(FakeBench(), "sm_90"))}
    assert found["L1 hits"] == pytest.approx(120, rel=1e-3) and found["l1.miss_bytes_per_cycle"] == pytest.approx(62)
    assert found["dram.achievable_fraction"] == pytest.approx(0.8) and found["DRAM, b"] == pytest.approx(3.2e12)
    found = {one.key: one.value for one in launch.values(launch.run(FakeBench(), "sm_90"))}
    assert found["clock.sm_load_hz"] == pytest.approx(1.98e9) and found["launch.block_start_cycles"] == 300
    assert found["launch.overhead_us"] == pytest.approx(1.5 - 300 / 1980)


def test_wavefronts_agree_with_the_model_that_made_them() -> None:
    raw = wavefronts.run(FakeBench(), "sm_90")
    found = {one.key: one.value for one in wavefronts.values(raw)}
    assert found == pytest.approx({"shared.wavefronts_per_cycle": 1, "shared.request_interval_cycles": 1}, rel=1e-3)
    table = wavefronts.against_model(raw)
    assert len(table) == 6 * len(lane_maps(4)) and all(abs(row[2] - row[3]) < 0.01 for row in table)
    raw["lds_64"]["pairs"] *= 2  # and a difference is seen
    assert [row[:2] for row in wavefronts.against_model(raw) if abs(row[2] - row[3]) > 0.2] == [("lds_64", "pairs")]


def test_lane_maps_stay_in_their_region_and_cover_the_patterns() -> None:
    for size in (4, 8, 16):
        maps = lane_maps(size)
        assert {f"stride_{i}" for i in range(1, 34)} <= set(maps)
        for offsets in maps.values():
            assert len(offsets) == WARP_LANES and (offsets % size == 0).all()
            assert offsets.min() >= 0 and offsets.max() + size <= REGION_BYTES


@pytest.mark.parametrize(("bits", "name"), [(32, "stride_2"), (32, "xor_swizzle"), (64, "pairs"), (128, "broadcast"),
                                            (128, "stride_3"), (64, "random_1")])  # fmt: skip
def test_the_simulator_runs_the_kernel_and_counts_what_the_bank_model_says(bits: int, name: str) -> None:
    """The very kernel, its clocks left out, executed: 3 rounds of 32 loads by 2 warps."""
    entry, rounds, warps = f"lds_{bits}_32", 3, 2
    kernels = {entry: wavefronts.kernels("sm_90", timed=False)[entry]}
    cubin = link([module("sm_90", kernels)], "sm_90")
    offsets = lane_maps(bits // 8)[name]
    args = (
        Argument("i64", (4 * warps,), np.zeros(4 * warps, np.int64)),
        Argument("u32", (WARP_LANES,), offsets.astype(np.uint32)),
        Argument("u32", (), rounds),
        Argument("u32", (), 0),
    )
    request = LaunchSpec(
        kernel=CubinKernel(cubin, Path("lds.cubin"), entry, "c"),
        launch=Launch((1, 1, 1), (32 * warps, 1, 1), args),
        gpu=load_gpu("h200"),
        labels=Labels(entry),
        settings=Settings(use_cache=False),
    )
    counters = count(request).traffic.counters
    requests = rounds * 32 * warps
    expected = int(by_the_model(offsets[None, :], np.ones((1, WARP_LANES), bool), bits // 8, True)[0])
    assert counters["smsp__inst_executed_op_shared_ld.sum"] == requests
    assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == requests * expected


def test_the_gpu_file_is_one_that_gpu_takes(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    made = bundle.MicroBundle("sm_90", {name: (b"", []) for name in GROUPS}, {"x": "1"})
    raw = run(made, FakeBench(), MACHINE, tmp_path / "raw.json")
    assert raw["errors"] == {}
    words = ["microbench", "--analyse", "--raw", str(tmp_path / "raw.json"), "-o", str(tmp_path / "my.toml")]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "pipes.fp64.latency_cycles" in shown and "of the bank model" not in shown
    gpu = load_gpu(str(tmp_path / "my.toml"))
    assert gpu.sm.count == 130 and gpu.pipes["fp64"].latency_cycles == 8.2
    source = gpu.provenance["pipes.fp64.latency_cycles"].source
    assert source.startswith("measured by gemmsim-validate microbench on NVIDIA H200") and "dependent chain" in source
    assert gpu.l1.ways == load_gpu("h200").l1.ways


def test_a_group_that_fails_loses_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeBench, "launch_words", lambda *_: 1 / 0)
    made = bundle.MicroBundle("sm_90", {name: (b"", []) for name in GROUPS}, {})
    raw = run(made, FakeBench(), MACHINE, tmp_path / "raw.json")
    assert list(raw["errors"]) == ["latency"] and set(raw["samples"]) == set(GROUPS) - {"latency"}


def test_wrong_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for words, says in (
        (["--prepare", str(tmp_path)], "--arch"),
        ([], "-o FILE.toml"),
        (["--analyse", "-o", "x"], "--raw"),
        (["--analyse", "--raw", str(tmp_path / "none"), "-o", "x"], "cannot read"),
    ):
        assert main(["microbench", *words]) == 2
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1
