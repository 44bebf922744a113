"""What an access does to the caches. A file of its own: it is compiled into their replays."""

from __future__ import annotations

READ, WRITE, ATOMIC, READ_PAST_L1 = 0, 1, 2, 3  # READ_PAST_L1: a read that bypasses L1
