"""The memory path by hand. On the test GPU a request reaches the data stage 11 (7 + 4) cycles after issue."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sm_builder import EXIT, GPU, Path, idle_sm, ins, issues, program, row, simulate

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.program import Operand, OperandKind
from gemmsim.sm.spec import Rates
from gemmsim.sm.streams import NO_RECORD, RecordCycles
from gemmsim.sm.units.instruction import Instruction, Reason
from gemmsim.sm.units.server import book

ONE = RecordCycles(1, 0, 0, 0)


def load(shared: bool) -> Instruction:
    latency = 24.0 if shared else 32.0
    narrow, read = (24.0, 9) if shared else (0.0, 11)
    return row(
        Instruction,
        writes_registers=1,
        shared_load=shared,
        hit_latency_cycles=latency,
        narrow_latency_cycles=narrow,
        sources_read_cycles=read,
        lane_groups=1,
    )


def test_requests_leave_the_shared_queue_in_the_order_in_which_they_enter_it():
    """By hand: a load from shared memory of 50 wavefronts takes the data stage from cycle 11 on, so that a second one
    leaves the queue in cycle 61. A load through L1 behind both looks up its tags then; where sub-partitions share no
    queue, in cycle 13."""
    for entries, looked_up in ((4, 61), (0, 13)):
        path = Path(replace(GPU, mio=replace(GPU.mio, shared_entries=entries)))
        path.request(0, load(True), RecordCycles(50, 0, 0, 0), 0)
        path.request(1, load(True), ONE, 1)
        path.request(2, load(False), RecordCycles(1, 1, 0, 0), 2)
        assert path.sm.memory.tags.next_free == looked_up + 1


def test_a_special_register_comes_behind_the_shared_queue():
    """By hand: two loads issue in cycles 1 and 2, and the second one leaves the queue in cycle 62, when the 50
    wavefronts of the first are served. S2R, which issues in cycle 3, goes on 7 cycles before, and is there 20 later.
    Where sub-partitions share no queue, it is there 20 cycles after its issue."""
    code = program(ins("LDS", 1), ins("LDS", 1), ins("S2R", 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    for entries, there in ((4, 62 - 7 + 20), (0, 3 + 20)):
        gpu = replace(GPU, mio=replace(GPU.mio, shared_entries=entries))
        assert issues(code, cost=RecordCycles(50, 0, 0, 0), gpu=gpu).cycles(0)[3] == there


def test_chain_of_dependent_shared_loads():
    chain = [ins("LDS", 2, write=0, wait=1)] * 10
    assert issues(program(*chain, EXIT), cost=ONE).cycles(0) == [1 + 24 * i for i in range(10)] + [219]
    # the next load, 24 cycles later, is waited for with the stall count (1 cycle) and the scoreboard (22)
    assert simulate(program(*chain, EXIT), cost=ONE).stall_cycles[5, Reason["SHORT_SCOREBOARD"]] == 22


@pytest.mark.parametrize(
    ("mnemonic", "wavefronts", "measured"),
    [("LDS", 1, 23.13), ("LDS", 2, 25.06), ("LDS", 4, 29.0), ("LDS", 8, 37.0), ("LDS.64", 1, 23.13),
     ("LDS.64", 2, 26.0), ("LDS.64", 4, 30.0), ("LDS.128", 2, 26.0), ("LDS.128", 4, 32.0), ("LDS.128", 8, 40.0)],
)  # fmt: skip
def test_chains_of_shared_loads_as_timed_on_an_h200(mnemonic, wavefronts, measured):
    """One warp; of the time measured for each of 16 loads, the loop around them takes up to 0.13 cycles
    (tests/records/h200_shared_loads.json; a load of 64 bits that all lanes share takes one wavefront)."""
    chain = [ins(mnemonic, 2, write=0, wait=1)] * 16
    cycles = issues(program(*chain, EXIT), cost=RecordCycles(wavefronts, 0, 0, 0), gpu=load_gpu("h200")).cycles(0)
    assert (cycles[15] - cycles[0]) / 15 == pytest.approx(measured - 0.06, abs=0.1)


@pytest.mark.parametrize(
    ("mnemonic", "wavefronts", "latency"),
    [("LDS", 1, 24), ("LDS.64", 2, 24 + 2 + 1), ("LDS.128", 4, 24 + 6 + 3), ("LDG.E", 1, 32), ("LDG.E.64", 2, 34),
     ("LDG.E.128", 4, 38), ("LDS", 8, 24 + 14), ("LDS.128", 2, 24 + 2 + 1), ("LDS.128", 1, 26),
     ("LDSM.16.M88.4", 4, 24 + 6)],
)  # fmt: skip
def test_load_to_use_latency(mnemonic, wavefronts, latency):
    code = program(ins(mnemonic, 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=RecordCycles(wavefronts, 0, 0, 0)).cycles(0)[1] == 1 + latency


@pytest.mark.parametrize(
    ("mnemonic", "cost", "latency"),
    [("LD.E", RecordCycles(1, 0, 0, 0), 24), ("LD.E", RecordCycles(1, 1, 0, 0), 32),
     ("LD.E.128", RecordCycles(4, 0, 0, 0), 24 + 6 + 3), ("LD.E.128", RecordCycles(4, 1, 0, 0), 38),
     ("LD.E", RecordCycles(1, 0, 0, 0, remote=1), 90), ("LD.E.128", RecordCycles(4, 0, 0, 0, remote=1), 90 + 6 + 3)],
)  # fmt: skip
def test_a_generic_load_takes_the_time_of_the_memory_that_it_reaches(mnemonic, cost, latency):
    code = program(ins(mnemonic, 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=cost).cycles(0)[1] == 1 + latency


def test_generic_accesses_of_shared_memory_pass_like_shared_ones():
    """Loads and stores one after the other, of four warps: the same cycles as with LDS and STS."""

    def cycles(load_name, store_name):
        code = program(*[ins(load_name, 1, write=0, read=1), ins(store_name, 1, read=2, wait=1)] * 6, EXIT)
        return simulate(code, 4, cost=RecordCycles(2, 0, 0, 0)).cycles

    assert cycles("LD.E", "ST.E") == cycles("LDS", "STS")


# Huerta et al., MICRO'25, table 1 (Ampere, a request every 2 cycles to the shared stages): issue cycles of the sixth to
# eighth memory instruction of each active sub-partition, whose first five issue in cycles 2 to 6.
TABLE_1 = {
    1: [(13,), (17,), (21,)],
    2: [(13, 15), (17, 19), (21, 23)],
    3: [(13, 15, 17), (19, 21, 23), (25, 27, 29)],
    4: [(13, 15, 17, 19), (21, 23, 25, 27), (29, 31, 33, 35)],
}


@pytest.mark.parametrize("active", TABLE_1)
def test_queues_behave_as_measured_on_ampere(active):
    ampere = replace(GPU, shared=replace(GPU.shared, request_interval_cycles=2.0))
    seen = issues(program(*[ins("LDS", 1)] * 8, EXIT), warps=active, cost=ONE, gpu=ampere)
    for warp in range(active):
        rows = [1 + cycle for cycle in seen.cycles(warp)]  # ours start in cycle 1
        assert rows[:5] == [2, 3, 4, 5, 6]
        assert rows[5:8] == [row[warp] for row in TABLE_1[active]]


# Own microbenchmark on an H200: cycle at which the n-th of equal memory instructions issues, the first at 0. `active`
# warps run, one a sub-partition; of several the earliest and the latest are given.
HOPPER = replace(GPU, mio=load_gpu("h200").mio)
MEASURED_QUEUES = [
    ("STS", 1, 1, {10: (9, 9), 11: (11, 11), 12: (15, 15), 16: (31, 31), 32: (95, 95), 64: (223, 223)}),
    ("LDG", 1, 1, {10: (9, 9), 11: (11, 11), 12: (15, 15), 16: (31, 31), 32: (95, 95), 64: (223, 223)}),
    ("LDS", 1, 1, {13: (12, 12), 14: (14, 14), 16: (18, 18), 32: (50, 50), 64: (114, 114)}),
    ("LDS", 1, 4, {10: (9, 9), 12: (12, 15), 16: (28, 31), 32: (92, 95), 64: (220, 223)}),
    ("STS", 32, 4, {14: (23, 26), 16: (31, 152), 18: (281, 408), 20: (537, 664), 48: (4121, 4248)}),
    ("LDS", 16, 4, {14: (20, 23), 16: (28, 85), 18: (150, 213), 20: (278, 341), 48: (2070, 2133)}),
]


@pytest.mark.parametrize(("mnemonic", "wavefronts", "active", "measured"), MEASURED_QUEUES)
def test_queues_behave_as_measured_on_hopper(mnemonic, wavefronts, active, measured):
    """Within 4 cycles, and one request where wavefronts make requests long."""
    code = program(*[ins(mnemonic, 1)] * 64, EXIT)
    seen = issues(code, warps=active, cost=RecordCycles(wavefronts, 0, 0, 0), gpu=HOPPER)
    for n, (earliest, latest) in measured.items():
        at = sorted(seen.cycles(warp)[n - 1] - 1 for warp in range(active))
        allowed = 4 if wavefronts == 1 else 4 * wavefronts
        assert at[0] == pytest.approx(earliest, abs=allowed)
        assert at[-1] == pytest.approx(latest, abs=allowed)


def test_full_queue_is_a_throttle_of_its_kind():
    code = program(*[ins("LDS", 1)] * 8, EXIT)
    totals = simulate(code, cost=ONE)
    assert totals.stall_cycles[5, Reason["MIO_THROTTLE"]] == 6
    assert simulate(program(*[ins("LDG", 1)] * 8, EXIT), cost=ONE).stall_cycles[5, Reason["LG_THROTTLE"]] == 6


def test_four_sub_partitions_fill_the_data_stage():
    totals = simulate(program(*[ins("LDS", 1)] * 100, EXIT), warps=4, cost=ONE)
    # 400 wavefronts at one a cycle
    assert totals.busy_cycles["lsu"] == 400
    slow = simulate(program(*[ins("LDS", 1)] * 100, EXIT), warps=4, cost=RecordCycles(2, 0, 0, 0))
    assert slow.cycles - totals.cycles == pytest.approx(400, abs=45)  # the 20 in the queues at the end need no room


def test_32_wavefronts_occupy_the_data_stage_32_cycles():
    code = program(ins("LDS", 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    seen = issues(code, 2, cost=RecordCycles(32, 0, 0, 0))
    assert seen.cycles(0)[1] == 1 + 24 + 31 * 2  # a load alone takes two cycles a wavefront
    # that of the other sub-partition, issued at 1, would begin at 12, and begins at 12 + 32
    assert seen.cycles(1)[1] == seen.cycles(0)[1] + 32


def test_address_unit_keeps_a_request_until_the_data_stage_takes_it():
    path, access = Path(), load(shared=True)
    begins = [path.request(now, access, cost)[0] for now, cost in ((1, RecordCycles(32, 0, 0, 0)), (2, ONE), (3, ONE))]
    # 32 cycles from 12 on; the second waits for them in the address unit, so the third enters it at 44 for 4 cycles
    assert begins == [12, 44, 48]


def test_tag_stage_is_the_bottleneck_of_many_lines():
    code = program(*[ins("LDG", 1, write=0)] * 2, ins("FFMA", 1, wait=1), EXIT)
    # second: would begin at 13, begins at 12 + 8; 7 tag cycles longer than one line group
    assert issues(code, cost=RecordCycles(1, 8, 0, 0)).cycles(0)[2] == 2 + 32 + 7 + 7


def test_l2_and_dram_latency_with_the_transfer_of_further_sectors():
    code = program(ins("LDG", 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=RecordCycles(1, 1, 1, 0)).cycles(0)[1] == 1 + 200
    # 64 bytes a cycle: three more sectors take 1.5 cycles
    assert issues(code, cost=RecordCycles(1, 1, 4, 0)).cycles(0)[1] == 1 + 202
    assert issues(code, cost=RecordCycles(1, 1, 1, 1)).cycles(0)[1] == 1 + 500
    assert simulate(code, cost=RecordCycles(1, 1, 1, 1)).stall_cycles[1, Reason["LONG_SCOREBOARD"]] == 499


def test_whichever_load_comes_first_asks_l2_and_the_others_wait():
    path, access = Path(), load(shared=False)
    asked, present = RecordCycles(1, 1, 1, 0, fetch=7), RecordCycles(1, 1, 0, 0)
    later = 400
    done = [path.request(now, access, cost)[2] for now, cost in ((1, asked), (50, asked), (60, present))]
    assert done == [1 + 200, 201, 60 + 32]
    assert path.request(later, access, asked)[2] == later + 32
    assert path.sm.memory.link.busy_cycles == 0.5  # one sector of 32 bytes, 64 a cycle


def test_share_of_l2_and_dram():
    gpu = replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=4e11, partitions=2, far_latency_cycles=300.0))
    rates = Rates.share(gpu, active_sms=8, sm_clock_hz=1e9)
    assert (rates.l2_bytes_per_cycle, rates.link_bytes_per_cycle) == (50, 64)
    assert rates.l2_latency_cycles == 250
    assert Rates.share(gpu, 2, 1e9).l2_bytes_per_cycle == 200
    halved = replace(gpu, l2=replace(gpu.l2, write_share=0.5))
    assert (Rates.share(halved, 8, 1e9).l2_bytes_per_cycle, Rates.share(halved, 8, 1e9).l2_write_bytes_per_cycle) == (
        50,
        25,
    )


@pytest.mark.parametrize(("merged", "cycles"), [(0, 8), (1, 6), (3, 2), (4, 2)])
def test_sectors_that_come_with_another_request_take_the_link_alone(merged, cycles):
    """Of 16 bytes a cycle that L2 reads for the SM, a sector takes 2 cycles; of the link's 64, four take 2."""
    gpu = replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9))

    def finish(accesses: int) -> float:
        code = program(*[ins("LDG", 1, write=0)] * accesses, ins("FFMA", 1, wait=1), EXIT)
        return simulate(code, 4, cost=RecordCycles(1, 1, 4, 0, merged_sectors=merged), gpu=gpu).cycles

    assert finish(200) - finish(100) == 4 * 100 * cycles


