"""Register file read ports: how many cycles an instruction's operands keep them busy, and what the next one waits.

A sub-partition's registers are in two banks, even and odd numbers, and each bank delivers one register (32 lanes x 32
bits) a cycle. A fixed-latency instruction reads its operands in a window of three cycles; one that does not fit into
its window holds up whatever would issue behind it. In front of the ports a cache keeps one operand of each slot and
bank: one marked `.reuse` stays there until another is read for that slot and bank, by whichever warp (Huerta et al.,
"Dissecting and Modeling the Architecture of Modern GPU Cores", MICRO'25, section on the register file). On an H200 (own
microbenchmark) FFMA R8, R16, R9, R8 with FFMA R27, R27, R18.reuse, R24 takes 3 cycles and not 4, LEA R18, R14.reuse
with FFMA R26, R19.reuse, R22, R26 2 and not 3. A register that stands in two slots is read once: FFMA R8, R8, R8, R8
and its like take 1.1 cycles there. Constants and immediates need no port. FP64 reads a pair of registers a slot, one of
each bank: DFMA with three different pairs takes 3.07 cycles, with one of them reused 2.24, with two 2.05.

Loads, stores, shuffles and what goes to the transcendental unit read one register a cycle, with no window: loads from
the cycle of their issue on, the last register of the address first; the others from the next cycle on. A read takes
the first cycle in which no instruction of fixed latency uses its bank. One that has found none for
`register_file.late_read_wait_cycles` takes the bank all the same, and the issue stops for a cycle. Found on an H100
(own microbenchmark, tests/records/h100_late_reads.json: one instruction in 4 to 32 among FADDs and FFMAs that read the
even bank, the odd one or both in every cycle): beside FADDs that read R10 and R13, LDG [R20.64] takes 2.0 issue slots,
STG [R20.64] 3.9, STS.128 [R22] 5.9, SHFL of two registers 2.9, LDS [R22] one.

Matrix instructions take both banks for as long as they read (`sm.operands.bank_cycles`). wgmma reads its accumulators
beside others: FADDs and FFMAs of two warps are at most a tenth slower beside it.

The uniform registers have one port too, which reads a row of four registers (UR4 to UR7) a cycle. On an H200 (own
microbenchmark), cycles of a pair with LOP3 R13, R15, UR22, RZ: UIADD3 UR5, -UR4, UR6, URZ 2; UIADD3 UR12, UR9, UR12
and UIADD3.X UR28, UR8, UR28 3; UIMAD UR12, UR11, UR15, UR12 3; with one uniform source, or beside a vector instruction
without one, 2.

IMAD.WIDE passes the multiplier twice, and lets nothing issue in the two cycles behind it: with FADDs and IADD3s that
read no registers it takes three slots (same record: 5 cycles with one of each, 6 with two IADD3; one in 16 among FADDs
that take two cycles each adds 2.1, among FFMAs that take three 1.1). It reads its first
factor and the low half of its 64-bit addend twice, the other factor and the high half once.
That fits these loops (own microbenchmark on an H200, cycles of one iteration): IMAD.WIDE.U32 R10, R2, R8, R10 takes 5,
with a LOP3 that reads one even register 6, with UIADD3 5; IMAD.WIDE.U32 R8, R16, UR18, R10 takes 4, with an instruction
that reads an even register 5, an odd one 4; IMAD.WIDE R16, R17, 0x10, R14 with IADD3 R16, R4, R11 takes 4. It does not
explain that beside an instruction with a uniform operand that reads odd registers too, IMAD.WIDE.U32 R14, R25, UR4, R6
takes a cycle more (6 with IADD3.X R22, R23, UR29, R11; 5 with LEA.HI.X R9, R9, UR21, R22, addend R14), nor that beside
FADD R40, R13, R15 IMAD.WIDE.U32 R36, R10, 0x4, R12 takes two cycles and not one.
"""

from __future__ import annotations

from gemmsim.native.records import Ints, Record
from gemmsim.sm.units.instruction import Instruction, ReadMode

_TWO_PASSES, _PAIR = int(ReadMode.TWO_PASSES), int(ReadMode.PAIR)
CACHED_OPERANDS = 6  # one a slot and bank
MOST_LATE_READS = 56  # as many as have their banks in one integer


class RegisterPorts(Record):
    """The read ports of one sub-partition.

    even_free, odd_free, uniform_free  the cycle at which each port has read all that was asked of it
    next_free       first cycle at which the next instruction may issue
    blocked_cycles  cycles up to `next_free` in which none could issue, because of these ports
    reused          [slots, banks, 2] of each operand kept for reuse: `Warp.rank` of its warp (0: none is kept), and
                    its register
    late_reads      registers that instructions of variable latency have yet to read
    late_banks      their banks, the first to be read in the lowest bit: 1 is the odd one
    late_ready      the first cycle in which the first of them can be read
    """

    even_free: int
    odd_free: int
    uniform_free: int
    next_free: int
    blocked_cycles: int
    reused: Ints
    late_reads: int
    late_banks: int
    late_ready: int


