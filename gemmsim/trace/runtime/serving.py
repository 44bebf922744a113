"""Serves a warp that has stopped at a call of a function that its program lacks."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from gemmsim.isa.program import Program
from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.runtime.external_calls import ExternalCalls, call_of
from gemmsim.trace.stopped import Stopped


class Executor(Protocol):
    """The parts of `gemmsim.trace.execute.Executor`, which imports this module, that are used here."""

    program: Program
    code: NDArray
    memory: DeviceMemory
    externals: ExternalCalls
    buffers: Any  # `engine.trace_buffers.Buffers`
    context: NDArray


def serve_call(executor: Executor, block: int, state: BlockState) -> None:
    """Do the work of the function, for the warp that stopped at it; then it can go on."""
    warp = int(executor.buffers.counters[words.FAULT_WARP])
    function = int(executor.code[state.warps[warp, words.PC], micro.DETAIL])
    call = call_of(executor.program, function, block, warp, state, executor.memory)
    if stop := executor.externals.serve(call):
        # A program slice does not compute the arguments: let the whole program say what is wrong.
        sliced = int(executor.context[words.CODE_AT]) != executor.code.ctypes.data
        raise Stopped(stop, words.STALE if sliced else words.TRAP, block)
    state.warps[warp, words.PC] += 1
