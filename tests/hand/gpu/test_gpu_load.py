"""Names, files, --set, and what the user reads when they are wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.gpu import aliases, load_gpu, preset_names
from gemmsim.gpu.fields import resolve, types
from gemmsim.gpu.units import UNITS, dimension, short
from gemmsim.support.errors import GemmsimError


def test_names_and_aliases_in_any_case() -> None:
    assert load_gpu("A100") == load_gpu("a100-80gb") == load_gpu(" a100-80GB ")
    assert load_gpu("4090").name == "rtx4090"


def test_set_with_and_without_units() -> None:
    gpu = load_gpu("h200", ["l2.size=25MiB", "dram.peak = 2 TB/s", "sm.count=64", "dram.latency_cycles=700"])
    assert gpu.l2.size_bytes == 25 * 2**20
    assert gpu.dram.peak_bytes_per_s == 2e12
    assert gpu.sm.count == 64
    assert gpu.dram.latency_cycles == 700
    assert load_gpu("h200", ["l2.size_bytes=26214400"]).l2 == gpu.l2
    assert gpu.provenance["l2.size_bytes"].status == "set"
    assert gpu.provenance["l2.size_bytes"].source == "--set l2.size=25MiB"


def test_set_a_list_and_a_pipe() -> None:
    sizes = ["shared.max_bytes_per_sm=64KiB", "shared.max_bytes_per_block=48KiB", "shared.carveouts=0,16,64KiB"]
    gpu = load_gpu("h200", [*sizes, "pipes.fmaheavy.latency=5", "shared.load_latency=20,21,22"])
    assert gpu.shared.carveouts_bytes == (0, 16384, 65536)
    assert gpu.shared.load_latency_cycles == (20, 21, 22)
    assert gpu.pipes["fmaheavy"].latency_cycles == 5


def test_the_last_of_two_overrides_wins() -> None:
    assert load_gpu("h200", ["sm.count=1", "sm.count=2"]).sm.count == 2


def test_peaks_follow_the_number_of_sms_and_the_clock() -> None:
    # Half the SMs at two thirds of the clock (1320 of 1980 MHz): a third of the peak, unless it is given.
    gpu = load_gpu("h200", ["sm.count=66", "clock.sm_boost=1320MHz", "clock.sm_base=1GHz", "peak.fp64=7TFLOP/s"])
    assert gpu.peak.fp32_flops == pytest.approx(66.9e12 / 3)
    assert gpu.peak.fp64_flops == 7e12
    assert "scaled" in gpu.provenance["peak.fp32_flops"].source


def test_hash_covers_the_content() -> None:
    plain = load_gpu("h200").sha256
    assert plain == load_gpu("H200").sha256
    assert len({plain, load_gpu("h100").sha256, load_gpu("h200", ["l2.size=25MiB"]).sha256}) == 3


def write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


ENTRY = 'source = "a guess", status = "estimated" }'


def test_a_file_extends_a_preset(tmp_path: Path) -> None:
    path = write(tmp_path, f'title = "Mine"\nextends = "h200"\n[l2]\nsize = {{ value = 25, unit = "MiB", {ENTRY}\n')
    gpu = load_gpu(path, ["sm.count=66"])
    assert (gpu.name, gpu.title, gpu.arch) == ("mine", "Mine", "sm_90")
    assert (gpu.l2.size_bytes, gpu.sm.count, gpu.dram) == (25 * 2**20, 66, load_gpu("h200").dram)


def test_a_file_extends_a_file_beside_it(tmp_path: Path) -> None:
    write(tmp_path, 'extends = "h200"')
    (tmp_path / "other.toml").write_text(f'extends = "mine.toml"\n[sm]\ncount = {{ value = 33, {ENTRY}\n')
    gpu = load_gpu(str(tmp_path / "other.toml"))
    assert gpu.sm.count == 33
    assert gpu.peak.fp32_flops == pytest.approx(66.9e12 / 4)


def test_set_takes_every_number_in_every_unit_of_its_kind() -> None:
    """Each field keeps its value when it is set to that value in another unit, under its short and its full name."""
    gpu = load_gpu("h200")
    tried = 0
    for key in gpu.provenance:
        section, *pipe, name = key.split(".")
        value = getattr(gpu.pipes[pipe[0]] if pipe else getattr(gpu, section), name)
        numbers = value if isinstance(value, tuple) else (value,)
        prefix = key.rpartition(".")[0]
        for unit, (dim, factor) in UNITS.items():
            if dim != dimension(name):
                continue
            text = ",".join(repr(one / factor) for one in numbers) + unit.replace("1", "")
            for spelling in (name, short(name)):
                other = load_gpu("h200", [f"{prefix}.{spelling}={text}"])
                changed = getattr(other.pipes[pipe[0]] if pipe else getattr(other, section), name)
                assert changed == pytest.approx(value), (key, unit)
                assert other.provenance[key].status == "set"
                tried += 1
    assert tried > 2 * len(gpu.provenance)


@pytest.mark.parametrize(
    ("name", "override", "message"),
    [
        ("h2000", "", r"unknown GPU 'h2000' \(did you mean 'h200'\?\)"),
        ("v100", "", "unknown GPU 'v100'"),
        ("sm_90", "", "'sm_90' is an architecture, not a GPU"),
        ("nowhere.toml", "", "no GPU file 'nowhere.toml'"),
        ("h200", "l2.siz=3", r"unknown GPU key 'l2.siz' \(nearest: l2.size, l2.slices, l2.ways, l2.line\)"),
        ("h200", "l2.bananas=3", "unknown GPU key 'l2.bananas': l2 has size, partitions, line, "),
        ("h200", "size=3", r"unknown GPU key 'size' \(nearest: l2.size, dram.size\)"),
        ("h200", "clock.load=3GHz", r"\(nearest: clock.sm_load, clock.sm_tensor_load, clock.sm_base"),
        ("h200", "pipes.alu.latencyy=3", r"\(nearest: pipes.alu.latency, "),
        ("h200", "banana.x=3", "sections are sm, clock, shared, l1"),
        ("h200", "l2.size", "wants KEY=VALUE"),
        ("h200", "l2.size=big", "'big' is not a number"),
        ("h200", "l2.size=nan", "'nan' is not a number"),
        ("h200", "l2.size=3GHz", "'GHz' does not fit; use one of B, kB"),
        ("h200", "l2.size=3MIB", "unknown unit 'MIB'"),
        ("h200", "l2.size=1,2", "wants a number"),
        ("h200", "shared.load_latency=1,2", "wants a list of 3 numbers"),
        ("h200", "shared.carveouts=0KiB,8,228MiB", "one unit for the whole list"),
        ("h200", "sm.count=2.5", "wants a whole number, not 2.5"),
        ("h200", "pipes.alu.passes_barrier=2", r"wants 1 \(yes\) or 0 \(no\), not 2"),
        ("h200", "sm.count=0", "sm.count must be above 0"),
        ("h200", "dram.peak=-1GB/s", "dram.peak_bytes_per_s must be above 0"),
        ("h200", "dram.peak=1e999", "must be above 0, not inf"),
        ("h200", "dram.achievable_fraction=1.5", "exceeds 1"),
        ("h200", "dram.achievable_fraction=150%", "exceeds 1"),
        ("h200", "l2.write_share=1.1", "exceeds 1"),
        ("h200", "l2.dirty_share=1.1", "exceeds 1"),
        ("h200", "l2.evict_first_share=2", "exceeds 1"),
        ("h200", "tma.merged_alone=1.1", "exceeds 1"),
        ("h200", "shared.max_bytes_per_sm=300KiB", "exceeds l1.unified_bytes"),
        ("h200", "shared.max_bytes_per_block=228KiB", "exceed shared.max_bytes_per_sm"),
        ("h200", "shared.carveouts=8,0,228KiB", "must ascend"),
        ("h200", "fetch.first_level=100B", "fetch.first_level_bytes .100. is not a multiple of a set, 4 lines of 128"),
        ("h200", "clock.sm_base=2GHz", "exceeds clock.sm_boost_hz"),
        ("h200", "l2.far_latency=10", "is below l2.hit_latency_cycles"),
        ("h200", "sm.max_warps=16", "exceeds 32"),
        ("h200", "sm.sub_partitions=3", "must divide"),
        ("h200", "l1.sector=48", "multiple of sector_bytes"),
        ("h200", "sm.max_barriers_per_block=15", "instructions name barriers 0 to 15"),
        ("h200", "l1.set_flips=1,2,4096", "at most 48 numbers below 4096"),
        ("h200", "l1.set_flips=1,2,8", "reach only 8 of the 16 sets"),
        ("h200", "l1.lost_lines=1,2,0", "above 0 where a line finds a free tag"),
        ("h200", "l1.lost_lines=1,2,65", "at most 64 each"),
        ("h200", "l1.unified=1GiB", "exceeds 4 MiB"),
    ],
)
def test_one_clear_line(name: str, override: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as error:
        load_gpu(name, [override] if override else [])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sm", "Expected ']'"),
        ('arch = "sm_90"', "no value for sm.count and"),
        ('extends = "h2000"', "did you mean 'h200'"),
        ('extends = "mine.toml"', "does it extend itself"),
        ('extend = "h200"', "unknown key 'extend' .did you mean 'extends'"),
        ("extends = 3", "wants a text"),
        ('extends = "h200"\narch = "hopper"', "arch must look like 'sm_90'"),
        (f'extends = "h200"\n[l3]\nsize = {{ value = 1, {ENTRY}', r"unknown section \[l3\]"),
        ('extends = "h200"\n[l2]\nsiz = 4', "unknown GPU key 'l2.siz'"),
        ('extends = "h200"\n[l2]\nsize = 4', "wants { value, unit, source, status }"),
        ('extends = "h200"\n[l2]\nsize = { value = 4, status = "vendor" }', "wants a source"),
        ('extends = "h200"\n[l2]\nsize = { value = 4, source = "me" }', "status must be one of"),
        ('extends = "h200"\n[l2]\nsize = { value = 4, source = "me", status = "calibrated" }', "wants records"),
        (f'extends = "h200"\n[l2]\nsize = {{ value = 4, records = ["a"], {ENTRY}', "wants records"),
        (f'extends = "h200"\n[l2]\nsize = {{ value = 4, found_on = "sm_90", {ENTRY}', "found_on wants a list of texts"),
        (f'extends = "h200"\n[l2]\nsize = {{ vaule = 4, value = 4, {ENTRY}', "unknown entry 'vaule'"),
        (f'extends = "h200"\n[l2]\nsize = {{ value = "4", {ENTRY}', "wants a number, not '4'"),
        (f'extends = "sm_80"\n[pipes.fmalite]\nlatency = {{ value = 4, {ENTRY}', "no value for sm.count and"),
    ],
)
def test_a_bad_file_gets_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as error:
        load_gpu(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_calibrated_values_that_name_no_records_have_those_of_the_file(tmp_path: Path) -> None:
    entry = 'value = 1, source = "a fit", status = "calibrated"'
    text = f'extends = "h200"\nrecords = ["a", "b"]\n[barrier]\narrival = {{ {entry} }}\n'
    text += f'release = {{ {entry}, records = ["c"] }}\nflush = {{ value = 1, {ENTRY}\n'
    found = load_gpu(write(tmp_path, text)).provenance
    records = [found[f"barrier.{name}_cycles"].records for name in ("arrival", "release", "flush")]
    assert records == [("a", "b"), ("c",), ()]


def test_half_a_pipe_is_missing_the_other_half(tmp_path: Path) -> None:
    path = write(tmp_path, f'extends = "a100"\n[pipes.fmalite]\nlatency = {{ value = 4, {ENTRY}')
    with pytest.raises(GemmsimError, match=r"no value for pipes\.fmalite\.issue_interval_cycles;"):
        load_gpu(path)


def test_both_spellings_of_every_key_resolve() -> None:
    for key in types():
        section, _, field = key.rpartition(".")
        assert resolve(key) == resolve(f"{section}.{short(field)}") == key


@given(st.sampled_from(sorted(UNITS)), st.integers(1, 1000))
def test_units_scale(unit: str, number: int) -> None:
    """Every unit that fits DRAM's bandwidth gives number * factor; every other is refused."""
    kind, factor = UNITS[unit]
    text = f"dram.peak={number} {unit}"
    if kind == dimension("peak_bytes_per_s"):
        assert load_gpu("t4", [text]).dram.peak_bytes_per_s == pytest.approx(number * factor)
    else:
        with pytest.raises(GemmsimError):
            load_gpu("t4", [text])


def test_importing_is_cheap() -> None:
    code = "import sys, gemmsim.gpu; print([m for m in ('numpy', 'numba', 'simpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_aliases_are_no_preset_of_another_name() -> None:
    assert not set(aliases()) & set(preset_names())
