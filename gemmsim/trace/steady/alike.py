"""Asks by executing it whether an operation has the same results in other blocks or in other periods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace.lower.context import ALL
from gemmsim.trace.steady import tape_words
from gemmsim.trace.steady.states import Function, NotProvedError, States, addresses_of, lanes_of

Operation = tuple[Function, int, int]  # what executes it, the address of its row in the code, mask
Places = tuple[list[int], list[int]]  # where the rows of its sources and of its results begin


def same_in_blocks(states: States, operation: Operation, places: Places) -> bool:
    """Whether an operation on predicates has the same results whatever those of other blocks are that differ."""
    sources, results = places
    differ = states.differing(sources)
    if states.blocks is None or not differ:
        return False

    def whatever(states: States) -> bool:
        found = []
        for chosen in range(1 << len(differ)):
            state = states.words[0].copy()
            for place, at in enumerate(differ):
                state[:, at : at + WARP_LANES] = ALL if chosen >> place & 1 else 0
            found.append(_results_of(operation, state, results))
        return all(np.array_equal(one, found[0]) for one in found)

    alike = whatever(states)
    states.tape.ask(lambda states, _: whatever(states) == alike)
    return alike


def compares_alike(states: States, operation: Operation, places: Places) -> bool:
    """Whether a comparison of words that do not move has the same result in other blocks: it has it at the least
    and at the greatest difference of the one word that differs, and no word wraps around between these.

    places  the first two sources are unsigned words
    """
    sources, results = places
    differing, mask = states.differing(sources), operation[2]
    if states.blocks is None or states.bounds is None or len(differing) != 1 or differing[0] not in sources[:2]:
        return False
    at = differing[0]
    numbers = np.unique(states.known_in_blocks(at, mask)).tolist()
    if len(numbers) != 1 or numbers[0] <= 0:
        return False

    def at_both_ends(states: States, number: int) -> bool:
        span = states.bounds(number) if states.bounds else None
        if span is None:
            return False
        word, lanes, found = states.rows(at)[0].astype(np.int64), lanes_of(mask), []
        for apart in (0, *span):
            if ((word + apart)[:, lanes] < 0).any() or ((word + apart)[:, lanes] > ALL).any():
                return False
            state = states.words[0].copy()
            state[:, at : at + WARP_LANES] = (word + apart).astype(np.uint32)
            found.append(_results_of(operation, state, results))
        states.bounded[number] = span
        return all(np.array_equal(one, found[0]) for one in found)

    alike = at_both_ends(states, numbers[0])
    states.tape.ask(lambda states, now: at_both_ends(states, now.get(numbers[0], numbers[0])) == alike)
    return alike


def check_constant(
    states: States, name: str, operation: Operation, sources: list[int], held: dict[int, NDArray[np.uint32]], at: int
) -> None:
    """Raise NotProvedError, with the periods until then, where a result changes of an operation that was executed.

    held  uint32 [2, warps, lanes] in two periods: what those sources held that it has overwritten
    """
    lanes = lanes_of(operation[2])

    def check(states: States) -> None:
        zero, one, last = states.rows(at)[..., lanes]
        if (zero == one).all() and (zero == last).all():
            return
        before = [held.get(source, states.rows(source)[:2]) for source in sources]
        holds = partial(_same_in_period, states, operation, (sources, before), at, zero)
        raise NotProvedError(f"{name} changes", _bisect(states.last, holds), states.factor)

    states.tape.note(tape_words.CONSTANT, at, operation[2], otherwise=None if held else check)
    check(states)


def _bisect(last: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number below `last` for which `holds`, which holds for all below it; 0 where none."""
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _same_in_period(
    states: States,
    operation: Operation,
    operands: tuple[list[int], list[NDArray[np.uint32]]],
    at: int,
    wanted: NDArray[np.uint32],
    period: int,
) -> bool:
    """Whether an operation has the results `wanted` in a period, too; operands: places, words in two periods."""
    state = states.words[2].copy()
    for place, (zero, one) in zip(*operands, strict=True):
        state[:, place : place + WARP_LANES] = zero + (one - zero) * np.uint32(period)
    return bool((_results_of(operation, state, [at])[0] == wanted).all())


def _results_of(operation: Operation, state: NDArray[np.uint32], results: list[int]) -> NDArray[np.uint32]:
    """Execute an operation in a state [warps, words]; return its results: uint32 [results, warps, lanes]."""
    function, op, mask = operation
    for address in addresses_of(state):
        function(op, address, mask)
    return np.stack([state[:, at : at + WARP_LANES][:, lanes_of(mask)] for at in results])
