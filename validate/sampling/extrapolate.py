"""Works out exact counters of a launch too large to execute in full from full executions with a shorter K.

A block repeats the same instructions in each step of K. So every sum of executions, requests or sectors grows by the
same amount from step to step, as long as rows keep their alignment; two short executions give the line.
"""

from __future__ import annotations

from dataclasses import replace

from gemmsim import api
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.spec import Settings
from gemmsim.support.provenance import Provenance

from .corpus import Case, launch_spec
from .mapping import SPLITS

# Schemes in which every tile, or every share of one, has as many steps as the others.
_LINEAR = ("by_tile", "batched", "persistent", "work_counter", "split_k", "per_thread")
_LINE_FLOATS = 32  # K grows by whole lines of memory, so that every row starts with one; steps are shorter or as long


def extrapolated(case: Case, gpu: GpuSpec) -> dict[str, float]:
    """Return the exact counters that are sums, from full executions with one and two lines in a row of A.

    With split-K each share has one or two. Returns {} for a scheme whose counters do not grow so evenly, and where K is
    no whole number of lines, or rows are padded.
    """
    unit = _LINE_FLOATS * (SPLITS if case.kernel.scheme == "split_k" else 1)
    if case.kernel.scheme not in _LINEAR or case.k % unit or case.pad:
        return {}
    one, two = (_sums(replace(case, k=unit * steps), gpu) for steps in (1, 2))
    return {name: one[name] + (two[name] - one[name]) * (case.k // unit - 1) for name in one}


def _sums(case: Case, gpu: GpuSpec) -> dict[str, float]:
    traffic = api.count(launch_spec(case, gpu, Settings(full=True))).traffic
    exact = (name for name, how in traffic.provenance.items() if how is Provenance.EXACT)
    return {name: traffic.counters[name] for name in exact if name.endswith(".sum")}
