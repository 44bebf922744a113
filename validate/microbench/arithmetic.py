"""Measures the latency of a dependent chain and the interval between independent instructions, for each pipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gemmsim.support.warp import WARP_LANES

from .bench import Bench, Found, Raw, cycles_per_step
from .ptx import fold, unrolled

CHAINS = 4  # independent chains in a warp, for the interval
SUB_PARTITIONS = 4
ROUNDS = 64


@dataclass(frozen=True)
class Operation:
    """One instruction that is measured.

    step        step(j) is the instruction on chain j, as PTX
    prefix      which registers the chains are in: "f", "r" or "g" (see `ptx.kernel`)
    words       how many registers a chain has
    latency     keys of a preset whose value is the latency
    interval    keys of a preset whose value is the interval
    least_arch  the first architecture that has the instruction
    """

    step: Callable[[int], str]
    prefix: str
    words: int
    latency: tuple[str, ...]
    interval: tuple[str, ...] = ()
    least_arch: int = 75


def _four(prefix: str, first: int, count: int = 4) -> str:
    return "{" + ", ".join(f"%{prefix}{first + i}" for i in range(count)) + "}"


def _matrix(shape: str, kinds: str, a: int, b: int, prefix: str, c: int) -> Callable[[int], str]:
    """A step of mma.sync with C += A B, where A, B and C have a, b and c registers.

    A and B are b32 registers from %r100 on, or doubles from %g28 on.
    """

    def step(j: int) -> str:
        chain = _four(prefix, c * j, c)
        left, right = ("{%g28}", "{%g29}") if prefix == "g" else (_four("r", 100, a), _four("r", 104, b))
        return f"mma.sync.aligned.{shape}.row.col.{kinds} {chain}, {left}, {right}, {chain};"

    return step


OPERATIONS = {
    "ffma": Operation(
        lambda j: f"fma.rn.f32 %f{j}, %f{j}, %f100, %f101;", "f", 1,
        ("pipes.fmalite.latency_cycles", "pipes.fmaheavy.latency_cycles"),
    ),
    "imad": Operation(
        lambda j: f"mad.lo.u32 %r{j}, %r{j}, %r100, %r101;", "r", 1, (), ("pipes.fmaheavy.issue_interval_cycles",),
    ),
    "prmt": Operation(
        lambda j: f"prmt.b32 %r{j}, %r{j}, %r100, %r101;", "r", 1,
        ("pipes.alu.latency_cycles",), ("pipes.alu.issue_interval_cycles",),
    ),
    "hfma2": Operation(
        lambda j: f"fma.rn.f16x2 %r{j}, %r{j}, %r100, %r101;", "r", 1,
        ("pipes.fp16.latency_cycles",), ("pipes.fp16.issue_interval_cycles",),
    ),
    "dfma": Operation(
        lambda j: f"fma.rn.f64 %g{j}, %g{j}, %g28, %g29;", "g", 1,
        ("pipes.fp64.latency_cycles",), ("pipes.fp64.issue_interval_cycles",),
    ),
    "popc": Operation(
        lambda j: f"popc.b32 %r{j}, %r{j};", "r", 1,
        ("pipes.xu.latency_cycles",), ("pipes.xu.issue_interval_cycles",),
    ),
    "shfl": Operation(
        lambda j: f"shfl.sync.bfly.b32 %r{j}, %r{j}, 1, 31, -1;", "r", 1, ("pipes.lsu.latency_cycles",)
    ),
    "hmma_16816": Operation(
        _matrix("m16n8k16", "f32.f16.f16.f32", 4, 2, "f", 4), "f", 4,
        ("pipes.tensor.latency_cycles",), ("pipes.tensor.issue_interval_cycles",), 80,
    ),
    "hmma_1688": Operation(
        _matrix("m16n8k8", "f32.f16.f16.f32", 2, 1, "f", 4), "f", 4, ("mma.half_work_latency_cycles",),
    ),
    "imma_16832": Operation(
        _matrix("m16n8k32", "s32.s8.s8.s32", 4, 2, "r", 4), "r", 4,
        ("mma.imma_latency_cycles",), ("mma.imma_interval_cycles",), 80,
    ),
    "dmma_884": Operation(
        _matrix("m8n8k4", "f64.f64.f64.f64", 1, 1, "g", 2), "g", 2,
        ("mma.dmma_latency_cycles",), ("mma.dmma_interval_cycles",), 80,
    ),
}  # fmt: skip


def kernels(arch: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, operation in _on(arch).items():
        for chains in (1, CHAINS):
            entry = f"{name}_{'chain' if chains == 1 else 'rate'}"
            step = partial(_step, operation, chains)
            found |= unrolled(entry, _start(operation, chains), step, _finish(operation, chains))
    return found


def _step(operation: Operation, chains: int, i: int) -> str:
    return operation.step(i % chains)


def _on(arch: str) -> dict[str, Operation]:
    number = int(arch.removeprefix("sm_"))
    return {name: operation for name, operation in OPERATIONS.items() if number >= operation.least_arch}


def _start(operation: Operation, chains: int) -> str:
    lines = ["cvt.u64.u32 %d0, %other;", "cvt.rn.f64.u32 %g28, %other;", "cvt.rn.f64.u32 %g29, %other;"]
    lines += [f"add.u32 %r{i}, %other, {i};" for i in range(100, 106)]
    lines += [f"mov.b32 %f{i}, %r{i};" for i in (100, 101)]
    for j in range(chains * operation.words):
        lines.append(
            {"f": f"cvt.rn.f32.u32 %f{j}, %thread;", "g": f"cvt.rn.f64.u32 %g{j}, %thread;"}.get(
                operation.prefix, f"add.u32 %r{j}, %thread, {j};"
            )
        )
    return "\n".join(lines)


def _finish(operation: Operation, chains: int) -> str:
    lines = []
    for j in range(chains * operation.words):
        register = f"%r{j}"
        if operation.prefix == "f":
            lines.append(f"mov.b32 %r110, %f{j};")
            register = "%r110"
        elif operation.prefix == "g":
            lines.append(f"cvt.rzi.u32.f64 %r110, %g{j};")
            register = "%r110"
        lines.append(fold([register]))
    return "\n".join(lines)


def run(bench: Bench, arch: str) -> Raw:
    """Samples as {operation: {"latency": cycles, "interval": {warps of a sub-partition: cycles per instruction}}}."""
    raw: Raw = {}
    for name in _on(arch):
        latency = cycles_per_step(bench, f"{name}_chain", 32, None, ROUNDS)
        rates = {}
        for warps in (1, 2, 4):
            step = cycles_per_step(bench, f"{name}_rate", WARP_LANES * warps * SUB_PARTITIONS, None, ROUNDS)
            rates[str(warps)] = step / warps
        raw[name] = {"latency": latency, "interval": rates}
    return raw


def values(raw: Raw) -> list[Found]:
    """The values of a preset. An interval is that of the number of warps that reaches the highest rate."""
    found = []
    best = {name: min(one["interval"].values()) for name, one in raw.items()}
    for name, one in raw.items():
        operation = OPERATIONS[name]
        found += [Found(key, one["latency"], f"dependent chain of {name}") for key in operation.latency]
        what = f"independent {name}, 1 to 4 warps a sub-partition"
        found += [Found(key, best[name], what) for key in operation.interval]
    if "hmma_1688" in best and "hmma_16816" in best:
        share = best["hmma_1688"] / best["hmma_16816"]
        found.append(Found("mma.half_work_share", share, "independent hmma_1688 over hmma_16816"))
    # Where there are two pipes for FFMA, it issues to both, so each takes twice as long.
    if "ffma" in best and best["ffma"] < 1.5:
        found.append(Found("pipes.fmalite.issue_interval_cycles", 2 * best["ffma"], "independent ffma to two pipes"))
    return found