def dispatch_blocked_before(ports: RegisterPorts, cycle: int) -> int:
    """Return how many cycles, from the start up to `cycle`, the ports have let nothing issue.

    `cycle` must not lie before the last issue.
    """
    return ports.blocked_cycles - max(0, ports.next_free - cycle)


def hold_issue(ports: RegisterPorts, cycles: int, now: int) -> None:
    """Let nothing issue for `cycles` more cycles behind the instruction that issued in cycle `now`."""
    ports.blocked_cycles += cycles
    ports.next_free = max(ports.next_free, now + 1) + cycles


def read_later(ports: RegisterPorts, row: Instruction, now: int) -> None:
    """Note which registers the instruction `row` of variable latency, issued in cycle `now`, has yet to read.

    What found its bank free before `now` has been read. Where more are left than there is room for, the first of them
    are booked at once.
    """
    while ports.late_reads > 0 and (_late_free(ports) < now or ports.late_reads + row.late_reads > MOST_LATE_READS):
        _read_late(ports, _late_free(ports))
    if ports.late_reads == 0:
        ports.late_ready = now + row.late_after
    ports.late_banks |= row.late_banks << ports.late_reads
    ports.late_reads += row.late_reads


def _late_free(ports: RegisterPorts) -> int:
    """Return the first cycle in which the first late read finds its bank free."""
    return max(ports.odd_free if ports.late_banks & 1 else ports.even_free, ports.late_ready)


def _read_late(ports: RegisterPorts, cycle: int) -> None:
    """Let the first late read take its bank in a cycle; the next one may follow in the cycle behind it."""
    if ports.late_banks & 1:
        ports.odd_free = cycle + 1
    else:
        ports.even_free = cycle + 1
    ports.late_ready = cycle + 1
    ports.late_banks >>= 1
    ports.late_reads -= 1


def _wait_for_late_reads(ports: RegisterPorts, most_wait: int, now: int) -> int:
    """Return how many cycles an instruction of fixed latency, issued in cycle `now`, waits for late reads.

    They take the cycles before in which their banks are free; those that have waited for `most_wait` cycles go before
    the instruction.
    """
    waited = 0
    while ports.late_reads > 0:
        free = _late_free(ports)
        if free >= now + waited:
            if now + waited - ports.late_ready < most_wait:
                break
            waited += 1
        _read_late(ports, free)
    return waited


def read_registers(ports: RegisterPorts, row: Instruction, rank: int, most_wait: int, now: int) -> None:
    """Book the register reads of the instruction `row`, issued in cycle `now` by the warp whose `Warp.rank` is `rank`.

    The instruction has `row.window` cycles in which to read its operands. Reads that take longer hold up the next
    issue, as do earlier reads of variable latency that have waited for `most_wait` cycles, and `row.second_pass`.
    """
    even, odd, uniform = row.bank_cycles, row.bank_cycles, row.uniform_rows
    for slot in range(3):
        register = row.first if slot == 0 else row.second if slot == 1 else row.third
        if register < 0:
            continue
        place = 2 * (2 * slot + register % 2)
        own = 2 if row.read_mode == _TWO_PASSES and slot != 1 else 1  # cycles of the bank that the register is in
        other = 1 if row.read_mode == _PAIR else 0  # and of the other one
        again = slot > 0 and (register == row.first or (slot > 1 and register == row.second))
        if again or (ports.reused[place] == rank and ports.reused[place + 1] == register):
            own = 0
            other = 0
        ports.reused[place] = rank if row.reuse_mask >> slot & 1 else 0
        ports.reused[place + 1] = register
        if row.read_mode == _TWO_PASSES and slot == 2:
            other = 1
        even += other if register % 2 else own
        odd += own if register % 2 else other
    end, waited = 0, 0
    if ports.late_reads > 0 and even + odd > 0:
        waited = _wait_for_late_reads(ports, most_wait, now)
    if even:
        ports.even_free = max(ports.even_free, now + waited) + even
        end = ports.even_free
    if odd:
        ports.odd_free = max(ports.odd_free, now + waited) + odd
        end = max(end, ports.odd_free)
    if uniform:
        ports.uniform_free = max(ports.uniform_free, now) + uniform
        end = max(end, ports.uniform_free + row.window - row.uniform_window)
    late = max(end - row.window - now, waited, row.second_pass)
    if late > 0:
        ports.blocked_cycles += late
        ports.next_free = now + 1 + late
