"""Numbers the operations of requests on the caches. Their file is separate because compiled loops are built from it."""

from __future__ import annotations

# READ_PAST_L1 is a read that bypasses L1, as cp.async.cg does. It is an ordinary READ in L2.
# WRITE_PAST_L1 is the write of a bulk copy; an ordinary WRITE in L2.
READ, WRITE, ATOMIC, READ_PAST_L1, WRITE_PAST_L1 = 0, 1, 2, 3, 4
