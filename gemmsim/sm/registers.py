"""Register file ports: how many cycles an instruction's operands keep them busy, and what the next one waits.

A sub-partition's registers are in two banks, even and odd numbers, and each bank delivers one register (32 lanes x 32
bits) a cycle. A fixed-latency instruction reads its operands in a window of three cycles; one that does not fit into
its window holds up whatever would issue behind it. Operands marked `.reuse` stay in a cache in front of the ports, for
the instruction behind (Huerta et al., "Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO'25, section
on the register file). Constants and immediates need no port. Instructions of variable latency are taken to find a free
port: they read later, when their own unit has taken them.

The uniform registers have one port too: on an H200 (own microbenchmark) UIADD3 with two uniform sources and a vector
instruction with one take 3 cycles a pair, UIADD3 and a vector instruction without one 2, two vector instructions with
one each 2.
"""

from __future__ import annotations

from gemmsim.isa.program import Instruction, OperandKind

EVEN, ODD, UNIFORM = 0, 1, 2
WINDOW_CYCLES = 3
UNIFORM_WINDOW_CYCLES = 2  # the uniform datapath takes an instruction every two cycles
FIXED_LATENCY = {"fma", "fmaheavy", "alu", "fp16", "uniform"}
_PREDICATES = (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)

Reads = tuple[int, int, int]  # cycles of the even bank, of the odd one, of the uniform registers
NO_READS: Reads = (0, 0, 0)


def two_passes(instruction: Instruction) -> bool:
    """Whether the multiplier takes it in two passes: IMAD.WIDE."""
    return instruction.opcode == "IMAD" and "WIDE" in instruction.modifiers


def window_cycles(instruction: Instruction, port: str) -> int:
    if port == "uniform":
        return UNIFORM_WINDOW_CYCLES
    return WINDOW_CYCLES + (2 if two_passes(instruction) else 0)  # the second pass is two cycles behind the first


def register_reads(instruction: Instruction, port: str, before: Instruction | None = None) -> Reads:
    """Port cycles of each bank; `before` is the instruction issued in the cycles before, where it is of the same warp.

    IMAD.WIDE reads its first factor and the low half of its 64-bit addend twice, the other factor and the high half
    once: that alone fits all of the loops measured on an H200 (own microbenchmark; cycles of one iteration):
    IMAD.WIDE.U32 R10, R2, R8, R10 takes 5, with a LOP3 that reads one even register 6, with UIADD3 5;
    IMAD.WIDE.U32 R8, R16, UR18, R10 takes 4, with an instruction that reads an even register 5, an odd one 4;
    IMAD.WIDE R16, R17, 0x10, R14 with IADD3 R16, R4, R11 takes 4.
    """
    if port not in FIXED_LATENCY:
        return NO_READS
    cached = _reused(before) if before is not None else {}
    wide = two_passes(instruction)
    cycles = [0, 0, sum(o.kind == OperandKind.UNIFORM_REGISTER and o.index >= 0 for o in instruction.operands[1:])]
    for slot, register in _registers(instruction).items():
        if cached.get(slot) == register:
            continue
        cycles[register % 2] += 2 if wide and slot in (0, 2) else 1
        if wide and slot == 2:
            cycles[(register + 1) % 2] += 1
    return (cycles[0], cycles[1], cycles[2]) if any(cycles) else NO_READS


def _registers(instruction: Instruction) -> dict[int, int]:
    """Operand slot -> register, of the sources that are registers."""
    sources = [o for o in instruction.operands[1:] if o.kind not in _PREDICATES]
    return {slot: o.index for slot, o in enumerate(sources) if o.kind == OperandKind.REGISTER and o.index >= 0}


def _reused(instruction: Instruction) -> dict[int, int]:
    mask = instruction.control.reuse_mask
    return {slot: register for slot, register in _registers(instruction).items() if mask >> slot & 1}


class RegisterPorts:
    """Of one sub-partition.

    next_free       first cycle at which the next instruction may issue
    blocked_cycles  cycles up to `next_free` during which none could
    """

    __slots__ = ("blocked_cycles", "even_free", "next_free", "odd_free", "uniform_free")

    def __init__(self) -> None:
        self.even_free = self.odd_free = self.uniform_free = 0
        self.next_free = 0
        self.blocked_cycles = 0

    def blocked_before(self, cycle: int) -> int:
        """Blocked cycles before `cycle`, which is not before the last issue."""
        ahead = self.next_free - cycle
        return self.blocked_cycles - ahead if ahead > 0 else self.blocked_cycles

    def read(self, now: int, reads: Reads, window: int) -> None:
        """An instruction that issues in cycle `now` reads; its last operand must come within `window` cycles."""
        even, odd, uniform = reads
        end = 0
        if even:
            end = self.even_free = (self.even_free if self.even_free > now else now) + even
        if odd:
            free = self.odd_free = (self.odd_free if self.odd_free > now else now) + odd
            if free > end:
                end = free
        if uniform:
            free = self.uniform_free = (self.uniform_free if self.uniform_free > now else now) + uniform
            if free > end:
                end = free
        late = end - window - now
        if late > 0:
            self.blocked_cycles += late
            self.next_free = now + 1 + late
