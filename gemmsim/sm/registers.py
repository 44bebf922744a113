"""Register file ports: how many cycles an instruction's operands keep them busy, and what the next one waits.

A sub-partition's registers are in two banks, even and odd numbers, and each bank delivers one register (32 lanes x 32
bits) a cycle. A fixed-latency instruction reads its operands in a window of three cycles; one that does not fit into
its window holds up whatever would issue behind it. In front of the ports a cache keeps one operand of each slot and
bank: one marked `.reuse` stays there until another is read for that slot and bank, by whichever warp (Huerta et al.,
"Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO'25, section on the register file). On an H200 (own
microbenchmark) FFMA R8, R16, R9, R8 with FFMA R27, R27, R18.reuse, R24 takes 3 cycles and not 4, LEA R18, R14.reuse
with FFMA R26, R19.reuse, R22, R26 2 and not 3. A register that stands in two slots is read once: FFMA R8, R8, R8, R8
and its like take 1.1 cycles there. Constants and immediates need no port. Instructions of variable latency are taken to
find a free port: they read later, when their own unit has taken them; but for FP64, which reads a pair of registers a
slot, one of each bank: DFMA with three different pairs takes 3.07 cycles, with one of them reused 2.24, with two 2.05.

The uniform registers have one port too, which reads a row of four registers (UR4 to UR7) a cycle. On an H200 (own
microbenchmark), cycles of a pair with LOP3 R13, R15, UR22, RZ: UIADD3 UR5, -UR4, UR6, URZ 2; UIADD3 UR12, UR9, UR12
and UIADD3.X UR28, UR8, UR28 3; UIMAD UR12, UR11, UR15, UR12 3; with one uniform source, or beside a vector instruction
without one, 2.
"""

from __future__ import annotations

from typing import NamedTuple

from gemmsim.isa.program import Instruction, OperandKind

EVEN, ODD = 0, 1
ONE_REGISTER, TWO_PASSES, PAIR = range(3)
WINDOW_CYCLES = 3
# The stall count of IMAD.WIDE begins at its second pass: on an H200 (own microbenchmark) one warp takes 5 cycles for
# IMAD.WIDE with a stall count of 1 and SHF with one of 2, 8 for LEA.HI.X with 5 and IMAD.WIDE with 1.
SECOND_PASS_CYCLES = 2
UNIFORM_ROW = 4
UNIFORM_WINDOW_CYCLES = 2  # the uniform datapath takes an instruction every two cycles
FIXED_LATENCY = {"fma", "fmaheavy", "alu", "fp16", "uniform", "fp64"}
_PREDICATES = (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE)


class Operands(NamedTuple):
    """What an instruction reads. first, second, third: register of each slot, -1 for none; reuse: mask of the slots
    that it marks; wide: ONE_REGISTER a slot, TWO_PASSES through the multiplier, or a PAIR of registers a slot; uniform:
    rows of uniform registers."""

    first: int
    second: int
    third: int
    reuse: int
    wide: int
    uniform: int


NO_OPERANDS = Operands(-1, -1, -1, 0, ONE_REGISTER, 0)


def two_passes(instruction: Instruction) -> bool:
    """Whether the multiplier takes it in two passes: IMAD.WIDE."""
    return instruction.opcode == "IMAD" and "WIDE" in instruction.modifiers


def window_cycles(instruction: Instruction, port: str) -> tuple[int, int]:
    """Cycles within which its registers and its uniform registers are read.

    A vector instruction has one cycle for its uniform operand: with two, one warp would be up to 6 % quicker through
    loops of the coalesced kernel than an H200 is (own microbenchmark, 32 instructions in a row, 0 to 1 % as it is).
    """
    if port == "uniform":
        return UNIFORM_WINDOW_CYCLES, UNIFORM_WINDOW_CYCLES
    second_pass = SECOND_PASS_CYCLES if two_passes(instruction) else 0
    return WINDOW_CYCLES + second_pass, 1 + second_pass


