"""Rows that may change: of a program worked out by hand, and words of some rows against indices of all words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.isa.parse import parse_instruction
from gemmsim.isa.program import Program
from gemmsim.trace.execute import Executor
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
    assert np.array_equal(rows.among(some, 7 * 32), np.where(chosen, words, 0))
    assert np.array_equal(words.reshape(-1)[rows.places(np.arange(some.size), 7 * 32)], some.reshape(-1))
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