@pytest.mark.parametrize(("mnemonic", "cycles"), [("LDG", 4), ("STG", 8)])
def test_l2_takes_stores_at_its_share_for_them(mnemonic, cycles):
    """32 bytes a cycle of L2's bandwidth, of which stores have half: the 128 bytes of a warp take 4 or 8 cycles."""
    gpu = replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=32e9, write_share=0.5))

    def finish(accesses: int) -> float:
        code = program(*[ins(mnemonic, 1, write=0)] * accesses, ins("FFMA", 1, wait=1), EXIT)
        return simulate(code, 4, cost=RecordCycles(1, 1, 4, 0), gpu=gpu).cycles

    assert finish(200) - finish(100) == 4 * 100 * cycles


def test_exit_drains_the_stores():
    totals = simulate(program(ins("STG", 1), EXIT), cost=RecordCycles(1, 1, 4, 4))
    # data stage 12 to 13, two cycles of the SM's L2 share: gone at 15; EXIT issued at 2
    assert totals.cycles == 15
    assert totals.stall_cycles[1, Reason["DRAIN"]] == 12


def test_a_store_takes_a_cycle_a_sector_and_one_for_each_line_in_part():
    """32 bytes a cycle: of two stores of four sectors, one line written in part, the second leaves 5 cycles after the
    first, and its sources are read 4 cycles later than if it had not waited (it passed the data stage one later)."""
    gpu = replace(GPU, l1=replace(GPU.l1, store_bytes_per_cycle=32.0, partial_line_cycles=1.0))
    path = Path(gpu)
    access = row(Instruction, hit_latency_cycles=32.0, sources_read_cycles=14, lane_groups=1)
    cost = RecordCycles(1, 1, 4, 0, partial_lines=1)
    # At the data stage in cycles 12 and 13, on the way out from 12 to 17 to 22 to 26
    assert path.request(1, access, cost) == (12, 15, 17)
    assert path.request(1, access, cost, 1) == (17, 15 + 4, 22)
    whole = RecordCycles(1, 1, 4, 0)
    assert path.request(1, access, whole, 2) == (22, 15 + 22 - 14, 26)


