"""When warps of an H200 that read the clock behind each of their memory instructions would read what."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sm_builder import EXIT, ins, issues, program

from gemmsim.gpu.load import load_gpu
from gemmsim.isa.program import Instruction
from gemmsim.sm.streams import RecordCycles

H200 = load_gpu("h200")
CLOCKED = replace(H200, clock=replace(H200.clock, sm_load_hz=1.98e9))


def clocks(loads: list[tuple[Instruction, RecordCycles, int]], warps: int) -> np.ndarray:
    """Return the cycle at which each clock is read, behind each of the loads; float64, from that before the first load
    on, mean of the warps.

    loads  the instruction, its cost, and the stall count of the clock behind it
    """
    code = [ins("CS2R", 2)]
    for load, _, stall in loads:
        code += [load, ins("CS2R", stall)]
    costs = {1 + 2 * number: cost for number, (_, cost, _) in enumerate(loads)}
    seen = issues(program(*code, EXIT), warps, costs=costs, gpu=CLOCKED, warm_code=True)
    read = [index for index, instruction in enumerate(code) if instruction.opcode == "CS2R"]
    at = np.array([[cycle for cycle, w, index in seen.seen if w == warp and index in read] for warp in range(warps)])
    mean: np.ndarray = (at - at[:, :1]).mean(axis=0)[1:]
    return mean
