"""The loop over K, found in code made by hand."""

from __future__ import annotations

from dataclasses import replace

from report_factory import evidence, instruction

from gemmsim.analysis.code.k_loop import KLoop, k_loop, loops
from gemmsim.isa.program import Operand, OperandKind, Program


def program(*code: str) -> Program:
    """`BRA 2` jumps to the instruction of index 2."""
    rows = []
    for index, text in enumerate(code):
        name, _, target = text.partition(" ")
        row = instruction(index, name, 1)
        if target:
            row = replace(row, operands=(Operand(OperandKind.TARGET, 0, 16 * int(target)),))
        rows.append(row)
    return replace(evidence().program, instructions=tuple(rows))


def test_the_smallest_loop_that_reads_and_multiplies() -> None:
    """1: tiles of a persistent block; 2: K; 4: k within a tile. 8: stores, without products."""
    code = ("MOV", "IADD3", "LDG.E", "STS", "FFMA", "BRA 4", "BRA 2", "STG.E", "BRA 7", "BRA 1", "EXIT")
    executed = (1, 2, 20, 20, 160, 160, 20, 30, 30, 2, 1)
    found = k_loop(program(*code), executed)
    assert [(loop.start, loop.stop) for loop in loops(program(*code))] == [(4, 6), (2, 7), (7, 9), (1, 10)]
    assert found == KLoop(2, 7, 20 + 20 + 160 + 160 + 20, 160)
    assert found.product_share == 160 / 380


def test_of_two_loops_the_one_with_most_products() -> None:
    """The guarded loop and the fast one."""
    code = ("LDG.E", "FFMA", "BRA 0", "LDG.E.128", "FFMA", "FFMA", "BRA 3")
    assert k_loop(program(*code), (9, 9, 9, 5, 5, 5, 5)) == KLoop(3, 7, 20, 10)


def test_without_reads_in_the_loop_the_products_decide() -> None:
    assert k_loop(program("LDG.E", "FFMA", "BRA 1"), (1, 8, 8)) == KLoop(1, 3, 16, 8)


def test_none_where_nothing_is_multiplied_in_a_loop() -> None:
    assert k_loop(program("LDG.E", "FFMA", "EXIT"), (1, 1, 1)) is None
    assert k_loop(program("FFMA", "BRA 0"), (0, 0)) is None
