"""What an access does to the caches. A file of its own: it is compiled into their replays."""

from __future__ import annotations

READ, WRITE, ATOMIC, PAST = 0, 1, 2, 3  # PAST: a read that bypasses L1