@pytest.mark.parametrize(("mnemonic", "cycles"), [("STS", 12), ("STG.E.128", 20), ("LDG", 11), ("LDS", 9)])
def test_sources_are_read_long_before_a_request_is_complete(mnemonic, cycles):
    code = program(ins(mnemonic, 1, read=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=ONE).cycles(0)[1] == 1 + cycles
    # a second one waits 3 cycles for the address unit (issued at 2, would start at 9, starts at 12)
    code = program(ins(mnemonic, 1), ins(mnemonic, 1, read=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=ONE).cycles(0)[2] == 2 + cycles + 3


def test_instruction_without_active_lanes_asks_the_data_stage_for_nothing():
    assert simulate(program(ins("LDG", 1), EXIT), cost=NO_RECORD).busy_cycles["lsu"] == 0


def test_copies_are_fenced_by_ldgdepbar():
    sb0 = (Operand(OperandKind.SPECIAL, name="SB0"), Operand(OperandKind.IMMEDIATE, value=0))
    code = program(
        ins("LDGSTS.E.128", 1), ins("LDGDEPBAR", 1, write=0), ins("DEPBAR.LE", 1, operands=sb0), EXIT
    )  # fmt: skip
    assert issues(code, cost=RecordCycles(4, 1, 1, 0)).cycles(0)[2] == 1 + 200


requests = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 6)), max_size=60)


