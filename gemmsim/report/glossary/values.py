"""Collects the numbers of a run, under the names that the `worked` lines of glossary entries use for them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from gemmsim.analysis.code.instruction_mix import by_class
from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, ISSUE, L2, utilisations
from gemmsim.analysis.studies.launch_summary import SPACES, space_traffic
from gemmsim.isa.opcodes import MixClass
from gemmsim.report.glossary.entries import Entry
from gemmsim.report.layout.words import number
from gemmsim.report.report import Report
from gemmsim.support.warp import WARP_LANES

Value = float | str
_PLACE = re.compile(r"<([A-Za-z][\w.]*)>")
LIMITERS = {
    "blocks": "block slots",
    "warps": "warp slots",
    "registers": "registers",
    "shared_mem": "shared memory",
}


def worked_lines(entry: Entry, values: Mapping[str, Value]) -> list[str]:
    """Fill the entry's `worked` lines with the numbers of a run; lines whose numbers the run lacks are left out."""
    return [line for template in entry.worked if (line := fill(template, values)) is not None]


def names_in(template: str) -> list[str]:
    return _PLACE.findall(template)


def fill(template: str, values: Mapping[str, Value]) -> str | None:
    """Replace each `<name>` in a template by its value; return None where a value is missing or not a number."""
    if any(name not in values or values[name] != values[name] for name in names_in(template)):
        return None
    return _PLACE.sub(lambda match: _text(values[match.group(1)]), template)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else number(value)


