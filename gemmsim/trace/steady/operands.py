"""Says of operands that move in the periods of a loop whether a rule tells what becomes of an operation's results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.engine.differences import words as rule
from gemmsim.trace.lower.context import ALL, OP_NUMBER
from gemmsim.trace.steady import tape_words
from gemmsim.trace.steady.lengths import MOST_PERIODS
from gemmsim.trace.steady.states import NotProvedError, States, lanes_of

OPERATIONS = {number: name for name, number in OP_NUMBER.items()}
_MOST_TOGETHER = 1 << 12  # periods that are taken for one
_FAR_LESS = 1 << 10
_COMPARE_EQUAL = ("setp_eq_", "setp_ex_eq_")
_PRODUCTS = ("imad_wide_u32", "imad_wide_s32", "imad_hi")


def checked_operands(
    states: States, row: list[int], rules: list[int], sources: list[int], moving: int, mask: int
) -> bool:
    """Do as `_check_operands`, and note what is asked: its answer, where the words decide what it asks."""
    noted = len(states.tape.rows)
    linear = _check_operands(states, row, rules, sources, moving, mask)
    if _asks_of_words(row, moving, linear):

        def question(states: States, _: dict[int, int]) -> bool:
            return _check_operands(states, row, rules, sources, moving, mask) == linear

        states.tape.ask_instead(noted, question)
    return linear


def _asks_of_words(row: list[int], moving: int, linear: bool) -> bool:
    """Whether what `_check_operands` asks of an operation depends on its words, not only on which of them move. What it
    asks of a product is noted by itself.

    linear  what it returned
    """
    name = OPERATIONS[row[micro.OP]]
    by_words = name.startswith((*_COMPARE_EQUAL, "shf_r_")) or (name == "lop3_c0" and moving in (1, 2))
    return by_words or (name in _PRODUCTS and not linear)


def _check_operands(
    states: States,
    row: list[int],
    rules: list[int],
    sources: list[int],
    moving: int,
    mask: int,
) -> bool:
    """Raise NotProvedError where no rule says what becomes of operands that move, or where one wraps around.

    Returns whether results are linear though the rule says that they are monotonic.
    """
    name = OPERATIONS[row[micro.OP]]
    compares = name.startswith(_COMPARE_EQUAL)
    if compares and moving & ~3:
        raise NotProvedError("a condition moves")
    if compares:
        _check_equality(states, row, sources, mask)
        return False
    if name == "lop3_c0" and moving in (1, 2) and _only_whole_bits(states, row, sources, moving, mask):
        return False
    if name.startswith("shf_r_") and _shifts_steps(states, row, sources, moving, mask):
        return True
    if name in _PRODUCTS and _multiplies_steps(states, row, rules, sources, moving, mask):
        return True
    if any(moving >> place & 1 and rules[rule.NEEDS + place] & moving for place in range(len(sources))):
        raise NotProvedError(f"{name} has no rule")
    if not rules[rule.CHECKED]:
        return False
    if rules[rule.EXACT_IF] & moving:
        raise NotProvedError(f"{name}: a carry moves")
    for place, at in enumerate(sources):
        if moving >> place & 1:
            keep, flip = masks_of(row, at)
            signed = bool(rules[rule.SIGNED] >> place & 1)
            states.check_range(at, mask, (keep, flip), signed, rules[rule.LIMIT_BITS + place])
    return False


def _shifts_steps(states: States, row: list[int], sources: list[int], moving: int, mask: int) -> bool:
    """Whether a shift to the right leaves out only bits that a word's step does not move.

    floor((b + k 2**s d) / 2**s) = floor(b / 2**s) + k d, for any b, as long as no sum wraps around. The word is the
    low one of a pair, of which the low word is taken, whose high one only fills what the shift leaves; or the high
    one, of which the high word is taken, signed as the shift is.

    Where it does not, notes of how many steps it would.
    """
    high = row[micro.IMMEDIATE + 2]
    if moving != (4 if high else 1) or any(masks_of(row, at) != (ALL, 0) for at in sources):
        return False
    at, amount = sources[2 if high else 0], states.rows(sources[1])[0][:, lanes_of(mask)]
    step = _moved(states, at)[:, lanes_of(mask)]
    if (amount >= 32).any():
        return False
    if (step & ((np.uint32(1) << amount) - np.uint32(1))).any():
        states.factor = (1 << int(amount.max())) // _lowest_bit(step)
        return False
    signed = bool(high) and OPERATIONS[row[micro.OP]] == "shf_r_s"
    states.check_range(at, mask, (ALL, 0), signed, 32)
    return True


def _multiplies_steps(
    states: States, row: list[int], rules: list[int], sources: list[int], moving: int, mask: int
) -> bool:
    """Whether both words of a product of 64 bits move evenly.

    (x + k d) m + c = (x m + c) + k (2**32 h + l) for any d m = 2**32 h + l. As long as l, which may be less than 0,
    does not let the low word wrap around, the high one moves by h. That is how counters are divided by numbers that
    are no powers of two: m is 2**(32 + s) / n, rounded up, and if d is a multiple of n, l is small.

    Raises NotProvedError where the low word wraps around, with a number of periods in which l would be small.
    """
    high_only = OPERATIONS[row[micro.OP]] == "imad_hi"
    if moving not in (1, 2) or any(masks_of(row, at) != (ALL, 0) for at in sources[:4]):
        return False
    at, by = sources[moving - 1], sources[2 - moving]
    signed = bool(rules[rule.SIGNED] & moving)
    factor, first, low, high = (states.rows(place)[0][:, lanes_of(mask)] for place in (by, at, *sources[2:4]))
    if (row[micro.IMMEDIATE] and not high_only) or (high_only and (low | high).any()):
        return False
    moved = _moved(states, at)[:, lanes_of(mask)]
    whole = factor.view(np.int32).astype(np.int64) if signed else factor.astype(np.int64)
    step = moved.view(np.int32).astype(np.int64) * whole
    low_step = _low_word(step)
    states.check_range(at, mask, (ALL, 0), signed, 32)
    begin = (first.astype(np.uint64) * factor + low).astype(np.uint32).astype(np.int64)
    room = np.where(low_step > 0, ALL - begin, begin) // np.maximum(np.abs(low_step), 1)
    room = int(room[low_step != 0].min(initial=MOST_PERIODS))
    states.limit(room, "the low word of a product wraps around", _together(step) if room < states.last else 1)

    def again(states: States) -> bool:
        return _multiplies_steps(states, row, rules, sources, moving, mask)

    states.tape.note(tape_words.PRODUCT, at, mask, by, sources[2], high_only, otherwise=again)
    return True


def _moved(states: States, at: int) -> NDArray[np.uint32]:
    """Return by how much rows move in a period: uint32 [warps, lanes]."""
    zero, one = states.rows(at)[:2]
    return one - zero


def _lowest_bit(steps: NDArray[np.uint32]) -> int:
    """Return the least bit that any of some steps has that are not all 0."""
    return min(step & -step for step in np.unique(steps[steps != 0]).tolist())


def _low_word(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the low words of numbers, as numbers with a sign."""
    return numbers.astype(np.uint32).view(np.int32).astype(np.int64)


