"""What follows from a GPU that is alike: each rule by hand, and every preset made again from its data sheet."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from gemmsim.gpu import load_gpu, preset_names
from gemmsim.gpu.describe import SHEET, file_text
from gemmsim.gpu.fields import resolve
from gemmsim.gpu.load import PRESETS, like_of, load_own
from gemmsim.gpu.rules import RULES, Constants
from gemmsim.gpu.spec import STATUSES, GpuSpec
from gemmsim.support.errors import GemmsimError

ALIKE = [name for name in preset_names() if like_of(name)]
# An RTX 4090 has 128 SMs, 2520 MHz rated and 2800 under load, 5.27 TB/s and 296 cycles of L2, 636 of DRAM, 450 W.
BASE = {"sms": 64, "boost_mhz": 2520, "l2_mib": 36, "dram_gbs": 504}


def described(folder: Path, like: str = "rtx4090", **stated: float) -> GpuSpec:
    path = folder / "mine.toml"
    path.write_text(file_text("mine", like, stated, "its data sheet"))
    return load_gpu(str(path))


def test_half_an_rtx_4090(tmp_path: Path) -> None:
    gpu = described(tmp_path, **BASE)
    assert (gpu.arch, gpu.sm.count, gpu.l2.size_bytes, gpu.dram.peak_bytes_per_s) == ("sm_89", 64, 36 * 2**20, 504e9)
    assert (gpu.clock.sm_boost_hz, gpu.clock.sm_load_hz, gpu.clock.sm_base_hz) == (2520e6, 2800e6, 2235e6)
    assert gpu.l2.read_bytes_per_s == pytest.approx(5.27e12 / 2)  # half the SMs at the same clock
    assert gpu.l2.hit_latency_cycles == round(296 - 0.77 * 64) == 247
    assert (gpu.l2.far_latency_cycles, gpu.dram.latency_cycles) == (247, 247 + 636 - 296)
    assert gpu.peak.fp32_flops == pytest.approx(82.6e12 / 2)
    assert gpu.peak.tensor_fp16_flops == pytest.approx(165.2e12 / 2)
    assert (gpu.pipes["tensor"].issue_interval_cycles, gpu.mma.half_accumulator_share) == (32, 0.5)
    assert (gpu.dram.achievable_fraction, gpu.launch.overhead_us, gpu.sm.gpc_sms) == (0.94, 1.6, (0,))
    where = gpu.provenance
    assert [where[key].status for key in ("sm.count", "l2.read_bytes_per_s", "launch.overhead_us")] == [
        "vendor",
        "scaled",
        "copied",
    ]
    assert "with sm_load and SMs" in where["l2.read_bytes_per_s"].source
    assert "rtx4090" in where["launch.overhead_us"].source
    assert where["sm.max_warps"] == load_gpu("rtx4090").provenance["sm.max_warps"]  # the architecture's


@pytest.mark.parametrize(
    ("boost", "watts", "load"),
    [
        (2520, 450, 2800),
        (2520, 75, 2800),  # what its work takes decides whether 75 W lower it
        (2268, 450, 2520),  # nine tenths of both
        (2700, 450, 2800),  # 3000 in proportion, but no faster than the RTX 4090
        (2900, 450, 2900),  # rated above that
    ],
)
def test_the_clock_under_load(boost: float, watts: float, load: float, tmp_path: Path) -> None:
    gpu = described(tmp_path, **BASE | {"boost_mhz": boost, "watts": watts})
    assert gpu.clock.sm_load_hz == pytest.approx(load * 1e6, rel=1e-6)
    assert gpu.clock.sm_tensor_load_hz == pytest.approx(load * 1e6, rel=1e-6)
    assert gpu.l2.read_bytes_per_s == pytest.approx(5.27e12 / 2 * load / 2800, rel=1e-6)
    assert gpu.peak.fp32_flops == pytest.approx(82.6e12 / 2 * boost / 2520)
    assert gpu.peak.tensor_tf32_flops == pytest.approx(82.6e12 / 2 * boost / 2520)
    assert gpu.clock.sm_base_hz == pytest.approx(2235e6 * boost / 2520)


def test_boards_that_do_not_reach_their_boost_lend_none(tmp_path: Path) -> None:
    """A board that ran below its rated boost says nothing of how far above it another one runs."""
    (tmp_path / "slow.toml").write_text(
        'extends = "a40"\n[clock]\nsm_load = { value = 1700, unit = "MHz", source = "made up", status = "estimated" }\n'
    )
    gpu = described(tmp_path, "slow.toml", sms=42, boost_mhz=1800, l2_mib=3, dram_gbs=384, watts=300)
    assert gpu.clock.sm_load_hz == 1800e6


def test_power_of_a_smaller_board(tmp_path: Path) -> None:
    """An RTX 4090 takes 16 W and 450 W; energies are the architecture's."""
    gpu = described(tmp_path, **BASE | {"watts": 100})
    assert (gpu.power.busy_watts, gpu.power.burst_limit_watts, gpu.power.limit_watts) == (8, 100, 100)
    assert gpu.power.fp32_joules == load_gpu("rtx4090").power.fp32_joules > 0