def values_of(report: Report) -> dict[str, Value]:
    """Return {name: value} of every counter and of all other numbers that entries mention.

    A counter has its own name. The unit of every other number is in its name or in the entries.
    """
    evidence = report.evidence
    found: dict[str, Value] = dict(evidence.counters)
    of = {"gpu": evidence.gpu, "occupancy": evidence.occupancy, "program": evidence.program, "timing": evidence.timing}
    for group, thing in of.items():
        found |= {f"{group}.{name}": value for name, value in _flat(thing)}
    for group, values in (
        ("gpu", _gpu(report)),
        ("occupancy", _occupancy(report)),
        ("launch", _launch(report)),
        ("program", _program(report)),
        ("timing", _timing(report)),
        ("stall", _stalls(report)),
        ("instructions", _instructions(report)),
        ("cache", _caches(report)),
        ("space", _spaces(report)),
        ("roofline", _roofline(report)),
        ("share", _shares(report)),
        ("pipe", dict(evidence.timing.pipe_utilisation_pct)),
    ):
        found |= {f"{group}.{name}": value for name, value in values.items()}
    total = sum(evidence.timing.stalls.values())
    found |= {f"stall_pct.{name}": _over(100 * held, total) for name, held in evidence.timing.stalls.items()}
    for reason, held in evidence.timing.stalls.items():
        found[f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"] = held
    uses = [use for use in utilisations(evidence) if use.share_pct >= 1]
    found["utilisation"] = ", ".join(f"{use.unit} {use.share_pct:.1f} %" for use in uses)
    found["pipes"] = ", ".join(f"{use.unit} {use.share_pct:.1f} %" for use in uses if use.unit.endswith("pipe"))
    found["bottleneck"] = report.bottleneck.sentence
    return found


def _flat(thing: Any, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Yield (name, value) for every number and text in a dataclass; in nested ones, the name is "outer.inner"."""
    for field in fields(thing):
        value = getattr(thing, field.name)
        if is_dataclass(value):
            yield from _flat(value, f"{prefix}{field.name}.")
        elif isinstance(value, (int, float, str)):
            yield prefix + field.name, value


def _over(a: float, b: float) -> float:
    """Return a / b. Where b is 0 the result is NaN, so that `worked` lines with it are left out."""
    return a / b if b else math.nan


def _gpu(report: Report) -> dict[str, Value]:
    gpu = report.evidence.gpu
    return {
        "l1.latency": gpu.l1.hit_latency_cycles[0],
        "shared.latency": gpu.shared.load_latency_cycles[0],
        "l2.size_mib": gpu.l2.size_bytes / 2**20,
    }


def _occupancy(report: Report) -> dict[str, Value]:
    occupancy, parts = report.evidence.occupancy, report.evidence.gpu.sm.sub_partitions
    return {
        "limiters_text": " and ".join(LIMITERS[name] for name in occupancy.limiters),
        "warps_per_sub_partition": occupancy.warps_per_sm / parts,
    }


def _launch(report: Report) -> dict[str, Value]:
    evidence, labels = report.evidence, report.labels
    threads = math.prod(evidence.block)
    found: dict[str, Value] = {
        "blocks": evidence.blocks,
        "busy_sms": min(evidence.blocks, evidence.gpu.sm.count),
        "threads_per_block": threads,
        "warps_per_block": -(-threads // WARP_LANES),
        "threads": threads * evidence.blocks,
        "registers_per_block": threads * evidence.program.registers,
        "l1_bytes": evidence.gpu.l1.unified_bytes - evidence.occupancy.carveout_bytes,
    }
    found |= {f"grid_{axis}": size for axis, size in zip("xyz", evidence.grid, strict=True)}
    if labels.m and labels.n and labels.k:
        products = labels.m * labels.n * labels.k
        found |= {"m": labels.m, "n": labels.n, "k": labels.k, "products": products, "gemm_flops": 2 * products}
    return found


def _program(report: Report) -> dict[str, Value]:
    program = report.evidence.program
    return {
        "instructions": len(program.instructions),
        "code_bytes": 16 * len(program.instructions),
    }


def _timing(report: Report) -> dict[str, Value]:
    timing, sm = report.evidence.timing, report.evidence.gpu.sm
    issued = timing.issue_active_pct / 100
    waves_up = math.ceil(timing.waves)
    return {
        "kernel_us": timing.cycles / timing.sm_clock_hz * 1e6,
        "clock_mhz": timing.sm_clock_hz / 1e6,
        "issued_per_cycle": issued,
        "cycles_per_issue": _over(1, issued),
        "ipc": issued * sm.sub_partitions,
        "warps_per_scheduler": timing.achieved_occupancy_pct / 100 * sm.max_warps / sm.sub_partitions,
        "waves_up": waves_up,
        "tail_share": 1 - _over(timing.waves, waves_up),
    }


def _stalls(report: Report) -> dict[str, Value]:
    stalls = report.evidence.timing.stalls
    held = {reason: cycles for reason, cycles in stalls.items() if reason != "selected" and cycles}
    largest = max(held, key=lambda reason: held[reason]) if held else "none"
    return {**stalls, "sum": sum(stalls.values()), "largest": largest}


def _instructions(report: Report) -> dict[str, Value]:
    evidence = report.evidence
    products = by_class(evidence).get(MixClass.FMA, 0.0)
    loads = sum(row.requests for row in evidence.traffic if row.space == "shared" and row.op == "ld")
    return {
        "multiply_adds": products,
        "multiply_add_pct": _over(100 * products, evidence.warp_instructions),
        "per_multiply_add": _over(evidence.warp_instructions, products),
        "shared_loads_per_multiply_add": _over(loads, products),
    }


def _caches(report: Report) -> dict[str, Value]:
    evidence = report.evidence
    sector = evidence.gpu.l2.sector_bytes
    through = [row for row in evidence.traffic if row.space != "shared"]
    counters = evidence.counters

    def size(name: str) -> float:
        return counters.get(name, math.nan) * sector

    return {
        "l1_sectors": sum(row.sectors for row in through),
        "l1_hit_sectors": sum(row.l1_hit_sectors for row in through),
        "l2_read_bytes": size("l1tex__m_xbar2l1tex_read_sectors.sum"),
        "l2_write_bytes": size("l1tex__m_l1tex2xbar_write_sectors.sum"),
        "l2_bytes": size("lts__t_sectors.sum"),
        "l2_load_bytes": size("lts__t_sectors_op_read.sum"),
        "l2_store_bytes": size("lts__t_sectors_op_write.sum"),
        "l2_sectors_per_request": _over(
            counters.get("lts__t_sectors_srcunit_tex.sum", 0.0), counters.get("lts__t_requests_srcunit_tex.sum", 0.0)
        ),
    }


def _spaces(report: Report) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for space in SPACES:
        traffic = space_traffic(report.evidence, space)
        ideal = sum(row.ideal_sectors for row in report.evidence.traffic if row.space == space)
        found |= {f"{space}.{name}": value for name, value in _flat(traffic)}
        found |= {
            f"{space}.sectors_per_request": _over(traffic.sectors, traffic.requests),
            f"{space}.ideal_sectors": ideal,
            f"{space}.excess": _over(traffic.sectors, ideal),
        }
    return found


def _roofline(report: Report) -> dict[str, Value]:
    line, gpu, timing = report.evidence.roofline, report.evidence.gpu, report.evidence.timing
    if not line.flops or line.achieved_flops is None or line.percent_of_attainable is None:
        return {}
    needed = report.labels.operations(line.flops)
    found: dict[str, Value] = {
        "flops": line.flops,
        "needed_flops": needed,
        "precision": line.precision,
        "bound": line.bound,
        "peak_tflops": line.peak_flops / 1e12,
        "peak_gflops": line.peak_flops / 1e9,
        "attainable_tflops": line.attainable_flops / 1e12,
        "achieved_tflops": line.achieved_flops / 1e12,
        "needed_mflops": needed / timing.duration_us,
        "percent_of_attainable": line.percent_of_attainable,
        "percent_of_peak": 100 * needed / timing.duration_us * 1e6 / line.peak_flops,
    }
    for level in line.levels:
        found |= {
            f"{level.name}.bytes": level.bytes_moved,
            f"{level.name}.mb": level.bytes_moved / 1e6,
            f"{level.name}.gbs": level.peak_bytes_per_s / 1e9,
            f"{level.name}.intensity": level.intensity_flops_per_byte,
            f"{level.name}.ridge": level.ridge_flops_per_byte,
        }
    latency_s = gpu.dram.latency_cycles / timing.sm_clock_hz
    found["dram.kb_in_flight"] = latency_s * gpu.dram.peak_bytes_per_s / 1e3
    return found


def _shares(report: Report) -> dict[str, Value]:
    """Return how busy units are: names ending in `_pct` in percent of the peak, `data_stage` as a share from 0 to 1."""
    uses = {use.unit: use.share_pct for use in utilisations(report.evidence)}
    named = {"data_stage_pct": DATA_STAGE, "issue_pct": ISSUE, "l2_pct": L2, "dram_pct": DRAM}
    found: dict[str, Value] = {name: uses[unit] for name, unit in named.items() if unit in uses}
    if DATA_STAGE in uses:
        found["data_stage"] = uses[DATA_STAGE] / 100
    return found