@given(requests)
def test_server_books_the_first_gap_like_a_calendar_of_cycles(steps):
    state, busy, now = idle_sm(), set(), 0
    server = state.sm.memory.data
    for later, distance, cycles in steps:
        now += later
        arrival = now + distance
        begin = arrival
        while any(cycle in busy for cycle in range(begin, begin + cycles)):
            begin += 1
        busy |= set(range(begin, begin + cycles))
        assert book(server, now, arrival, cycles) == begin
    assert server.busy_cycles == len(busy)


def test_sectors_on_their_way_from_dram_take_its_latency_and_none_of_its_bandwidth():
    code = program(ins("LDG", 1, write=0), ins("FFMA", 1, wait=1), EXIT)
    assert issues(code, cost=RecordCycles(1, 1, 1, 0, 1)).cycles(0)[1] == 1 + 500
    sooner = replace(GPU, dram=replace(GPU.dram, shared_sooner_cycles=80.0))
    assert issues(code, gpu=sooner, cost=RecordCycles(1, 1, 1, 0, 1)).cycles(0)[1] == 1 + 500 - 80
    assert issues(code, gpu=sooner, cost=RecordCycles(1, 1, 1, 1, 1)).cycles(0)[1] == 1 + 500 - 80
    assert issues(code, gpu=sooner, cost=RecordCycles(1, 1, 1, 1, 0)).cycles(0)[1] == 1 + 500
    path = Path()
    path.request(1, load(shared=False), RecordCycles(1, 1, 4, 0, 1))
    assert (path.sm.memory.link.busy_cycles, path.sm.memory.dram_share.asked) == (2, 0)


