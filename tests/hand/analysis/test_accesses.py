"""Single accesses taken from a trace, and a block's way through its arrays, on a GEMM small enough to know by heart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trace_builder import Accesses, program, warp_trace

from gemmsim.analysis.accesses.phases import MOST_PHASES
from gemmsim.analysis.accesses.sample import sample_accesses
from gemmsim.analysis.accesses.types import AccessSample, BlockView, Rectangle
from gemmsim.isa.program import Operand, OperandKind, Program
from gemmsim.launch.spec import GemmCheck
from gemmsim.memory.requests.access import access_of
from gemmsim.memory.requests.shapes import shapes_of
from gemmsim.trace.types import Argument, Launch, PlacedVariable

A, B, C = 1 << 40, 2 << 40, 3 << 40
LOAD_A, LOAD_B, STORE_SHARED, MULTIPLY, BRANCH, STORE_C = range(6)
NOTHING = [None] * 32  # executed, no access
ALL = range(32)


def gemm_program() -> Program:
    plain = program("LDG.E", "LDG.E", "STS", "FFMA", "BRA", "STG.E")
    back = replace(plain.instructions[BRANCH], operands=(Operand(OperandKind.TARGET, value=0),))
    return replace(plain, instructions=(*plain.instructions[:BRANCH], back, plain.instructions[STORE_C]))


def gemm_block(x: int, y: int, depth: int) -> list[Accesses]:
    """32 columns and 4 rows of C [8, 64] = A [8, depth] @ B [depth, 64], a warp a row; the shared store is a column
    of rows of 32 words: every lane in bank 5."""
    warps = []
    for row in range(4 * y, 4 * y + 4):
        columns = [32 * x + lane for lane in ALL]
        accesses: list = []
        for k in range(depth):
            accesses.append((LOAD_A, [A + 4 * (row * depth + k)] * 32))
            accesses.append((LOAD_B, [B + 4 * (k * 64 + column) for column in columns]))
            accesses.append((STORE_SHARED, [128 * lane + 20 for lane in ALL]))
            accesses += [(MULTIPLY, NOTHING), (BRANCH, NOTHING)]
        accesses.append((STORE_C, [C + 4 * (row * 64 + column) if column % 2 else None for column in columns]))
        warps.append(accesses)
    return warps


def looked_at(depth: int = 4, flat: bool = False) -> tuple[dict[int, AccessSample], BlockView]:
    code = gemm_program()
    blocks = {x + 2 * y: gemm_block(x, y, depth) for y in range(2) for x in range(2)}
    trace = warp_trace(len(code.instructions), blocks)
    accesses = {i: a for i, one in enumerate(code.instructions) if (a := access_of(one))}
    sizes = ((8, depth), (depth, 64), (8, 64))
    values = [np.zeros(rows * columns if flat else (rows, columns), np.float32) for rows, columns in sizes]
    arguments = (*(Argument("f32", value.shape, value) for value in values), Argument("f32", (), 1.0))
    launch = Launch((2, 2, 1), (32, 4, 1), arguments)
    shapes = shapes_of(trace, accesses)
    found, view = sample_accesses(code, launch, trace, shapes, (A, B, C, None), GemmCheck(0, 1, 2), (8, 64, depth))
    return {sample.index: sample for sample in found}, view


def test_broadcast_load_lane_by_lane() -> None:
    """Of a 2 x 2 grid block (1, 1) is shown; its first row of C is 4, and a row of A has 4 elements: 16 before it."""
    samples, view = looked_at()
    assert (view.block, view.place) == (3, (1, 1, 0))
    sample = samples[LOAD_A]
    access = sample.representative
    assert (sample.space, sample.op, sample.width_bytes, sample.mnemonic) == ("global", "ld", 4, "LDG.E")
    assert (access.block, access.warp, access.execution) == (3, 0, 0)
    assert access.addresses == (A + 4 * 16,) * 32  # row 4 of 4 elements
    assert (access.sectors, access.ideal_sectors, access.wavefronts, access.conflicts) == (1, 1, 1, 0)
    assert access.sector == (0,) * 32 and access.wavefront == (0,) * 32 and access.bank == (16,) * 32
    assert (access.argument, access.elements) == (0, ((4, 0),) * 32)
    assert access.active_mask == 0xFFFFFFFF


def test_packed_load_and_half_a_store() -> None:
    samples, _ = looked_at()
    load, store = samples[LOAD_B].representative, samples[STORE_C].representative
    assert load.elements == tuple((0, 32 + lane) for lane in ALL)
    assert load.sector == tuple(lane // 8 for lane in ALL)
    assert load.sector_addresses == tuple(B + 128 + 32 * s for s in range(4))
    assert load.bank == tuple(ALL)
    odd = [lane % 2 == 1 for lane in ALL]
    assert store.active_mask == 0xAAAAAAAA
    assert store.elements == tuple((4, 32 + lane) if on else None for lane, on in zip(ALL, odd, strict=True))
    assert store.sector == tuple(lane // 8 if on else -1 for lane, on in zip(ALL, odd, strict=True))
    assert (store.sectors, store.ideal_sectors) == (4, 2)  # 16 lanes of 4 bytes would fill two


def test_shared_store_takes_a_wavefront_a_lane() -> None:
    access = looked_at()[0][STORE_SHARED].representative
    assert access.bank == (5,) * 32
    assert access.wavefront == tuple(ALL)
    assert (access.wavefronts, access.conflicts, access.sectors) == (32, 31, 0)
    assert (access.argument, access.elements, access.sector_addresses) == (None, (), ())


def test_the_worst_access_is_found_in_other_blocks() -> None:
    """One access of one other block is scattered over 32 sectors; the block shown makes none like it."""
    code, blocks = gemm_program(), {b: gemm_block(b % 2, b // 2, 2) for b in range(4)}
    blocks[0][2][5] = (LOAD_A, [A + 32 * lane for lane in ALL])  # its second load of A, in warp 2
    trace = warp_trace(len(code.instructions), blocks)
    accesses = {i: a for i, one in enumerate(code.instructions) if (a := access_of(one))}
    values = [np.zeros(shape, np.float32) for shape in ((8, 2), (2, 64), (8, 64))]
    launch = Launch((2, 2, 1), (32, 4, 1), tuple(Argument("f32", v.shape, v) for v in values))
    found, _ = sample_accesses(code, launch, trace, shapes_of(trace, accesses), (A, B, C))
    load, other = found[LOAD_A], found[LOAD_B]
    assert load.representative.sectors == 1
    assert (load.worst.sectors, load.worst.block, load.worst.warp, load.worst.execution) == (32, 0, 2, 1)
    # A has 16 elements, 64 bytes: only the first two of these addresses lie in it.
    assert load.worst.elements == ((0, 0), (4, 0), *[None] * 30)
    assert other.worst is other.representative
    assert found[LOAD_A].representative.argument == 0


def test_iterations_walk_along_k() -> None:
    _, view = looked_at(depth=4)
    assert view.iterations == 4
    assert [phase.label for phase in view.phases] == [
        *(f"iteration {i} of 4" for i in range(1, 5)),
        "after the loop over K",
    ]
    for k in range(4):
        assert view.phases[k].rectangles == (
            Rectangle(0, "ld", (4, 8), (k, k + 1)),
            Rectangle(1, "ld", (k, k + 1), (32, 64)),
        )
    assert view.phases[4].rectangles == (Rectangle(2, "st", (4, 8), (33, 64)),)  # lane 0 is inactive


def test_flat_arrays_of_a_gemm_have_rows_and_columns() -> None:
    rows, columns = looked_at(depth=4, flat=True)[1].phases[2].rectangles[1].rows, (32, 64)
    assert (rows, looked_at(depth=4, flat=True)[1].phases[2].rectangles[1].columns) == ((2, 3), columns)


def test_of_many_iterations_the_first_and_the_last_are_kept() -> None:
    _, view = looked_at(depth=MOST_PHASES + 36)
    labels = [phase.label for phase in view.phases]
    assert view.iterations == 100
    assert len(labels) == MOST_PHASES + 1  # 63 first ones, the last, and what comes after
    assert labels[-3:] == ["iteration 63 of 100", "iteration 100 of 100", "after the loop over K"]


def test_threads_know_what_they_touch_first() -> None:
    _, view = looked_at()
    by_index = {access.index: access for access in view.threads}
    assert by_index[LOAD_A].argument == 0
    assert by_index[LOAD_A].first.tolist() == [[4 * row] * 32 for row in range(4, 8)]
    assert by_index[STORE_C].first[3].tolist() == [7 * 64 + 32 + lane if lane % 2 else -1 for lane in ALL]
    assert by_index[LOAD_B].accesses.tolist() == [4, 4, 4, 4]
    assert by_index[STORE_SHARED].argument is None
    assert by_index[STORE_SHARED].first[0].tolist() == [128 * lane + 20 for lane in ALL]


@pytest.mark.parametrize(("name", "position"), [("A", 0), ("B", 1), ("C", 2)])
def test_arrays_of_a_gemm_are_named(name: str, position: int) -> None:
    view = looked_at()[1]
    assert [(array.name, array.position) for array in view.arrays][position] == (name, position)
    assert len(view.arrays) == 3  # the scalar is none


def test_a_variable_of_the_module_is_named_like_an_array() -> None:
    """A load of 32 floats, 16 bytes into a variable that begins 64 bytes behind a line, by the number of its byte."""
    code, at = program("LDG.E"), (1 << 40) + 64
    trace = warp_trace(1, {0: [[(0, [at + 16 + 4 * lane for lane in ALL])]]})
    shapes = shapes_of(trace, {0: access_of(code.instructions[0])})
    argument = Argument("f32", (8,), np.zeros(8, np.float32))
    variables = (PlacedVariable("table", at, 256), PlacedVariable("far", at + 4096, 4))
    launch = Launch((1, 1, 1), (32, 1, 1), (argument,))
    (sample,), view = sample_accesses(code, launch, trace, shapes, (A << 1,), variables=variables)
    assert [(array.position, array.name) for array in view.arrays] == [(0, "arg 0"), (1, "table")]
    assert sample.representative.argument == 1
    assert sample.representative.elements[:3] == ((16,), (20,), (24,))
