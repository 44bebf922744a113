"""Places blocks on SMs: which SM runs each block, and which blocks are there together.

While the GPU fills, blocks go out in passes of one block an SM: GPC by GPC, and in each GPC TPC by TPC. On an H200 some
SMs of one GPC (`sm.early_sms`) come before all others. They get their second block after five GPCs
(`sm.early_first_gpcs`) and a further one after each six (`sm.early_next_gpcs`). A pass for which there are too few
blocks gives every TPC one before any gets a second, in turn over the GPCs.

Later blocks go to whichever SM has room. Blocks take about as long as each other, so these come in passes too. The
order within such a pass is as good as chance. It is drawn at random, and is the same in every run.

Clusters go out one to each GPC in turn, as long as it has room in that pass. Those of two blocks go to the early SMs
first, a TPC each; larger ones do not fit there.

Source: the SMs that a probe kernel saw for 330 launches of up to 262,144 blocks on an H200 (`placement` in the records
of validate/), and for 87 launches of clusters (tests/records/h200_cluster_places.json). The GPC that is served first
differs from launch to launch there; here it is always the same one. Where the GPCs of a GPU are not known, block b of a
pass goes to the b-th SM.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu.limits import cluster_hosts, gpc_sizes
from gemmsim.gpu.spec import Sm
from gemmsim.trace.launch_data.clusters import Clusters

_DRAWN_GENERATIONS = 16  # later generations repeat these


@dataclass(frozen=True)
class Placement:
    """Where and when the blocks of a grid run. SMs are numbered in the order of a pass.

    sm                      int64 [blocks] SM that the block runs on
    generation              int64 [blocks] blocks of one SM and one generation are resident together
    gpc                     int64 [SMs] GPC that each SM belongs to
    resident_blocks_per_sm  blocks that an SM holds at once, where there are enough
    """

    sm: NDArray[np.int64]
    generation: NDArray[np.int64]
    gpc: NDArray[np.int64]
    resident_blocks_per_sm: int

    @property
    def first(self) -> NDArray[np.int64]:
        """The blocks of the first generation, ascending."""
        return np.flatnonzero(self.generation == 0)

    @property
    def generations(self) -> float:
        """How many blocks come to a place for one, one after another, in the mean: at least 1."""
        return max(1.0, len(self.sm) / (len(self.gpc) * self.resident_blocks_per_sm))

    def group(self, sm: int, generation: int) -> NDArray[np.int64]:
        """The blocks that are resident together on that SM in that generation, ascending."""
        return np.flatnonzero((self.sm == sm) & (self.generation == generation))


def place(clusters: Clusters, sm: Sm, resident_blocks_per_sm: int) -> Placement:
    """Place the blocks of a grid on SMs."""
    if clusters.blocks > 1:
        return _place_clusters(clusters, sm, resident_blocks_per_sm)
    blocks = prod(clusters.grid)
    gpcs = gpc_sizes(sm)
    slots = sm.count * resident_blocks_per_sm
    first = np.array(_fill(min(blocks, slots), gpcs, sm), np.int64)
    later = blocks - len(first)
    if later:
        numbers = range(min(_DRAWN_GENERATIONS, -(-later // slots)))
        drawn = [_drawn_generation(sm.count, resident_blocks_per_sm, number) for number in numbers]
        first = np.concatenate([first, np.resize(np.concatenate(drawn), later)])
    return Placement(first, np.arange(blocks) // slots, np.repeat(np.arange(len(gpcs)), gpcs), resident_blocks_per_sm)


def _place_clusters(clusters: Clusters, sm: Sm, resident_blocks_per_sm: int) -> Placement:
    hosts = np.array(_fill_with_clusters(clusters.blocks, sm, resident_blocks_per_sm), np.int64)
    number, rank = clusters.places(np.arange(prod(clusters.grid)))
    generation, at = number // len(hosts), number % len(hosts)
    draws = np.array([np.random.default_rng(n).permutation(len(hosts)) for n in range(_DRAWN_GENERATIONS)])
    at = np.where(generation > 0, draws[(generation - 1) % _DRAWN_GENERATIONS, at], at)
    gpcs = gpc_sizes(sm)
    gpc = np.repeat(np.arange(len(gpcs)), gpcs)
    return Placement(hosts[at, rank], generation, gpc, resident_blocks_per_sm)


def _fill_with_clusters(size: int, sm: Sm, resident_blocks_per_sm: int) -> list[list[int]]:
    """Return the SMs of each cluster of `size` blocks while the GPU fills, by the rank of its blocks."""
    found: list[list[int]] = []
    groups = [[sms for sms in hosts if len(sms) >= size] for hosts in cluster_hosts(sm)]
    given = [[0] * len(hosts) for hosts in groups]
    for turn in range(1, resident_blocks_per_sm + 1):
        for hosts, have in zip(groups, given, strict=True):  # in each pass, the early TPCs come before the GPCs
            room = [len(sms) * turn // size for sms in hosts]
            while have != room:
                for g, sms in enumerate(hosts):
                    if have[g] < room[g]:
                        slots = range(have[g] * size, (have[g] + 1) * size)
                        found.append(sorted(sms[slot % len(sms)] for slot in slots))
                        have[g] += 1
    return found


@lru_cache(maxsize=64)
def _drawn_generation(sms: int, resident: int, number: int) -> NDArray[np.int64]:
    """Draw the SM of each block of a generation after the first, pass by pass. `number` is the seed."""
    random = np.random.default_rng(number)
    return np.concatenate([random.permutation(sms) for _ in range(resident)])


def _fill(blocks: int, gpcs: tuple[int, ...], sm: Sm) -> list[int]:
    """Return the SMs of the first blocks, in order. Where GPCs are known, SMs 2 i and 2 i + 1 of a GPC share a TPC.

    gpcs  number of SMs of each GPC
    """
    starts = np.cumsum([0, *gpcs]).tolist()
    early = min(sm.early_sms, gpcs[0])
    turns = [range(start, start + size) for start, size in zip(starts, gpcs, strict=False)]
    turns[0] = range(early, gpcs[0])
    passes, left = divmod(blocks, sum(gpcs))
    found: list[int] = []
    served = 0  # how often the early SMs had their turn
    for turn in range(passes * len(gpcs)):
        due = sm.early_first_gpcs + sm.early_next_gpcs * (served - 1) if served else 0
        if served < passes and turn >= due:
            found += range(early)
            served += 1
        found += turns[turn % len(gpcs)]
    for _ in range(passes - served):
        found += range(early)
    if left:
        found += range(min(left, early))
        found += _last_pass(max(left - early, 0), turns, pairs=len(sm.gpc_sms) > 1)
    return found


def _last_pass(blocks: int, turns: list[range], pairs: bool) -> list[int]:
    """Return the SMs of a pass with too few blocks: every TPC gets one before any gets two, in turn over the GPCs.

    turns  the SMs of each GPC that take part
    pairs  whether SMs share TPCs, two by two
    """
    tpcs = [-(-len(turn) // 2) if pairs else len(turn) for turn in turns]
    quota = [0] * len(turns)
    for limits in (tpcs, [len(turn) for turn in turns]):
        while blocks and any(have < limit for have, limit in zip(quota, limits, strict=True)):
            for g, limit in enumerate(limits):
                if blocks and quota[g] < limit:
                    quota[g] += 1
                    blocks -= 1
    return list(chain.from_iterable(_in_gpc(turn, q, t) for turn, q, t in zip(turns, quota, tpcs, strict=True)))


def _in_gpc(turn: range, quota: int, tpcs: int) -> list[int]:
    """Return the SMs that get a block in one GPC, which has the SMs `turn` in `tpcs` TPCs and gets `quota` blocks. If
    there are more blocks than TPCs, the first TPCs get two.
    """
    if tpcs == len(turn):
        return list(turn[:quota])
    both = max(quota - tpcs, 0)
    return [*turn[: 2 * both], *turn[2 * both :: 2][: quota - 2 * both]]
