"""The records of `layout`, as compiled code sees them. Like all that imports numba here, imported only to compile."""

from __future__ import annotations

from numba import from_dtype

from gemmsim.sm.compiled.layout import BLOCK, COST, MARK, PART, PIPE, PORT, RETURN, ROW, SERVER, SM, STREAM, WARP
from gemmsim.sm.compiled.memory import records

ROW_TYPE, COST_TYPE, WARP_TYPE, BLOCK_TYPE, PART_TYPE, SERVER_TYPE, SM_TYPE = (
    from_dtype(dtype) for dtype in (ROW, COST, WARP, BLOCK, PART, SERVER, SM)
)
row_at, cost_at, stream_at, warp_at, block_at = (records(dtype) for dtype in (ROW, COST, STREAM, WARP, BLOCK))
pipe_at, port_at, part_at, server_at, mark_at, sm_at = (
    records(dtype) for dtype in (PIPE, PORT, PART, SERVER, MARK, SM)
)
return_at = records(RETURN)