def test_tensor_cores_of_half_and_of_twice_the_rate(tmp_path: Path) -> None:
    full = described(tmp_path, **BASE | {"tensor_tflops": 165})
    assert (full.pipes["tensor"].issue_interval_cycles, full.mma.half_accumulator_share) == (16, 1)
    assert (full.peak.tensor_fp16_flops, full.peak.tensor_tf32_flops) == (165e12, pytest.approx(82.6e12))
    assert full.peak.tensor_int8_ops == pytest.approx(330.3e12)
    slow = described(tmp_path, "rtxa6000", sms=84, boost_mhz=1800, l2_mib=6, dram_gbs=768, tensor_tflops=77)
    assert (slow.pipes["tensor"].issue_interval_cycles, slow.mma.half_accumulator_share) == (32, 0.5)
    fast = described(tmp_path, "rtxa6000", sms=84, boost_mhz=1800, l2_mib=6, dram_gbs=768, tensor_tflops=310)
    assert (fast.pipes["tensor"].issue_interval_cycles, fast.mma.half_accumulator_share) == (8, 1)


@pytest.mark.parametrize(
    ("sms", "gpcs"),
    [
        (132, (16, 16, 16, 16, 16, 16, 18, 18)),  # 66 TPCs among 8 GPCs: eight each and two more, as an H200 shows
        (114, (14, 14, 14, 14, 14, 14, 14, 16)),
        (78, (8, 10, 10, 10, 10, 10, 10, 10)),
    ],
)
def test_gpcs_of_a_hopper(sms: int, gpcs: tuple[int, ...], tmp_path: Path) -> None:
    gpu = described(tmp_path, "h200", sms=sms, boost_mhz=1980, l2_mib=60, dram_gbs=4800, watts=350)
    assert gpu.sm.gpc_sms == gpcs
    assert gpu.power.burst_limit_watts == 935 / 2 and gpu.power.busy_watts == pytest.approx(131 * sms / 132)
    assert gpu.clock.sm_tensor_load_hz == load_gpu("h200").clock.sm_tensor_load_hz


def test_l2_of_hopper_and_ampere_follows_its_size(tmp_path: Path) -> None:
    """An H200 has 60 MiB and 8.5 TB/s at 1980 MHz: half of L2 at nine tenths of the clock gives 0.45 of it."""
    gpu = described(tmp_path, "h200", sms=100, boost_mhz=1782, l2_mib=30, dram_gbs=2400, watts=700)
    assert gpu.l2.read_bytes_per_s == pytest.approx(0.45 * 8.5e12)
    a30 = load_gpu("a30")  # 24 of the A100's 40 MiB, 1440 of 1410 MHz
    assert a30.l2.read_bytes_per_s == pytest.approx(5.43e12 * 24 / 40 * 1440 / 1410)