def uniform_rows(instruction: Instruction) -> int:
    sources = [o.index for o in instruction.operands[1:] if o.kind == OperandKind.UNIFORM_REGISTER and o.index >= 0]
    return len({index // UNIFORM_ROW for index in sources})


def operands_of(instruction: Instruction, port: str) -> Operands:
    """What it reads through the ports; NO_OPERANDS where it needs none."""
    if port not in FIXED_LATENCY:
        return NO_OPERANDS
    slots = [-1, -1, -1]
    sources = [o for o in instruction.operands[1:] if o.kind not in _PREDICATES]
    for slot, operand in enumerate(sources[:3]):
        if operand.kind == OperandKind.REGISTER and operand.index >= 0:
            slots[slot] = operand.index
    rows = uniform_rows(instruction)
    if max(slots) < 0 and not rows:
        return NO_OPERANDS
    first, second, third = slots
    wide = PAIR if port == "fp64" else TWO_PASSES if two_passes(instruction) else ONE_REGISTER
    return Operands(first, second, third, instruction.control.reuse_mask, wide, rows)


class RegisterPorts:
    """Of one sub-partition.

    next_free       first cycle at which the next instruction may issue
    blocked_cycles  cycles up to `next_free` during which none could
    """

    __slots__ = ("_kept", "blocked_cycles", "even_free", "next_free", "odd_free", "uniform_free")

    def __init__(self) -> None:
        self.even_free = self.odd_free = self.uniform_free = 0
        self.next_free = 0
        self.blocked_cycles = 0
        self._kept = [(0, -1)] * 6  # (rank of the warp, register) by slot and bank

    def blocked_before(self, cycle: int) -> int:
        """Blocked cycles before `cycle`, which is not before the last issue."""
        ahead = self.next_free - cycle
        return self.blocked_cycles - ahead if ahead > 0 else self.blocked_cycles

    def hold(self, now: int, cycles: int) -> None:
        """Nothing may issue for `cycles` more behind what issued in cycle `now`."""
        self.blocked_cycles += cycles
        self.next_free = max(self.next_free, now + 1) + cycles

    def read(self, now: int, operands: Operands, windows: tuple[int, int], rank: int) -> None:
        """An instruction that issues in cycle `now` reads; its operands must come within `windows`.

        IMAD.WIDE reads its first factor and the low half of its 64-bit addend twice, the other factor and the high
        half once. That fits these loops (own microbenchmark on an H200, cycles of one iteration):
        IMAD.WIDE.U32 R10, R2, R8, R10 takes 5, with a LOP3 that reads one even register 6, with UIADD3 5;
        IMAD.WIDE.U32 R8, R16, UR18, R10 takes 4, with an instruction that reads an even register 5, an odd one 4;
        IMAD.WIDE R16, R17, 0x10, R14 with IADD3 R16, R4, R11 takes 4. Not explained by it: beside an instruction with
        a uniform operand that reads odd registers too, IMAD.WIDE.U32 R14, R25, UR4, R6 takes a cycle more (6 with
        IADD3.X R22, R23, UR29, R11; 5 with LEA.HI.X R9, R9, UR21, R22, addend R14).
        """
        first, second, third, reuse, wide, uniform = operands
        cycles = [0, 0]
        for slot, register in enumerate((first, second, third)):
            if register < 0:
                continue
            bank = register % 2
            place = 2 * slot + bank
            again = slot > 0 and (register == first or (slot > 1 and register == second))
            if self._kept[place] != (rank, register) and not again:
                cycles[bank] += 2 if wide == TWO_PASSES and slot != 1 else 1
                cycles[1 - bank] += wide == PAIR
            self._kept[place] = (rank, register) if reuse >> slot & 1 else (0, -1)
            if wide == TWO_PASSES and slot == 2:
                cycles[1 - bank] += 1
        window, uniform_window = windows
        late = 0
        if cycles[EVEN]:
            self.even_free = max(self.even_free, now) + cycles[EVEN]
            late = self.even_free - window - now
        if cycles[ODD]:
            self.odd_free = max(self.odd_free, now) + cycles[ODD]
            late = max(late, self.odd_free - window - now)
        if uniform:
            self.uniform_free = max(self.uniform_free, now) + uniform
            late = max(late, self.uniform_free - uniform_window - now)
        if late > 0:
            self.blocked_cycles += late
            self.next_free = now + 1 + late
