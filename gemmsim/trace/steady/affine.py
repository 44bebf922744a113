"""Proves for how many periods a warp goes on as it does: same instructions, same lanes, addresses that move evenly.

A warp has executed a period, and its registers moved by `step`. `Walk.periods` takes their words to be
first + n * step in period n and follows the instructions of a period with three states at once, those of n = 0, of
n = 1 and of the last n. What an operation makes of words that move is taken from the rules that follow differences
between blocks (`gemmsim.trace.differences.rules`): another period is like another block. Its results are linear, or
monotonic and therefore constant while they are the same at both ends and no operand wraps around. So what holds at both
ends holds in between. Where an operation has no rule, or data decides, nothing is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.differences.rules import rules_of
from gemmsim.trace.engine.differences import words as rule
from gemmsim.trace.lower.context import ALL, CONTROL_NUMBER, OP_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import rows_of, step_of
from gemmsim.trace.steady.states import FUNCTION, Function, NotProvedError, States, lanes_of

_NAMES = {number: name for name, number in CONTROL_NUMBER.items()}
_OPERATIONS = {number: name for name, number in OP_NUMBER.items()}
# Control that does the same in every period, as the threads of the warp are together in each
_SAME = ("nop", "idle", "begin", "converge", "warpsync", "branch_divergent")
_MOST_TOGETHER = 1 << 12  # periods that are taken for one
_LONGEST = 64  # micro-operations of one instruction that branches back to itself


class Walk:
    """Follows the instructions of a period. `code` is the program or a slice of it, as it is executed."""

    def __init__(self, program: MicroProgram, code: NDArray[np.uint32]) -> None:
        self._code, self._words, self._start = code, code.tolist(), program.start.tolist()
        self._rules = rules_of(program).tolist()
        self._warp_rows = sum(rows_of(rows.start, len(rows)) for rows in program.warp_rows)
        self._known: dict[int, tuple[list[int], list[int], int, Function]] = {}
        self._rows: dict[int, tuple[list[int], list[int]]] = {}
        # Rows found to become others in other blocks, by the first instruction of the period
        self._changing: dict[int, set[int]] = {}
        self.strides: set[int] = set()  # bytes by which addresses move in a period
        self.moving: set[int] = set()  # instructions with addresses that do
        # So many periods may be proved as one, where one alone was not just now; 1 where nothing says so
        self.factor = 1

    def forget(self) -> None:
        """Forget what was found of addresses."""
        self.strides.clear()
        self.moving.clear()

    def periods(
        self,
        first: NDArray[np.uint32],
        step: NDArray[np.uint32],
        instructions: Sequence[int],
        active: int,
        most: int,
        blocks: NDArray[np.int32] | None = None,
    ) -> int:
        """Return how many periods follow that are like the one from `first` on, `most` at most; 0 where none is proved.

        first, step   uint32 [words of a warp's rows]: its words, and by how much they move in a period
        instructions  those of a period, in order
        active        mask of the warp's threads, which are all together
        blocks        int32 [words]: not 0 where the word is another one in other blocks, by a difference of this
                      number; None where no other blocks are followed
        """
        periods, self.factor = most, 1
        while periods > 0:
            try:
                while not self._followed(States(first, step, periods, blocks), instructions, active):
                    pass
                return periods
            except NotProvedError as error:
                periods, self.factor = min(error.periods, periods - 1), error.factor
        return 0

    def _followed(self, states: States, instructions: Sequence[int], active: int) -> bool:
        """Follow a period; return False where other blocks may find rows changed behind it, to be looked at again."""
        known = self._changing.setdefault(instructions[0], set())
        states.may_change(known)
        self._follow(states, instructions, active)
        found = states.changing - known
        known |= found
        return not found

    def _follow(self, states: States, instructions: Sequence[int], active: int) -> None:
        for instruction in instructions:
            start, stop, steps = self._start[instruction], self._start[instruction + 1], 0
            number = start
            while start <= number < stop:
                number = self._step(states, number, active)
                steps += 1
                if steps > _LONGEST:
                    raise NotProvedError("an instruction repeats itself")

    def _step(self, states: States, number: int, active: int) -> int:
        """Follow one micro-operation; return the next one of its instruction, or one of another instruction."""
        row, mask = self._words[number], active
        if not row[micro.FLAGS] & micro.UNGUARDED:
            mask &= states.truth(row[micro.GUARD], row[micro.GUARD_XOR], active)
        kind = row[micro.OP]
        if kind in _OPERATIONS:
            if mask:
                self._operate(states, number, ALL if row[micro.FLAGS] & micro.UNIFORM else mask)
            return number + 1
        name = _NAMES[kind]
        if name in _SAME or not mask:
            return number + 1
        if name == "branch":
            taken = states.truth(row[micro.SOURCE], row[micro.SOURCE_FLIP], mask)
            if taken and taken != active:
                raise NotProvedError("threads of a warp part")
            return row[micro.TARGET] if taken else number + 1
        if name in ("access", "move_matrix"):
            self._access(states, row, number, mask)
        elif name in ("barrier", "barrier_outcome", "exchange", "multiply_matrix"):
            reads, writes = self._touched(number)
            for place in reads:
                states.constant(place, mask, decides=name != "multiply_matrix")
            states.forget(writes)
        else:
            raise NotProvedError(f"'{name}' is not followed")
        return number + 1

    def _access(self, states: States, row: list[int], number: int, mask: int) -> None:
        stride = states.stride(row[micro.SOURCE], mask)
        self.strides.add(stride)
        if stride:
            self.moving.add(row[micro.INSTRUCTION])
        if row[micro.ACCESS] & micro.UNMOVED_BIT:
            return
        if row[micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK != micro.CONSTANT:
            raise NotProvedError("what is loaded decides")
        if stride:
            raise NotProvedError("constants decide that are not the same ones in each period")
        states.forget(self._touched(number)[1])

    def _operate(self, states: States, number: int, mask: int) -> None:
        """Execute an operation on lanes in all states, and check how its results move."""
        row, rules = self._words[number], self._rules[number]
        sources, results, op, function = self._operands(number)
        lanes = lanes_of(mask)
        moving = 0
        for place, at in enumerate(sources):
            if states.moves(at, lanes):
                moving |= 1 << place
        if any(states.unknown(at) for at in sources):
            if moving:
                raise NotProvedError("a word that moves meets one that is not known")
            states.forget(results)
            return
        name = _OPERATIONS[row[micro.OP]]
        linear = moving and self._check_operands(states, row, rules, sources, moving, lanes, name)
        if name == "plop3" and states.same_in_blocks(function, op, mask, (sources, results)):
            states.follow_blocks([], results, mask, False, name)
        else:
            states.follow_blocks(sources, results, mask, bool(moving) and rules[rule.CHECKED] != 0, name)
        before = [states.words[0, at : at + WARP_LANES].copy() for at in sources] if moving else []
        steps = [states.words[1, at : at + WARP_LANES] - old for at, old in zip(sources, before, strict=False)]
        for address in states.addresses:
            function(op, address, mask)
        states.remember(results, mask, bool(moving))
        if not moving:
            return
        for place, at in enumerate(results):
            zero, one, last = (states.words[n, at : at + WARP_LANES][lanes] for n in range(3))
            constant = (not linear and rules[rule.CHECKED] >> place & 1) or name.startswith("setp_")
            if not constant and not (last == zero + (one - zero) * np.uint32(states.last)).all():
                raise NotProvedError(f"{name} is not linear")
            if constant and not ((zero == one).all() and (zero == last).all()):
                operands = (sources, before, steps)
                holds = partial(states.same, function, op, mask, operands, at, zero)
                raise NotProvedError(f"{name} changes", _bisect(states.last, holds))

    def _operands(self, number: int) -> tuple[list[int], list[int], int, Function]:
        """Return sources and results of an operation, the address of its row in the code, and what executes it."""
        if number not in self._known:
            row, rules = self._words[number], self._rules[number]
            self._known[number] = (
                rules[rule.SOURCE_AT : rule.SOURCE_AT + rules[rule.SOURCES]],
                rules[rule.RESULT_AT : rule.RESULT_AT + rules[rule.RESULTS_COUNT]],
                self._code.ctypes.data + 4 * micro.COLUMNS * number,
                FUNCTION(row[micro.FUNCTION] | row[micro.FUNCTION + 1] << 32),
            )
        return self._known[number]

    def _touched(self, number: int) -> tuple[list[int], list[int]]:
        """Return the words at which the rows begin that a micro-operation other than one on lanes reads and writes."""
        if number not in self._rows:
            done = step_of(self._words[number], number, self._warp_rows)
            self._rows[number] = list(_places(done.reads | done.control)), list(_places(done.writes))
        return self._rows[number]

    def _check_operands(
        self,
        states: States,
        row: list[int],
        rules: list[int],
        sources: list[int],
        moving: int,
        lanes: NDArray[np.bool_],
        name: str,
    ) -> bool:
        """Raise NotProvedError where no rule says what becomes of operands that move, or where one wraps around.

        Returns whether results are linear though the rule says that they are monotonic.
        """
        compares = name.startswith(("setp_eq_", "setp_ex_eq_"))
        if compares and moving & ~3:
            raise NotProvedError("a condition moves")
        if compares:
            self._check_equality(states, row, sources, lanes)
            return False
        if name == "lop3_c0" and moving in (1, 2) and self._only_whole_bits(states, row, sources, moving, lanes):
            return False
        if name.startswith("shf_r_") and self._shifts_steps(states, row, sources, moving, lanes):
            return True
        if any(moving >> place & 1 and rules[rule.NEEDS + place] & moving for place in range(len(sources))):
            raise NotProvedError(f"{name} has no rule")
        if not rules[rule.CHECKED]:
            return False
        if rules[rule.EXACT_IF] & moving:
            raise NotProvedError(f"{name}: a carry moves")
        for place, at in enumerate(sources):
            if moving >> place & 1:
                keep, flip = self._masks(row, at)
                signed = bool(rules[rule.SIGNED] >> place & 1)
                states.check_range(at, lanes, (keep, flip), signed, rules[rule.LIMIT_BITS + place])
        return False

    def _shifts_steps(
        self, states: States, row: list[int], sources: list[int], moving: int, lanes: NDArray[np.bool_]
    ) -> bool:
        """Whether a shift to the right leaves out only bits that a word's step does not move.

        floor((b + k 2**s d) / 2**s) = floor(b / 2**s) + k d, for any b, as long as no sum wraps around. The word is the
        low one of a pair, of which the low word is taken, whose high one only fills what the shift leaves; or the high
        one, of which the high word is taken, signed as the shift is.
        """
        high = row[micro.IMMEDIATE + 2]
        if moving != (4 if high else 1) or any(self._masks(row, at) != (ALL, 0) for at in sources):
            return False
        at, amount = sources[2 if high else 0], states.words[0, sources[1] : sources[1] + WARP_LANES][lanes]
        step = (states.words[1, at : at + WARP_LANES] - states.words[0, at : at + WARP_LANES])[lanes]
        if (amount >= 32).any() or (step & ((np.uint32(1) << amount) - np.uint32(1))).any():
            return False
        signed = bool(high) and _OPERATIONS[row[micro.OP]] == "shf_r_s"
        states.check_range(at, lanes, (ALL, 0), signed, 32)
        return True

    def _only_whole_bits(
        self, states: States, row: list[int], sources: list[int], moving: int, lanes: NDArray[np.bool_]
    ) -> bool:
        """Whether an AND takes bits from a word that moves by multiples of what they can hold, or leaves such bits out.

        Raises NotProvedError where it would take bits if several periods were one, as steps of 2**n do not move the
        low n bits: the bits taken are all below the lowest one of the step.
        """
        at, other = sources[moving - 1], sources[2 - moving]
        if any(self._masks(row, place) != (ALL, 0) for place in (at, other)):
            return False
        step = (states.words[1, at : at + WARP_LANES] - states.words[0, at : at + WARP_LANES])[lanes]
        taken = states.words[0, other : other + WARP_LANES][lanes]
        low = ~taken
        if bool((low & (low + np.uint32(1)) == 0).all() and (step & low == 0).all()):
            return True
        reached = 1 << int(taken.max()).bit_length()
        lowest = 1 << (32 if not step.any() else min(int(s) & -int(s) for s in step if s).bit_length() - 1)
        if lowest >= reached:
            return True
        if reached // lowest > _MOST_TOGETHER:
            return False
        raise NotProvedError("an AND takes bits that come round again", factor=reached // lowest)

    def _check_equality(self, states: States, row: list[int], sources: list[int], lanes: NDArray[np.bool_]) -> None:
        """Raise NotProvedError, with the periods until then, where two words become equal or stop being so."""
        (a, b), moves = sources[:2], []
        for at in (a, b):
            keep, flip = self._masks(row, at)
            if keep != ALL or flip:
                raise NotProvedError("a comparison of changed words")
            moves.append(states.words[1, at : at + WARP_LANES] - states.words[0, at : at + WARP_LANES])
        apart = (states.words[0, a : a + WARP_LANES] - states.words[0, b : b + WARP_LANES])[lanes]
        step = (moves[0] - moves[1])[lanes]
        apart, step = apart.view(np.int32).astype(np.int64), step.view(np.int32).astype(np.int64)
        apart, step = apart[step != 0], step[step != 0]
        if not len(step):
            return
        if (apart == 0).any():
            raise NotProvedError("words stop being equal")
        room = np.where(step > 0, (1 << 31) - 1 - apart, (1 << 31) + apart) // np.abs(step)
        meets = (apart % np.abs(step) == 0) & ((apart > 0) != (step > 0))
        until = np.where(meets, np.abs(apart) // np.abs(step) - 1, room)
        if int(until.min()) < states.last:
            raise NotProvedError("words become equal", int(until.min()))

    def _masks(self, row: list[int], at: int) -> tuple[int, int]:
        """Return the masks of the operand whose row begins at the word `at`."""
        columns = range(micro.SOURCE, micro.SOURCE + 5 * micro.SOURCE_COLUMNS, micro.SOURCE_COLUMNS)
        begins = {row[column]: (row[column + 1], row[column + 2]) for column in reversed(columns)}
        return begins[at] if at in begins else begins[at - WARP_LANES]  # the upper half of 64 bits


def _bisect(last: int, holds: Callable[[int], bool]) -> int:
    """Return the largest number below `last` for which `holds`, which holds for all below it; 0 where none."""
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _places(rows: int) -> Iterator[int]:
    """Yield the words at which rows begin that are given as the bits of a number."""
    while rows:
        lowest = rows & -rows
        yield (lowest.bit_length() - 1) * WARP_LANES
        rows ^= lowest