def test_one_like_one_like_another(tmp_path: Path) -> None:
    """A third GPU follows from what followed: half of half an RTX 4090."""
    described(tmp_path, **BASE)
    second = tmp_path / "second.toml"
    second.write_text(file_text("second", "mine.toml", BASE | {"sms": 32}, "its data sheet"))
    gpu = load_gpu(str(second))
    assert gpu.l2.read_bytes_per_s == pytest.approx(5.27e12 / 4)
    assert gpu.l2.hit_latency_cycles == round(247 - 0.77 * 32)


# What follows from a number by the rules, beside itself.
FOLLOWERS = {
    "clock.sm_load_hz": {"clock.sm_tensor_load_hz", "l2.read_bytes_per_s"},
    "l2.hit_latency_cycles": {"l2.far_latency_cycles", "dram.latency_cycles"},
}


OF_ANOTHER_ARCHITECTURE = ("b200", "orin", "rtx5090")  # than the GPU that they are like


@pytest.mark.parametrize("name", [name for name in ALIKE if name not in OF_ANOTHER_ARCHITECTURE])
def test_presets_are_what_their_data_sheets_and_the_rules_give(name: str, tmp_path: Path) -> None:
    """What differs from the file that `gpu new` writes is what the preset restates, and what follows from that."""
    table = tomllib.loads((PRESETS / f"{name}.toml").read_text())
    own = {resolve(f"{s}.{k}") for s, keys in flat(table) for k in keys}
    spec = load_gpu(name)
    sheet = {option: resolve(of.key) for option, of in SHEET.items()}
    factors = {"MHz": 1e-6, "MiB": 2.0**-20, "GiB": 2.0**-30, "GB/s": 1e-9, "TFLOP/s": 1e-12}
    stated = {
        option: spec.provenance[key].value * factors.get(SHEET[option].unit, 1)  # type: ignore[operator]
        for option, key in sheet.items()
        if key in own
    }
    again = described(tmp_path, like_of(name), **stated)
    restated = own - set(sheet.values())
    named = restated.union(*(FOLLOWERS.get(key, set()) for key in restated))
    then = {key: pytest.approx(value.value, rel=1e-9) for key, value in spec.provenance.items()}
    differ = {key for key, value in again.provenance.items() if value.value != then[key]}
    assert differ <= named
    assert set(load_own(name)) >= own


def flat(table: dict[str, object], prefix: str = "") -> list[tuple[str, list[str]]]:
    found = []
    for key, item in table.items():
        if isinstance(item, dict):
            found.append((prefix + key, [k for k, v in item.items() if isinstance(v, dict) and "value" in v]))
            found += flat(item, f"{prefix}{key}.")
    return found


def test_rules_stand_once_and_in_an_order_that_holds() -> None:
    keys = [rule.key for rule in RULES]
    assert len(keys) == len(set(keys)) and all(resolve(key) == key for key in keys)
    assert keys.index("clock.sm_load_hz") < keys.index("l2.read_bytes_per_s")
    assert keys.index("l2.hit_latency_cycles") < keys.index("dram.latency_cycles")


def test_the_rules_numbers_have_sources() -> None:
    table = tomllib.loads((PRESETS / "rules.toml").read_text())
    known = {"l2_latency_per_sm", "l2_by_size"}
    assert len(dataclasses.fields(Constants)) == len(known)
    for arch, numbers in table.items():
        assert (PRESETS / "arch" / f"{arch}.toml").is_file()
        assert set(numbers) <= known
        assert all(one["source"] and one["status"] in STATUSES for one in numbers.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('like = "rtx4090x"', "unknown GPU 'rtx4090x'"),
        ('like = "bad.toml"', "like itself"),
        ('like = "h100"\nextends = "h200"', "extends an architecture or nothing"),
        ("like = 3", "like: wants a text"),
        (
            'like = "rtx4090"\n[sm]\ncount = { value = 0, unit = "1", source = "x", status = "vendor" }',
            "sm.count must be above 0",
        ),
    ],
)
def test_bad_files_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text + "\n")
    with pytest.raises(GemmsimError, match=message) as error:
        load_gpu(str(path))
    assert "\n" not in str(error.value)
