"""An SM's share of what L2 and DRAM deliver to all SMs.

All SMs together get no more than L2 or DRAM has, so in the mean an SM gets its share. But one that asks for much at
once gets it as fast as its link allows while others compute. On an H200 loads of up to 64 KiB an SM, behind which it
computes, take no longer on all SMs than on few; only the first two or three do, as all SMs begin to ask at one time
(own microbenchmark, tests/records/h200_bursts.json).

L2 has two limits: what comes from it to the SMs, and the time of its slices. These take what comes from DRAM as slowly
as what SMs store, and both together: launches that copy what does not stay in L2 take as long where DRAM writes nothing
as where it does. What hits they could read faster than it gets to the SMs: beside stores it costs less than alone
(own microbenchmark, tests/records/h200_l2_capacity.json).
"""

from __future__ import annotations

from gemmsim.native.records import Record
from gemmsim.sm.spec import Spec


class Share(Record):
    """What an SM has asked for of its share.

    asked  how many cycles of the share it takes
    due    the cycle in which that is over if the SM takes no more than its share
    """

    asked: float
    due: float


def take(share: Share, now: int, cycles: float, loads_in_step: float) -> float:
    """Ask for what takes `cycles` of the share. Return the cycle before which it is not all there, however fast the
    SM's link is: what the SM has not used of its share until now counts, up to a part of what it has got.

    loads_in_step  one part in so many
    """
    waiting = max(share.due - now, 0.0)
    ahead = max(share.asked - waiting, 0.0) / loads_in_step
    share.due = max(share.due, now - ahead) + cycles
    share.asked += cycles
    return share.due


def slice_cycles(spec: Spec, hits: float, misses: int) -> float:
    """Return how many cycles of the SM's share of L2's slices a read takes of sectors that hit and that miss."""
    return max(hits, 0.0) * spec.slice_sector_cycles + misses * spec.stored_sector_l2_cycles
