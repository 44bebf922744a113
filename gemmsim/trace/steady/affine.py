"""Proves for how many periods warps go on as they do: same instructions, same lanes, addresses that move evenly.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.differences.rules import rules_of
from gemmsim.trace.engine.differences import words as rule
from gemmsim.trace.lower.context import ALL, CONTROL_NUMBER, MicroProgram
from gemmsim.trace.slicing.dataflow import rows_of, step_of
from gemmsim.trace.steady import tape_words
from gemmsim.trace.steady.alike import check_constant, compares_alike, same_in_blocks
from gemmsim.trace.steady.changing import Changing
from gemmsim.trace.steady.control import follow_convergence, follow_exchange, follow_mbarrier, is_together
from gemmsim.trace.steady.copies import stride_of_copy
from gemmsim.trace.steady.operands import OPERATIONS, checked_operands, is_plain
from gemmsim.trace.steady.paths import Path
from gemmsim.trace.steady.rows import Rows
from gemmsim.trace.steady.states import FUNCTION, Bounds, Function, NotProvedError, States, lanes_of
from gemmsim.trace.steady.tapes import Tapes, way_of

_NAMES = {number: name for name, number in CONTROL_NUMBER.items()}
# Control that does the same in every period: the warps of a warpgroup close as many groups and arrive as often
_SAME = ("nop", "idle", "order_groups")
_CONVERGENCE = ("begin", "converge", "warpsync", "branch_divergent", "barrier")
_CONSTANT = ("barrier", "barrier_outcome", "multiply_matrix", "multiply_warpgroup")
# Memory that holds the same in each period: it does where the first one begins, and no word that moves is stored to it
_THE_SAME = (micro.CONSTANT, micro.SHARED, micro.LOCAL)
_LONGEST = 64  # micro-operations of one instruction that branches back to itself


class Walk:
    """Follows the instructions of a period.

    code     the program or a slice of it, as it is executed
    context  the words of the executor, which only bulk copies need
    rows     those that may change; None: all of a warp's
    """

    def __init__(
        self,
        program: MicroProgram,
        code: NDArray[np.uint32],
        context: NDArray[np.uint64] | None = None,
        rows: Rows | None = None,
    ) -> None:
        self._context, self.rows = context, rows
        self._code, self._words, self._start = code, code.tolist(), program.start.tolist()
        # Rows in which nothing is left between instructions: a wait that begins anew makes them anew, too.
        self._temporary = slice(WARP_LANES * (program.ones + 1), WARP_LANES * program.path_rows.start)
        unguarded = code[:, micro.FLAGS] & micro.UNGUARDED != 0
        idle = unguarded & np.isin(code[:, micro.OP], [CONTROL_NUMBER["nop"], CONTROL_NUMBER["idle"]])
        self._idle = np.logical_and.reduceat(idle, program.start[:-1]).tolist()  # instructions that do nothing
        self._rules = rules_of(program).tolist()
        self._warp_rows = sum(rows_of(rows.start, len(rows)) for rows in program.warp_rows)
        self._known: dict[int, tuple[list[int], list[int], int, Function, tuple[bool, ...]]] = {}
        self._rows: dict[int, tuple[list[int], list[int]]] = {}
        self._changing = Changing()
        # For how many periods a loop was proved last, by its first instruction and its length
        self._guesses: dict[tuple[int, int], int] = {}
        self._tapes = Tapes()
        self.strides: set[int] = set()  # bytes by which addresses move in a period
        self.moving: dict[int, int] = {}  # of instructions that access the GPU's memory
        # So many periods may be proved as one, where one alone was not just now; 1 where nothing says so
        self.factor = 1
        self.bounded: dict[int, tuple[int, int]] = {}

    def begin(self) -> None:
        """Note that another block begins, which is compared with other blocks."""
        self._changing.begin()

    def forget(self) -> None:
        """Forget what was found of addresses."""
        self.strides.clear()
        self.moving.clear()

    def periods(
        self,
        first: NDArray[np.uint32],
        step: NDArray[np.uint32],
        instructions: Sequence[int],
        path: Path,
        most: int,
        blocks: NDArray[np.int32] | None = None,
        unknown: Sequence[int] = (),
        bounds: Bounds | None = None,
    ) -> int:
        """Return how many periods follow that are like the one from `first` on, `most` at most; 0 where none is proved.

        Several warps must do the same all along, and what is returned holds for all of them.

        first         uint32 [warps, words of a warp's rows]: their words
        step          uint32 [warps, words of `rows`]: by how much they move in a period
        instructions  those of a period, in order
        path          the threads that execute them
        blocks        int32 [warps, words of `rows`]: not 0 where the word is another one in other blocks, by a
                      difference of this number; None where no other blocks are followed
        unknown       where rows begin whose words are taken to be the same in each period, but not to be known
        bounds        see `States`; `self.bounded` is then what was asked of it
        """
        # Warps and tiles of the same code mostly go on for as long: then all that limits it is found at once.
        loop = instructions[0], len(instructions)
        guess = min(self._guesses.get(loop, most), most)
        periods, self.factor = guess, 1
        while periods > 0:
            try:
                begin = partial(self._begun, (first, step, periods, blocks, bounds, self.rows), unknown)
                while (states := self._followed(begin, instructions, path, unknown)) is None:
                    pass
                if path.pc is not None:
                    states.check_round(self._temporary)
                if guess < most and periods == guess < states.least:
                    guess = periods = min(most, states.least)  # more may be proved
                    continue
                self.bounded, self._guesses[loop] = states.bounded, periods
                return periods
            except NotProvedError as error:
                guessed = guess < most
                periods, self.factor = min(error.periods, periods - 1), max(self.factor, error.factor)
                most = periods if periods > 0 or not guessed else most  # what fails says how many there are at most
                guess = periods = most
        return 0

    def _begun(self, states_of: tuple[Any, ...], unknown: Sequence[int], known: set[int]) -> States:
        """Return the states with which a period begins.

        states_of  what `States` takes
        known      rows that may be others in other blocks by then
        """
        states = States(*states_of)
        states.forget(unknown)
        states.may_change(known)
        return states

    def _followed(
        self, begun: Callable[[set[int]], States], instructions: Sequence[int], path: Path, unknown: Sequence[int]
    ) -> States | None:
        """Follow a period, by a tape where one says what a walk would find.

        begun  makes the states with which it begins, see `_begun`

        Returns the states behind it; None where other blocks may find rows changed there, to be looked at again.
        """
        known = self._changing.at(instructions[0])
        states = begun(known)
        way = way_of(instructions, path, states, sorted(known), unknown)
        try:
            states, kept = self._tapes.replay(way, states, partial(begun, known))
            if kept is not None:
                states.end_with_unknown(kept.unknown)
                changing = set(kept.changing)
                for instruction, stride in kept.noted.moves:
                    self._moves(instruction, stride)
            else:
                blocks = None if states.blocks is None else states.blocks.copy()
                self._follow(states, instructions, path)
                self._tapes.keep(way, blocks, states)
                changing = states.changing
        except NotProvedError:
            if not self._changing.gives_up(instructions[0]):
                raise
            return None
        found = changing - known
        known |= found
        return None if found else states

    def _follow(self, states: States, instructions: Sequence[int], path: Path) -> None:
        """Follow the instructions of a period, which must lead to one another, and the last one to the first.

        Where the period begins within an instruction, what is left of it comes first, and its beginning last.
        """
        number, order = self._start[instructions[0]], list(instructions)
        if path.pc is not None and (begun := self._words[path.pc][micro.INSTRUCTION]) != order[0]:
            number, order = path.pc, [begun, *order]
        last = len(order) - 1
        for place, instruction in enumerate(order):
            if self._idle[instruction] and number == self._start[instruction]:
                number = self._start[instruction + 1]
                continue
            start, stop, steps = self._start[instruction], self._start[instruction + 1], 0
            if place and number != start:
                raise NotProvedError("instructions come in another order")
            if place == last and path.pc is not None and start < path.pc < stop:
                stop = path.pc
            while start <= number < stop:
                number = self._step(states, number, path)
                steps += 1
                if steps > _LONGEST:
                    raise NotProvedError("an instruction repeats itself")
        if path.pc not in (None, number):
            raise NotProvedError("the period does not end where it begins")

    def _step(self, states: States, number: int, path: Path) -> int:
        """Follow one micro-operation; return the next one of its instruction, or one of another instruction."""
        row, mask = self._words[number], path.mask
        if not row[micro.FLAGS] & micro.UNGUARDED:
            mask &= states.truth(row[micro.GUARD], row[micro.GUARD_XOR], mask)
        kind = row[micro.OP]
        if kind in OPERATIONS:
            if mask:
                self._operate(states, number, ALL if row[micro.FLAGS] & micro.UNIFORM else mask)
            return number + 1
        name = _NAMES[kind]
        if name in _SAME or not mask:
            return number + 1
        if name == "branch":
            taken = states.truth(row[micro.SOURCE], row[micro.SOURCE_FLIP], mask)
            if taken and taken != path.mask:
                raise NotProvedError("threads of a warp part")
            return row[micro.TARGET] if taken else number + 1
        if name in _CONVERGENCE:
            follow_convergence(states, name, row, mask, path)
            if name == "branch_divergent":
                return row[micro.TARGET] if is_together(states, row, mask) == bool(row[micro.DETAIL]) else number + 1
        if name in ("access", "move_matrix"):
            self._access(states, row, number, mask)
        elif name in _CONSTANT:
            reads, writes = self._touched(number)
            for at in reads:
                states.constant(at, mask, decides=name.startswith("barrier"))
            states.forget(writes)
        elif name == "exchange":
            follow_exchange(states, row, self._address(number), mask, self._touched(number))
        elif name == "mbarrier":
            follow_mbarrier(states, row, mask)
        elif name == "copy_in_bulk" and self._context is not None:
            self._note(states, row, stride_of_copy(states, row, self._address(number), mask, self._context))
        elif name not in _CONVERGENCE:
            raise NotProvedError(f"'{name}' is not followed")
        return number + 1

    def _access(self, states: States, row: list[int], number: int, mask: int) -> None:
        stride = states.stride(row[micro.SOURCE], mask)
        self._note(states, row, stride)
        if row[micro.ACCESS] & micro.UNMOVED_BIT:
            return
        space, kind = row[micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK, row[micro.ACCESS] >> micro.KIND_SHIFT
        if space not in _THE_SAME or kind == micro.ATOMIC:
            raise NotProvedError("what is loaded decides")
        if stride:
            raise NotProvedError("what decides is at another place in each period")
        reads, writes = self._touched(number)
        for at in reads if kind == micro.STORE else ():
            states.constant(at, mask, decides=True)
        states.forget(writes)

    def _note(self, states: States, row: list[int], stride: int) -> None:
        """Note by how many bytes the addresses of a micro-operation move in a period."""
        on_chip = row[micro.ACCESS] >> micro.SPACE_SHIFT & micro.SPACE_MASK in (micro.SHARED, micro.CONSTANT)
        states.tape.moves.append((None if on_chip else row[micro.INSTRUCTION], stride))
        self._moves(*states.tape.moves[-1])

    def _moves(self, instruction: int | None, stride: int) -> None:
        """Note by how many bytes addresses move in a period; `instruction`: None where they are on the chip."""
        self.strides.add(stride)
        if instruction is not None and self.moving.setdefault(instruction, stride) != stride:
            raise NotProvedError("accesses of one instruction move differently")

    def _address(self, number: int) -> int:
        return self._code.ctypes.data + 4 * micro.COLUMNS * number

    def _operate(self, states: States, number: int, mask: int) -> None:
        """Execute an operation on lanes in all states, and check how its results move."""
        row, rules = self._words[number], self._rules[number]
        sources, results, op, function, plain = self._operands(number)
        lanes, operation, places = lanes_of(mask), (function, op, mask), (sources, results)
        moving = 0
        if states.any_moves(sources):
            moving = sum(1 << place for place, at in enumerate(sources) if states.moves(at, mask))
        if states.any_unknown(sources):
            if moving:
                raise NotProvedError("a word that moves meets one that is not known")
            states.forget(results)
            return
        name = OPERATIONS[row[micro.OP]]
        linear = bool(moving) and checked_operands(states, row, rules, sources, moving, mask)
        alike = name == "plop3" and same_in_blocks(states, operation, places)
        if name == "setp_lt_u32" and not moving and all(plain[:2]):
            alike = compares_alike(states, operation, places)
        if alike:
            states.follow_blocks([], results, mask, False, name)
        else:
            changes = bool(moving) and rules[rule.CHECKED] != 0
            states.follow_blocks(sources, results, mask, changes, name, plain)
        held = {at: states.rows(at)[:2].copy() for at in sources if at in results} if moving else {}
        for address in states.addresses:
            function(op, address, mask)
        states.tape.note(tape_words.OPERATE, op, mask)
        states.remember(results, mask, bool(moving))
        if not moving:
            return
        for place, at in enumerate(results):
            zero, one, last = states.rows(at) if mask == ALL else states.rows(at)[..., lanes]
            constant = (not linear and rules[rule.CHECKED] >> place & 1) or name.startswith("setp_")
            if constant:
                check_constant(states, name, operation, sources, held, at)
            elif not (last == zero + (one - zero) * np.uint32(states.last)).all():
                raise NotProvedError(f"{name} is not linear")
            else:
                states.tape.note(tape_words.LINEAR, at, mask)

    def _operands(self, number: int) -> tuple[list[int], list[int], int, Function, tuple[bool, ...]]:
        """Return sources and results of an operation, the address of its row in the code, what executes it, and which
        sources are taken as they are."""
        if number not in self._known:
            row, rules = self._words[number], self._rules[number]
            sources = rules[rule.SOURCE_AT : rule.SOURCE_AT + rules[rule.SOURCES]]
            self._known[number] = (
                sources,
                rules[rule.RESULT_AT : rule.RESULT_AT + rules[rule.RESULTS_COUNT]],
                self._address(number),
                FUNCTION(row[micro.FUNCTION] | row[micro.FUNCTION + 1] << 32),
                tuple(is_plain(row, at) for at in sources),
            )
        return self._known[number]

    def _touched(self, number: int) -> tuple[list[int], list[int]]:
        """Return the words at which the rows begin that a micro-operation other than one on lanes reads and writes."""
        if number not in self._rows:
            done = step_of(self._words[number], number, self._warp_rows)
            self._rows[number] = list(_places(done.reads | done.control)), list(_places(done.writes))
        return self._rows[number]


def _places(rows: int) -> Iterator[int]:
    """Yield the words at which rows begin that are given as the bits of a number."""
    while rows:
        lowest = rows & -rows
        yield (lowest.bit_length() - 1) * WARP_LANES
        rows ^= lowest
