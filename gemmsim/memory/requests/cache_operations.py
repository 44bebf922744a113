"""Numbers the operations of requests on the caches. Their file is separate because compiled loops are built from it."""

from __future__ import annotations

# READ_PAST_L1 is a read that bypasses L1, as cp.async.cg does. It is an ordinary READ in L2.
# WRITE_PAST_L1 is the write of a bulk copy; an ordinary WRITE in L2.
# LAST_READ is a read in L1 that says that it is the last use of its data (LDL.LU). It is an ordinary READ in L2.
READ, WRITE, ATOMIC, READ_PAST_L1, WRITE_PAST_L1, LAST_READ = 0, 1, 2, 3, 4, 5
