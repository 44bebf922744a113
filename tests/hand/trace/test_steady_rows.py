"""Rows that may change: of a program worked out by hand, and words of some rows against indices of all words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor
from gemmsim.trace.steady.affine import Walk
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.rows import Rows, changing_rows
from gemmsim.trace.types import Launch


@given(st.sets(st.integers(0, 6), min_size=1), st.integers(1, 3))
def test_words_of_some_rows(numbers: set[int], warps: int) -> None:
    """Of warps of seven rows: these are the words whose index, divided by 32, is the number of one of the rows."""
    words = np.arange(warps * 7 * 32, dtype=np.uint32).reshape(warps, -1)
    chosen = np.isin(np.arange(7 * 32) // 32, list(numbers))
    rows = Rows(numbers)
    some = rows.of(words)
    assert np.array_equal(some, words[:, chosen]) and not np.shares_memory(some, words)
    # Of words of odd rows, counted through all warps, in a second warp those of rows with even numbers.
    assert rows.with_any(some * (some // 32 % 2)) == {32 * number for number in numbers if number % 2 or warps > 1}
    written = np.zeros_like(words)
    rows.put(some, written)
    assert np.array_equal(written, np.where(chosen, words, 0))
    assert np.array_equal(words.reshape(-1)[rows.places(np.arange(some.size), 7 * 32)], some.reshape(-1))
    word = np.arange(7 * 32)[chosen]
    assert rows.beside(40, 100).tolist() == [not 40 <= at < 100 for at in word.tolist()]
    assert rows.begins.tolist() == [32 * number for number in sorted(numbers)]


def test_what_is_written_changes_and_what_says_which_block_it_is() -> None:
    """R4 and P0 are written, and R6 and R7 by a load of two words; R5 and R8 are only read, as is the block's place."""
    texts = (
        *("IADD3 R4, R4, 0x8, RZ", "ISETP.LT.U32.AND P0, PT, R5, 0x5, PT", "LDS.64 R6, [R8]", "NOP"),
        *("S2R R9, SR_CTAID.X", "BRA 0x0", "EXIT"),
    )
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate(texts))
    program = Program("loop", "loop", "sm_90", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    executor = Executor(program, Launch((3, 1, 1), (32, 1, 1), (), parameters=()))
    found = set((changing_rows(executor.micro, executor.code).begins // 32).tolist())
    assert {4, 6, 7, 9, executor.micro.specials["SR_CTAID.X"]} <= found
    assert not {5, 8} & found and executor.micro.ones not in found
    constants = {constant.row for constant in executor.micro.constants} | {row for row, _ in executor.micro.literals}
    assert not constants & found


@pytest.mark.parametrize("path", [Path(0, 0xFFFFFFFF), Path(None, 0xFFFF)])
@pytest.mark.parametrize(("moves", "differs"), [
    ({4: 8}, {}), ({4: 8, 6: 8}, {}), ({4: 8, 6: 4}, {}), ({4: 8}, {4: 1}), ({4: 8}, {6: 1}), ({4: 1 << 30}, {4: 2}),
])  # fmt: skip
def test_as_much_is_proved_of_the_rows_that_may_change(
    moves: dict[int, int], differs: dict[int, int], path: Path
) -> None:
    """As of all rows, of which the others hold constants, and R5 and R8 of a loop that only reads them."""
    texts = ("IADD3 R4, R4, 0x8, RZ", "IADD3 R6, R4, R5, R8", "ISETP.LT.U32.AND P0, PT, R6, R8, PT", "BRA 0x0", "EXIT")
    code = tuple(parse_instruction(16 * i, text, 0) for i, text in enumerate(texts))
    program = Program("loop", "loop", "sm_90", "c", code, (), 64, 1024, 0, 1, (), 0x210)
    executor = Executor(program, Launch((1, 1, 1), (32, 1, 1), (), parameters=()))
    rows = changing_rows(executor.micro, executor.code)
    first = executor.initial.reshape(1, -1).copy()
    step, blocks = np.zeros_like(first), np.zeros(first.shape, np.int32)
    for words, values in ((first, {5: 3, 6: 3, 8: 0}), (step, moves), (blocks, differs)):
        for row, value in values.items():
            words[:, 32 * row : 32 * row + 32] = value
    loop = range(4), path, 1000
    of_all = Walk(executor.micro, executor.code).periods(first, step, *loop, blocks)
    walk = Walk(executor.micro, executor.code, None, rows)
    assert walk.periods(first, rows.of(step), *loop, rows.of(blocks)) == of_all
    assert walk.periods(first, rows.of(step), *loop, rows.of(blocks)) == of_all  # by its tape
