"""--set reaches the constants of the SM: each of these, far off, gives a launch another time."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from gemmsim.api import Counted, count, time
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import LaunchSpec


@cache
def counted(kernel: str, size: int) -> tuple[LaunchSpec, Counted]:
    spec = ladder_launch(LadderCase(kernel, size, size, size), load_gpu("h200"))
    return spec, count(spec)


def cycles(kernel: str, size: int, *overrides: str) -> float:
    spec, found = counted(kernel, size)
    return time(found, replace(spec, gpu=load_gpu("h200", overrides))).cycles


@pytest.mark.parametrize(
    ("kernel", "size", "override"),
    [
        ("double_buffered", 256, "l1.tagged_after_shared_requests=0"),
        ("vectorized", 128, "register_file.result_write=1"),
        ("vectorized", 128, "register_file.load_write_to_use=1"),
        ("vectorized", 128, "register_file.load_write_most_wait=2"),
        ("vectorized", 128, "register_file.load_write_hold=9"),
        ("tiled", 64, "register_file.read_window=1"),
        ("tiled", 64, "register_file.second_pass=5"),
        ("coalesced", 64, "register_file.uniform_row_registers=1"),
        ("coalesced", 64, "register_file.uniform_read_window=1"),
        ("coalesced", 64, "register_file.uniform_operand_window=3"),
        ("coalesced", 64, "sources_read.global_load=40,40,40"),
        ("async_pipelined", 128, "sources_read.global_store=40,40,40"),
        ("async_pipelined", 128, "sources_read.shared_load=40,40,40"),
        ("double_buffered", 128, "sources_read.shared_store=40,40,40"),
        ("async_pipelined", 128, "sources_read.copy=60,60,60"),
        ("tensorcore_double_buffered", 128, "pipes.tensor.warps_take_turns=0"),
        ("tiled", 64, "pipes.alu.passes_barrier=0"),
        ("vectorized", 128, "pipes.lsu.passes_barrier=1"),
    ],
)
def test_another_number_gives_another_time(kernel: str, size: int, override: str) -> None:
    assert cycles(kernel, size, override) != cycles(kernel, size)
