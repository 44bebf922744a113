"""Measures the latency of a dependent chain and the interval between independent instructions, for each pipe."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gemmsim.support.warp import WARP_LANES

from .bench import Bench, Found, Raw, cycles_per_step
from .ptx import fold, unrolled

CHAINS = 4  # independent chains of instructions in a warp when the interval is measured
SUB_PARTITIONS = 4
ROUNDS = 64


@dataclass(frozen=True)
class Operation:
    """One instruction to measure, as `operations.toml` lists it; that file says what the fields mean."""

    step: str
    prefix: str
    words: int = 1
    latency: Sequence[str] = ()
    interval: Sequence[str] = ()
    least_arch: int = 75

    def on_chain(self, number: int) -> str:
        """Return the instruction as PTX, on the registers of the dependent chain `number`."""
        registers = [f"%{self.prefix}{self.words * number + i}" for i in range(self.words)]
        return self.step.replace("<chain>", registers[0] if self.words == 1 else "{" + ", ".join(registers) + "}")


_TABLE = tomllib.loads(Path(__file__).with_name("operations.toml").read_text(encoding="utf-8"))
OPERATIONS = {name: Operation(**row) for name, row in _TABLE.items()}


def kernels(arch: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, operation in _on(arch).items():
        for chains in (1, CHAINS):
            entry = f"{name}_{'chain' if chains == 1 else 'rate'}"
            step = partial(_step, operation, chains)
            found |= unrolled(entry, _start(operation, chains), step, _finish(operation, chains))
    return found


def _step(operation: Operation, chains: int, i: int) -> str:
    return operation.on_chain(i % chains)


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
    """Measure {operation: {"latency": cycles, "interval": {warps of a sub-partition: cycles per instruction}}}."""
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
    """Return the values of a preset. An interval is the least one measured, with 1, 2 or 4 warps in a sub-partition."""
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
    # Where there are two pipes for FFMA, it issues to both, so the interval of each pipe is twice the measured one.
    if "ffma" in best and best["ffma"] < 1.5:
        found.append(Found("pipes.fmalite.issue_interval_cycles", 2 * best["ffma"], "independent ffma to two pipes"))
    return found