def _together(step: NDArray[np.int64]) -> int:
    """Return of how many of these steps the sum has the least low word; 1 where it is not far less than that of one."""
    several = np.arange(1, _MOST_TOGETHER + 1)
    low = np.abs(_low_word(several[:, None] * np.unique(step))).max(axis=1)
    least = int(low.argmin())
    return least + 1 if low[least] * _FAR_LESS <= low[0] else 1


def _only_whole_bits(states: States, row: list[int], sources: list[int], moving: int, mask: int) -> bool:
    """Whether an AND takes bits from a word that moves by multiples of what they can hold, or leaves such bits out.

    Raises NotProvedError where it would take bits if several periods were one, as steps of 2**n do not move the
    low n bits: the bits taken are all below the lowest one of the step.
    """
    at, other = sources[moving - 1], sources[2 - moving]
    if any(masks_of(row, place) != (ALL, 0) for place in (at, other)):
        return False
    step, taken = _moved(states, at)[:, lanes_of(mask)], states.rows(other)[0][:, lanes_of(mask)]
    low = ~taken
    if bool((low & (low + np.uint32(1)) == 0).all() and (step & low == 0).all()):
        return True
    reached = 1 << int(taken.max()).bit_length()
    lowest = _lowest_bit(step) if step.any() else 1 << 32
    if lowest >= reached:
        return True
    if reached // lowest > _MOST_TOGETHER:
        return False
    raise NotProvedError("an AND takes bits that come round again", factor=reached // lowest)


def _check_equality(states: States, row: list[int], sources: list[int], mask: int) -> None:
    """Raise NotProvedError, with the periods until then, where two words become equal or stop being so."""
    (a, b), moves = sources[:2], []
    for at in (a, b):
        keep, flip = masks_of(row, at)
        if keep != ALL or flip:
            raise NotProvedError("a comparison of changed words")
        moves.append(_moved(states, at))
    apart = (states.rows(a)[0] - states.rows(b)[0])[:, lanes_of(mask)]
    step = (moves[0] - moves[1])[:, lanes_of(mask)]
    apart, step = apart.view(np.int32).astype(np.int64), step.view(np.int32).astype(np.int64)
    apart, step = apart[step != 0], step[step != 0]
    if not len(step):
        return
    if (apart == 0).any():
        raise NotProvedError("words stop being equal")
    room = np.where(step > 0, (1 << 31) - 1 - apart, (1 << 31) + apart) // np.abs(step)
    meets = (apart % np.abs(step) == 0) & ((apart > 0) != (step > 0))
    until = np.where(meets, np.abs(apart) // np.abs(step) - 1, room)
    states.limit(int(until.min()), "words become equal")


def masks_of(row: list[int], at: int) -> tuple[int, int]:
    """Return the masks of the operand whose row begins at the word `at`. Raises KeyError where none does."""
    begins = _masks(row)
    return begins[at] if at in begins else begins[at - WARP_LANES]  # the upper half of 64 bits


def is_plain(row: list[int], at: int) -> bool:
    """Whether the row that begins at the word `at` is of an operand that is taken as it is."""
    begins = _masks(row)
    return begins.get(at, begins.get(at - WARP_LANES)) == (ALL, 0)


def _masks(row: list[int]) -> dict[int, tuple[int, int]]:
    columns = range(micro.SOURCE, micro.SOURCE + 5 * micro.SOURCE_COLUMNS, micro.SOURCE_COLUMNS)
    return {row[column]: (row[column + 1], row[column + 2]) for column in reversed(columns)}
