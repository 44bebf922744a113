"""Which execution pipe each opcode uses, by architecture: the table that says what competes with what.

The pipes have Nsight Compute's names (profiling guide, "Pipelines"); they are the keys of `GpuSpec.pipes`:

    fmaheavy  FP32 and integer multiply-add          fmalite   the second FP32 half (sm_86 and later)
    alu       integer add, logic, shifts, compares   fp64, fp16, tensor
    xu        transcendentals and conversions        uniform   the uniform datapath
    lsu       loads, stores, shuffles; its issue interval is the address unit's
    adu       special registers, constants by LDC, barriers (what they wait: `Barrier` of the GPU)
    cbu       branches; its latency is that from a taken branch to the next instruction

`fmalite` and `fp16` may be missing from a GPU: FP32 then has one half, and half precision runs where FP32 does.

Sources: Nsight Compute profiling guide ("Pipelines"); CUDA programming guide, table "Throughput of native arithmetic
instructions" (population count, conversions and transcendentals share the 16-a-cycle unit); NVIDIA RTX Blackwell
architecture whitepaper (every FP32 core takes integer work).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gemmsim.gpu.spec import GpuSpec
from gemmsim.support.errors import GemmsimError, nearest

# A port is what an instruction asks for when it issues; `port_pipes` says which pipes can serve it. "" needs none.
_PORT_OPCODES = {
    "fma": "FFMA FADD FMUL FSWZADD",
    "fmaheavy": "IMAD IMUL IDP VIADD",
    "alu": """IADD IADD3 LEA LOP3 LOP PLOP3 SHF SHL SHR ISETP SEL MOV PRMT SGXT BMSK IMNMX VIMNMX VIMNMX3
              VIADDMNMX IABS
              VABSDIFF VABSDIFF4 FSETP FSET FSEL FMNMX FMNMX3 FCHK P2R R2P VOTE CS2R LEPC I2FP F2FP""",
    "xu": "MUFU I2F F2I F2F FRND I2I POPC FLO BREV",
    "fp16": "HADD2 HMUL2 HFMA2 HSETP2 HSET2 HMNMX2",
    "fp64": "DADD DMUL DFMA DSETP",
    "tensor": "HMMA IMMA DMMA BMMA",
    "uniform": """UIADD3 UIMAD ULEA ULOP3 UPLOP3 USHF UISETP USEL UMOV ULDC UPRMT USGXT UBMSK UFLO UBREV UPOPC
                  UIMNMX UIABS UVIADD UVIMNMX UP2UR UR2UP UF2FP UFADD UFMUL UFFMA UFSETP UFSEL UFMNMX UI2FP
                  VOTEU R2UR REDUX""",
    "adu": "S2R S2UR LDC LDCU BAR MATCH B2R",
    "cbu": """BRA BRX BRXU JMP JMX JMXU EXIT BSSY BSYNC BREAK CALL RET WARPSYNC YIELD BMOV BPT KILL NANOSLEEP ELECT
              MEMBAR ERRBAR CGAERRBAR""",
    "": "NOP DEPBAR LDGDEPBAR",
    "lsu": "CCTL SHFL",  # and the loads and stores of _MEMORY
}

# VIADD in fmaheavy: alternating with LOP3 it issues every cycle, with IMAD every second (own microbenchmark, H200).

_UNIFIED_INTEGER_FROM = 100  # RTX Blackwell: integer multiply-adds run in both halves

_MATRIX = ("HMMA", "IMMA", "DMMA", "BMMA")

Space = Literal["global", "shared", "local"]


@dataclass(frozen=True, slots=True)
class MemoryOpcode:
    """space; whether registers are written (`load`); whether it copies from global to shared memory (LDGSTS)."""

    space: Space
    load: bool
    copy: bool = False


_MEMORY = {
    "LDG": MemoryOpcode("global", True),
    "LD": MemoryOpcode("global", True),
    "STG": MemoryOpcode("global", False),
    "ST": MemoryOpcode("global", False),
    "ATOM": MemoryOpcode("global", True),
    "ATOMG": MemoryOpcode("global", True),
    "RED": MemoryOpcode("global", False),
    "REDG": MemoryOpcode("global", False),
    "LDGSTS": MemoryOpcode("global", False, copy=True),
    "LDL": MemoryOpcode("local", True),
    "STL": MemoryOpcode("local", False),
    "LDS": MemoryOpcode("shared", True),
    "LDSM": MemoryOpcode("shared", True),
    "STS": MemoryOpcode("shared", False),
    "STSM": MemoryOpcode("shared", False),
    "ATOMS": MemoryOpcode("shared", True),
}

_PORT_OF = {opcode: port for port, names in _PORT_OPCODES.items() for opcode in names.split()}
_PORT_OF |= dict.fromkeys(_MEMORY, "lsu")


def port_of(opcode: str, arch: str) -> str:
    """The port that `opcode` issues to on `arch` ("sm_90"). Raises GemmsimError for an opcode that the table lacks."""
    if opcode == "IMAD" and _number(arch) >= _UNIFIED_INTEGER_FROM:
        return "fma"
    try:
        return _PORT_OF[opcode]
    except KeyError:
        hint = nearest(opcode, _PORT_OF)
        raise GemmsimError(f"opcode {opcode} ({arch}) has no execution pipe in gemmsim/sm/pipes.py{hint}") from None


def _number(arch: str) -> int:
    digits = "".join(c for c in arch.removeprefix("sm_") if c.isdigit())  # 90 of "sm_90a"
    if not digits:
        raise GemmsimError(f"architecture '{arch}' is not of the form sm_90")
    return int(digits)


def pipe_slots(opcode: str, modifiers: Collection[str], gpu: GpuSpec) -> float:
    """Issue intervals of its pipe that an instruction occupies; of the tensor pipe: see `GpuSpec.mma`.

    Own microbenchmark on an H200, loops of one opcode: IMAD.WIDE and IMAD.HI every 4 cycles and not 2, HFMA2.MMA and
    HADD2.F32 every 2 and not 1, UMOV and ULDC every cycle and not 2. Taken to be alike on other architectures.
    """
    if opcode == "IMAD" and ("WIDE" in modifiers or "HI" in modifiers):
        return 2.0
    if (opcode == "HFMA2" and "MMA" in modifiers) or (opcode == "HADD2" and "F32" in modifiers):
        return 2.0
    if opcode in _MATRIX:
        interval = gpu.pipes["tensor"].issue_interval_cycles
        if opcode == "DMMA":
            return gpu.mma.dmma_interval_cycles / interval
        if opcode == "IMMA":
            share = gpu.mma.half_work_share if "16816" in modifiers else 1.0
            return share * gpu.mma.imma_interval_cycles / interval
        return gpu.mma.half_work_share if _half_work(modifiers) else 1.0
    return 0.5 if opcode in ("UMOV", "ULDC") else 1.0


def matrix_latency_cycles(opcode: str, modifiers: Collection[str], gpu: GpuSpec) -> float:
    """Cycles to the result of a tensor-core instruction."""
    if opcode == "DMMA":
        return gpu.mma.dmma_latency_cycles
    if _half_work(modifiers) or (opcode == "IMMA" and "16816" in modifiers):
        return gpu.mma.half_work_latency_cycles
    return gpu.mma.imma_latency_cycles if opcode == "IMMA" else gpu.pipes["tensor"].latency_cycles


def _half_work(modifiers: Collection[str]) -> bool:
    """HMMA.1688 in fp16 and bf16, HMMA.1684 in TF32: half the multiply-adds that a time of the pipe allows."""
    return "1684" in modifiers or ("1688" in modifiers and "TF32" not in modifiers)


def memory_opcode(opcode: str) -> MemoryOpcode | None:
    """How `opcode` accesses memory through L1 or shared memory; None where it does not."""
    return _MEMORY.get(opcode)


def port_pipes(port: str, pipes: Collection[str]) -> tuple[str, ...]:
    """Those of a GPU's pipes that serve `port`, preferred first. Raises GemmsimError where it has none."""
    if port == "":
        return ()
    if port == "fp16" and "fp16" not in pipes:
        port = "fma"
    # fmalite first: FP32 work that leaves the heavy half to the integer multiplies loses nothing.
    wanted = ("fmalite", "fmaheavy") if port == "fma" else (port,)
    found = tuple(name for name in wanted if name in pipes)
    if not found:
        raise GemmsimError(f"the GPU description has no pipe '{port}'; it has {', '.join(sorted(pipes))}")
    return found