@pytest.mark.parametrize(
    ("mnemonic", "sectors", "cycles"), [("LDG", 4, 2), ("LDG", 2, 1.5), ("STG", 4, 1), ("LDGSTS", 4, 1)]
)
def test_what_arrives_from_l2_takes_the_data_stage_a_line_a_cycle(mnemonic, sectors, cycles):
    """One wavefront, and four sectors of 32 bytes into an array that takes 128 a cycle; stores bring nothing
    back, and what copies bring passes beside the stage."""
    totals = simulate(program(ins(mnemonic, 1), EXIT), cost=RecordCycles(1, 1, sectors, 0))
    assert totals.busy_cycles["lsu"] == cycles


@pytest.mark.parametrize(
    ("sectors", "lines", "merged", "cycles"),
    [
        (1, 1, 0, 3.7),  # as 1.85 sectors
        (4, 4, 0, 4 * 3.7),
        (4, 1, 0, 4 * 2.0),  # a whole line
        (4, 4, 2, 2 * 3.7),  # half of them come with another SM's request
    ],
)
def test_a_line_takes_l2_some_time_however_few_sectors_are_asked_for(
    sectors: int, lines: int, merged: int, cycles: float
) -> None:
    """The SM's share of L2 is 16 bytes a cycle, so a sector takes two."""
    gpu = replace(GPU, l2=replace(GPU.l2, read_bytes_per_s=16e9, least_sectors=1.85))
    path = Path(gpu)
    path.request(0, load(False), RecordCycles(1, 1, sectors, 0, lines=lines, merged_sectors=merged), 0)
    assert path.sm.memory.l2_share.asked == pytest.approx(cycles)
