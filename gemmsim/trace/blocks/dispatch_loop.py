"""The compiled loop of `gemmsim.trace.blocks.dispatch`, which deals blocks to SMs."""

from __future__ import annotations


def deal(work, sm_of, left, begun, share, now, next_end):  # type: ignore[no-untyped-def]
    """Give each block an SM, in the order of their numbers, and return the SM that ends last.

    work      how much each block has to do
    sm_of     is filled: the SM of each block
    left      float [SMs, blocks that an SM holds]: what the block in each place still has to do
    begun     int, as `left`: number of the block in each place; -1 in a free one
    share     float, as `left`: how much of the SM's work is done for the block in each place
    now       float [SMs]: time up to which `left` is known
    next_end  float [SMs]: when the next block of an SM ends
    """
    sms, resident = left.shape
    for block in range(len(work)):
        if block < sms * resident:
            sm, place = block % sms, block // sms
        else:
            sm = 0
            for other in range(1, sms):
                if next_end[other] < next_end[sm]:
                    sm = other
            place = 0
            for other in range(resident):
                left[sm, other] -= (next_end[sm] - now[sm]) * share[sm, other]
                if left[sm, other] < left[sm, place]:
                    place = other
            now[sm] = next_end[sm]
        sm_of[block] = sm
        left[sm, place], begun[sm, place] = work[block], block
        live = 0
        for other in range(resident):
            live += begun[sm, other] >= 0
        next_end[sm] = 1e300
        for one in range(resident):
            if begun[sm, one] >= 0:
                rank = 1  # of the youngest
                for other in range(resident):
                    rank += begun[sm, other] > begun[sm, one]
                share[sm, one] = 2 * rank / (live * (live + 1))
                next_end[sm] = min(next_end[sm], now[sm] + left[sm, one] / share[sm, one])
    last, latest = 0, -1.0
    for sm in range(sms):
        end = now[sm]
        for place in range(resident):
            end += left[sm, place]
        if end > latest:
            last, latest = sm, end
    return last
