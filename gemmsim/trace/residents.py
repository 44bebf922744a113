"""Runs blocks that are resident together interleaved, and notices where they wait for each other forever.

The compiled loop `gemmsim.trace.engine.run_residents` switches between the blocks. Here blocks begin, as soon as one of
those before them has ended and made room, and here a deadlock is found: all resident blocks spin, and all of them come
back to a state in which they were before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.native.function import NativeFunction
from gemmsim.trace import words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.cluster_waits import wait_in_clusters
from gemmsim.trace.launch_data.clusters import Clusters

ONE_ORDER = (
    "blocks wait for each other or share out work: they ran interleaved, by the number of instructions that each has "
    "executed; on hardware, time decides how often a wait is repeated and which block does which part; the time that "
    "blocks wait for each other is not modelled"
)

AS_ONE_BLOCK = (
    "blocks of a cluster ran together; for the time, each does to the others what they do to it, at the same time"
)


# So many times in a row all resident blocks may ask in vain for what they wait for: the budget of the launch, in warp
# instructions, divided by this. A block that asks 4 million times waits for a second or longer on hardware.
_OF_ROUNDS, _FEWEST_ROUNDS = 500, 4096
# After each of so many rounds states are compared with earlier ones, which takes longer than a round; later after every
# second round, every third and so on.
_ROUNDS_WATCHED = 1 << 12


@dataclass(frozen=True)
class Room:
    """How many blocks may be on the GPU at once, and how they form clusters, of which each begins as a whole."""

    blocks: int
    clusters: Clusters


class Residents:
    """The blocks that are on the GPU at once.

    room     how many blocks fit, and their clusters
    context  the words that the compiled executor reads (`gemmsim.trace.words`)
    run      `run_residents`
    make     makes the state of another block
    begin    makes a state that of the block with this linear id, which has not run yet
    ended    is called with the linear id of each block after its turn, where the executor stops after each turn
    recover  does what a status asks for, so that the executor can go on with the block with this linear id, whose state
             it gets too; raises where it cannot
    """

    def __init__(
        self,
        room: Room,
        context: NDArray[np.uint64],
        run: NativeFunction,
        make: Callable[[], BlockState],
        begin: Callable[[BlockState, int], None],
        recover: Callable[[int, int, BlockState], None],
        ended: Callable[[int], None] | None = None,
    ) -> None:
        size = room.clusters.blocks
        self.limit, self.clusters = max(room.blocks // size, 1) * size, room.clusters
        self.context, self._run = context, run
        self._make, self._begin, self._recover, self._ended = make, begin, recover, ended
        self._states: list[BlockState] = []
        self._known: list[tuple[NDArray, ...]] | None = None
        self.turns = 0  # how often blocks have given way since they were made
        self._words = context.view(np.int64)

    def run(
        self,
        blocks: Sequence[int],
        streams: NDArray[np.bool_],
        executed: NDArray[np.int64],
        threads: NDArray[np.int64],
        before: Callable[[], None],
        budget: int,
    ) -> None:
        """Run `blocks` (linear ids), which are whole clusters, to their ends. Clusters begin in the order of their
        numbers, blocks without clusters in the order given.

        streams            bool [blocks]: whether the block's instruction stream is recorded
        executed, threads  int64 [blocks, instructions]: executions by warps and by threads are added to them
        before             is called before each call of the compiled loop
        budget             warp instructions of the launch

        Raises Stopped where blocks wait for each other forever, or for too long.
        """
        count = min(self.limit, len(blocks))
        while len(self._states) < count:
            self._states.append(self._make())
        self._rows = np.zeros((count, words.RESIDENT_WORDS), np.int64)
        self.blocks, self._streams, self._executed, self._threads = blocks, streams, executed, threads
        self._number = [0] * count  # which of `blocks` each resident is
        self._order, self._begun = self._in_clusters(blocks), 0
        # For each cluster the addresses of its blocks' rows, 0 for blocks that have ended
        self._places = np.zeros((count // self.clusters.blocks, self.clusters.blocks), np.uint64)
        for resident in range(count):
            self._rows[resident, words.LAST_TURN] = resident
            self._start(resident)
        now = self._words
        self.context[words.RESIDENTS_AT] = self._rows.ctypes.data
        now[words.RESIDENTS], now[words.CURRENT], now[words.TURNS] = count, -1, count
        now[words.NOW] = now[words.SPINS_IN_A_ROW] = 0
        self._most_rounds = max(_FEWEST_ROUNDS, budget // _OF_ROUNDS)
        self._expect()
        live = count
        while live:
            now[words.SPIN_LIMIT] = live * self._interval
            before()
            status = self._run(np.uint64(self.context.ctypes.data))
            current = int(now[words.CURRENT])
            if self._ended:
                ran = current if current >= 0 else int(self._rows[:, words.LAST_TURN].argmax())
                self._ended(int(blocks[self._number[ran]]))
            if status in (words.SPINS, words.GIVES_WAY):
                if now[words.SPINS_IN_A_ROW] >= now[words.SPIN_LIMIT]:
                    self._seek_change()
            elif status == words.FINISHED:
                self._follow(current)
                live = int(self._rows[:, words.LIVE].sum())
            else:
                self._recover(status, int(blocks[self._number[current]]), self._states[current])
        self.turns += int(now[words.TURNS]) - count

    def _in_clusters(self, blocks: Sequence[int]) -> list[int]:
        """Return which of `blocks` begins as first, second and so on: those of a cluster in a row, by their ranks."""
        size = self.clusters.blocks
        if size == 1:
            return list(range(len(blocks)))
        numbers, ranks = self.clusters.places(np.asarray(blocks, np.int64))
        order = np.lexsort((ranks, numbers))
        whole = len(blocks) % size == 0 and (ranks[order].reshape(-1, size) == np.arange(size)).all()
        assert whole, "blocks of a cluster that meet are executed together"
        return order.tolist()

    def _start(self, resident: int) -> None:
        """Let the next block begin as resident number `resident`."""
        number = self._number[resident] = self._order[self._begun]
        self._begun += 1
        row, state = self._rows[resident], self._states[resident]
        block = int(self.blocks[number])
        self._begin(state, block)
        values = state.addresses() | {
            words.EXECUTED_AT: self._executed[number].ctypes.data,
            words.THREADS_AT: self._threads[number].ctypes.data,
            words.STREAM: int(self._streams[number]),
        }
        cluster, rank = divmod(resident, self.clusters.blocks)
        if self.clusters.blocks > 1:
            self._places[cluster, rank] = row.ctypes.data
            values[words.CLUSTER_AT] = self._places[cluster].ctypes.data
            values[words.SHARED_BASE] = rank << words.RANK_SHIFT
        row[words.STATE_WORDS :] = [values.get(slot, 0) for slot in words.STATE_CONTEXT]
        row[words.LIVE], row[words.SPINNING] = 1, 0
        row[words.RESIDENT_WARP_BASE] = number * len(state.warps)

    def _follow(self, resident: int) -> None:
        """Note that a block has ended. Where it was the last of its cluster, let the next one begin in its place."""
        self._words[words.CURRENT], self._words[words.SPINS_IN_A_ROW] = -1, 0
        self._expect()
        cluster, rank = divmod(resident, self.clusters.blocks)
        self._rows[resident, words.LIVE] = self._places[cluster, rank] = 0
        places = range(resident - rank, resident - rank + self.clusters.blocks)
        if self._begun < len(self._order) and not self._rows[places.start : places.stop, words.LIVE].any():
            for place in places:
                self._start(place)

    def _expect(self) -> None:
        """Expect that something happens from now on."""
        self._rounds, self._looks, self._interval, self._known = 0, 0, 1, None
        self._last_look = int(self._words[words.TURNS])

    def _seek_change(self) -> None:
        """Look whether anything has changed since an earlier look, before which all blocks did nothing but spin, too.

        Looks are compared with look 1, 2, 4, 8 and so on, so that a cycle of any length is found (R. P. Brent, "An
        improved Monte Carlo factorization algorithm", 1980). Raises Stopped where blocks count meanwhile, so that their
        states never come back, and have spun for too long.
        """
        self._words[words.SPINS_IN_A_ROW] = 0
        live = [state for state, row in zip(self._states, self._rows, strict=False) if row[words.LIVE]]
        turns = int(self._words[words.TURNS])
        spun_only = turns - self._last_look == int(self._words[words.SPIN_LIMIT])
        self._rounds = self._rounds + self._interval if spun_only else self._interval
        self._last_look, self._looks = turns, self._looks + 1
        again = self._known is not None and all(
            np.array_equal(a, b)
            for state, known in zip(live, self._known, strict=True)
            for a, b in zip(state.snapshot(), known, strict=True)
        )
        if again or self._rounds >= self._most_rounds:
            self._give_up()
        if self._looks & (self._looks - 1) == 0:
            self._known = [state.snapshot() for state in live]
        self._interval = max(1, self._rounds // _ROUNDS_WATCHED)

    def _give_up(self) -> None:
        """Raise Stopped: all resident blocks spin."""
        first = min(np.flatnonzero(self._rows[:, words.LIVE]).tolist(), key=self._number.__getitem__)
        self._words[words.CURRENT] = first
        self._recover(words.STUCK, int(self.blocks[self._number[first]]), self._states[first])

    def live(self) -> dict[int, BlockState]:
        """Return {linear id: state} of the blocks that have not ended."""
        live = np.flatnonzero(self._rows[:, words.LIVE]).tolist()
        return {int(self.blocks[self._number[n]]): self._states[n] for n in live}

    def polled(self) -> tuple[int, int]:
        """Return the index of the instruction with which block CURRENT spins, and its warp."""
        current = int(self._words[words.CURRENT])
        warp = int(self._rows[current, words.SPIN_WARP])
        return int(self._states[current].warps[warp, words.TURN_FLAGS] >> words.TURN_INSTRUCTION_SHIFT), warp

    def describe_wait(self, program: Program, code: NDArray[np.uint32], block: int, grid_blocks: int) -> str:
        """Say where the resident blocks wait, `block` first. `code` is the lowered program."""
        rows = self._rows[self._rows[:, words.LIVE] != 0]
        if said := wait_in_clusters(program, code, self.live(), self.clusters):
            return said
        number, warp = self.polled()
        instruction = program.instructions[number]
        line = f"line {instruction.sources[-1].line} of {instruction.sources[-1].file}, " if instruction.sources else ""
        others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        left = f": {grid_blocks} blocks, {self.limit} fit" if self._begun < len(self.blocks) else ""
        resident, where = "resident " if left else "", f"'{instruction.text}' at {instruction.offset:#06x}, warp {warp}"
        will = f"no {resident}block will write{left} ({line}{where})"
        if self._rounds >= self._most_rounds:
            will = (
                f"no {resident}block has written, after {self._rounds:,} loads of it{left} ({line}{where}; "
                "raise --max-instructions if more are needed)"
            )
        who = f"block {block}{others} wait{'' if others else 's'}"
        return f"kernel '{program.name}' never ends: {who} for a value that {will}"
