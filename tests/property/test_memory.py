"""The fast memory models equal slow ones on random accesses."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import memory_twin as twin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import alone, launch, program, warp_trace

from gemmsim.gpu.load import load_gpu
from gemmsim.memory import l2_sectors
from gemmsim.memory.caches import l2 as l2_replay
from gemmsim.memory.caches.l2 import lines_of_set
from gemmsim.memory.grid.placement import place
from gemmsim.memory.requests.atomics import packets_of
from gemmsim.memory.requests.banks import wavefronts
from gemmsim.memory.requests.coalescer import coalesce
from gemmsim.memory.serve import serve

MNEMONICS = (
    "LDG.E", "LDG.E.128", "STG.E.64", "RED.E.ADD", "ATOMG.E.ADD", "LDGSTS.E.128", "LDS", "STS.128", "LDL", "STL",
    "LDGSTS.E.BYPASS.128", "LDG.E.EF", "STG.E.EF",
)  # fmt: skip
WIDTHS = (4, 16, 8, 4, 4, 16, 4, 16, 4, 4, 16, 4, 4)


@st.composite
def lanes(draw, width: int, span: int = 64):  # type: ignore[no-untyped-def]
    """32 addresses: strided, shared by blocks of lanes or scattered; some lanes may be inactive."""
    unit = draw(st.integers(0, span))
    form = draw(st.sampled_from(["stride", "shared", "pairs", "scattered"]))
    step = draw(st.integers(0, 9))
    if form == "stride":
        units = [unit + step * lane for lane in range(32)]
    elif form == "shared":
        units = [unit + step * (lane >> draw(st.integers(0, 5))) for lane in range(32)]
    elif form == "pairs":
        units = [unit + step * (lane & ~(1 << draw(st.integers(0, 4)))) for lane in range(32)]
    else:
        units = draw(st.lists(st.integers(0, span), min_size=32, max_size=32))
    mask = draw(st.one_of(st.just(2**32 - 1), st.integers(1, 2**32 - 1)))
    return [u * width if mask >> lane & 1 else None for lane, u in enumerate(units)]


@st.composite
def traces(draw):  # type: ignore[no-untyped-def]
    warps = draw(st.integers(1, 3))
    ids = range(draw(st.integers(1, 6)))

    def access():  # type: ignore[no-untyped-def]
        pc = draw(st.integers(0, len(MNEMONICS) - 1))
        return pc, draw(lanes(WIDTHS[pc]))

    blocks = {b: [[access() for _ in range(draw(st.integers(0, 4)))] for _ in range(warps)] for b in ids}
    return warp_trace(len(MNEMONICS), blocks)


@given(st.sampled_from([1, 2, 4, 8, 16]).flatmap(lambda w: st.tuples(st.just(w), lanes(w))), st.booleans())
@settings(max_examples=200, deadline=None)
def test_one_request(access: tuple[int, twin.Lanes], merges: bool) -> None:
    width, addresses = access
    offsets = np.array([[a or 0 for a in addresses]], np.int64)
    active = np.array([[a is not None for a in addresses]])
    got = coalesce(offsets, active, np.array([width]))
    assert got.sector_offset.tolist() == twin.sectors(addresses)
    whole = [len(twin.bytes_of(addresses, width, sector)) == 32 for sector in twin.sectors(addresses)]
    assert got.sector_whole.tolist() == whole
    assert got.sectors.tolist() == [len(twin.sectors(addresses))]
    assert got.lines.tolist() == [len(twin.lines(addresses))]
    assert got.used_bytes.tolist() == [twin.used_bytes(addresses, width)]
    assert wavefronts(offsets, active, width, merges).tolist() == [twin.wavefronts(addresses, width, merges)]


@given(st.sampled_from([4, 8]).flatmap(lambda width: st.lists(lanes(width, 24), min_size=1, max_size=4)))
@settings(max_examples=200, deadline=None)
def test_packets_of_atomics(requests: list[twin.Lanes]) -> None:
    offsets = np.array([[a or 0 for a in addresses] for addresses in requests], np.int64)
    active = np.array([[a is not None for a in addresses] for addresses in requests])
    atomic = np.array([number % 3 != 2 for number in range(len(requests))])
    got = packets_of(offsets, active, atomic)
    sent = [twin.packets(addresses) if is_atomic else [] for addresses, is_atomic in zip(requests, atomic, strict=True)]
    assert got.by_shape(got.packets).tolist() == [len(of) for of in sent]
    assert got.by_shape(got.sectors).tolist() == [sum(len({a // 32 for a in p}) for p in of) for of in sent]
    lines = [{min(p) // 128 for p in of} for of in sent]
    first = [
        min(min(p) // 32 for p in of if min(p) // 128 == line)
        for of, all_of in zip(sent, lines, strict=True)
        for line in sorted(all_of)
    ]
    assert [sector // 4 for sector in got.first.tolist()] == [sector // 4 for sector in first]


@given(
    traces(),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from([(0, 256, 2), (128, 256, 2), (384, 512, 2), (512, 512, 1), (1024, 4096, 4), (4096, 4096, 4)]),
    st.sampled_from([(1024, 4), (1024, 2), (65536, 4)]),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from([0, 3, 265]),
    st.sampled_from([(0, (1, 2, 5)), (1, (1, 2, 5)), (5, (0, 1, 2)), (0, (0, 0, 1))]),
)
@settings(max_examples=80, deadline=None)
def test_caches(  # type: ignore[no-untyped-def]
    trace,
    sms: int,
    resident: int,
    l1: tuple[int, int, int],
    l2: tuple[int, int],
    warm: bool,
    partitions: int,
    fetch_lookups: int,
    room: tuple[int, tuple[int, int, int]],
) -> None:
    built = program(*MNEMONICS)
    gpu = load_gpu("h200")
    gpu = replace(
        gpu,
        sm=replace(gpu.sm, count=sms),
        l1=replace(
            gpu.l1,
            unified_bytes=l1[1],
            ways=l1[2],
            fetch_lookups=fetch_lookups,
            spare_lines=room[0],
            lost_lines=room[1],
            joined_lines=0,  # stores go to L2 one by one; together: tests/hand/memory/test_joined_stores.py
        ),
        l2=replace(
            gpu.l2,
            size_bytes=l2[0],
            ways=l2[1],
            partitions=partitions,
            fetch_bytes=32,  # 64: tests/hand/memory/test_l2.py
        ),
    )
    given = launch((len(trace.blocks), 1, 1), 32 * trace.warps_per_block)
    replays = []

    def replay_l2(*of):  # type: ignore[no-untyped-def]
        replays.append(l2_replay.replay_l2(*of))
        return replays[-1]

    with patch.object(l2_sectors, "replay_l2", replay_l2):
        traffic = serve(built, given, trace, gpu, l1[0], resident, warm)
    placed = place(alone(len(trace.blocks)), gpu.sm, resident)
    where = dict(enumerate(zip(placed.sm.tolist(), placed.generation.tolist(), strict=True)))
    hits, missed, written_back = twin.replay(
        built,
        trace,
        where,
        (*l1, fetch_lookups, gpu.l1.set_flips, *room),
        l2,
        resident,
        warm,
        [sm % partitions for sm in range(sms)],
        partitions,
        lines_of_set(gpu.l2),
    )
    through_l1 = [r for r, row in enumerate(trace.record_pc.tolist()) if MNEMONICS[row] not in ("LDS", "STS.128")]
    assert [int(n) for replayed in replays for n in replayed.missed] == [missed[r] for r in through_l1]
    assert traffic.counters["dram__sectors_read.sum"] == sum(missed)
    assert traffic.counters["dram__sectors_write.sum"] == written_back
    assert sum(row.l1_hit_sectors for row in traffic.instructions) == sum(hits)
    for index, row in enumerate(trace.record_pc.tolist()):
        reads = MNEMONICS[row][:3] in ("LDG", "LDL")
        shared = MNEMONICS[row] in ("LDS", "STS.128")
        sent = 0 if shared else len(twin.sectors(twin.lanes_of(trace, index)))
        if MNEMONICS[row].startswith(("RED", "ATOM")):
            sent = twin.sectors_of_packets(twin.lanes_of(trace, index))
        assert traffic.cost.l2_sectors[index] == (sent - hits[index] if reads else sent)


@given(traces())
@settings(max_examples=50, deadline=None)
def test_totals_are_sums_over_instructions(trace) -> None:  # type: ignore[no-untyped-def]
    gpu = load_gpu("h200")
    gpu = replace(gpu, l2=replace(gpu.l2, fetch_bytes=32))  # what is fetched and not asked for is not counted
    traffic = serve(program(*MNEMONICS), launch((len(trace.blocks), 1, 1)), trace, gpu, 65536, 1)
    rows = traffic.instructions

    def total(field: str, *ops: str, spaces: tuple[str, ...] = ("global", "local")) -> float:
        return sum(getattr(r, field) for r in rows if r.space in spaces and (not ops or r.op in ops))

    counters = traffic.counters
    loads = total("sectors", "ld", "ldgsts", spaces=("global",))
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == loads
    assert counters["lts__t_sectors_srcunit_tex.sum"] == total("l2_sectors") - total("merged_sectors")
    assert counters["dram__sectors_read.sum"] == total("dram_sectors")
    every = ("global", "local", "shared")
    assert counters["l1tex__data_pipe_lsu_wavefronts.sum"] == total("wavefronts", spaces=every)
    assert counters["l1tex__data_pipe_lsu_wavefronts.sum"] == traffic.cost.wavefronts.sum()
    assert counters["smsp__inst_executed.sum"] == trace.executed.sum()
    assert set(counters) == set(traffic.provenance)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_weights_multiply(weight: float) -> None:
    block = [[(0, [4 * lane for lane in range(32)]), (6, [0] * 32)]]
    trace = warp_trace(len(MNEMONICS), {0: block}, [weight])
    counters = serve(program(*MNEMONICS), launch(), trace, load_gpu("h200"), 65536, 1).counters
    assert counters["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 4 * weight
    assert counters["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == weight
