"""Advises what to change. Each rule is one function, which returns None where it has no advice."""

from __future__ import annotations

import math
from collections.abc import Callable

from gemmsim.analysis.code.instruction_mix import by_class
from gemmsim.analysis.code.source_lines import LineTraffic, by_line, line_text, source_line
from gemmsim.analysis.evidence import Evidence
from gemmsim.analysis.findings import Advice
from gemmsim.analysis.hardware.utilisation import ATOMICS, DRAM, L2, utilisations
from gemmsim.analysis.verdict.bottleneck import BUSY_PCT
from gemmsim.analysis.verdict.spills import spills
from gemmsim.isa.opcodes import MixClass, row_of
from gemmsim.support.plurals import plural

# These thresholds decide when a rule gives advice; no prediction depends on them.
WASTED_SECTORS = 1.5  # sectors moved for each one that packed accesses would need
CONFLICT_SHARE = 0.10  # of a line's shared wavefronts
INTEGER_SHARE = 0.40  # of all warp instructions
FMA_SHARE = 0.50  # of all warp instructions
TILED_WORDS = 16 / 64  # words of shared memory for each multiply-add, where a thread has 8 x 8 results
LOADS_PER_FMA = 0.5  # shared loads for each multiply-add
TAIL_EFFICIENCY = 0.85  # number of waves over that number rounded up
LOW_OCCUPANCY_PCT = 50.0  # of the warps that an SM can hold
DOUBLE_SHARE = 0.01  # of all warp instructions, in double precision
ISSUING_PCT = 50.0  # of the issue slots: where fewer are used, it is not the number of instructions that takes the time


def uncoalesced_access(evidence: Evidence) -> Advice | None:
    """Advise on the source line that moves most sectors in excess of those that packed accesses would need."""
    rows = [row for row in by_line(evidence) if row.space in ("global", "local") and row.ideal_sectors and row.requests]
    worst = max(rows, key=lambda row: row.sectors - row.ideal_sectors, default=None)
    if worst is None or worst.sectors < WASTED_SECTORS * worst.ideal_sectors:
        return None
    total = sum(row.sectors for row in rows)
    rest = total - worst.sectors + worst.ideal_sectors
    return Advice(
        rule="uncoalesced_access",
        title=f"uncoalesced {_verb(worst)} on {worst.where}{_quoted(worst)}",
        evidence=(
            f"{worst.sectors / worst.requests:.1f} sectors a request where "
            f"{worst.ideal_sectors / worst.requests:.1f} would hold the same bytes"
        ),
        change="let consecutive threadIdx.x touch consecutive addresses, or stage the data through shared memory",
        gain=f"global sectors fall from {total:,.0f} to {rest:,.0f} ({total / rest:.1f}x fewer)",
        cures=_each(worst, worst.ideal_sectors / worst.sectors),
    )


def contended_atomics(evidence: Evidence) -> Advice | None:
    """Advise one atomic operation a block where L2's busiest slice works on atomics for most of the time."""
    rows = [row for row in evidence.traffic if row.atomic_us > 0]
    busy = next((use.share_pct for use in utilisations(evidence) if use.unit == ATOMICS), 0.0)
    requests, us = sum(row.requests for row in rows), sum(row.atomic_us for row in rows)
    if busy < BUSY_PCT or requests <= evidence.blocks:
        return None
    return Advice(
        rule="contended_atomics",
        title="atomic operations wait for one another",
        evidence=(
            f"{requests:,.0f} requests touch sectors {sum(row.sectors for row in rows):,.0f} times; L2's busiest slice "
            f"does one after another, for {us:,.1f} us"
        ),
        change="add up in registers, by shuffles and in shared memory first, and let one thread of a block do the rest",
        cures=tuple((row.index, min(1.0, evidence.blocks / requests)) for row in rows),
    )


def bank_conflicts(evidence: Evidence) -> Advice | None:
    """Advise on the source line with most wavefronts of shared memory that only bank conflicts cause."""
    rows = [row for row in by_line(evidence) if row.space == "shared" and row.wavefronts]
    worst = max(rows, key=lambda row: row.conflicts, default=None)
    if worst is None or worst.conflicts < CONFLICT_SHARE * worst.wavefronts:
        return None
    total = sum(row.wavefronts for row in rows)
    return Advice(
        rule="bank_conflicts",
        title=f"bank conflicts of the shared {_verb(worst)} on {worst.where}{_quoted(worst)}",
        evidence=(
            f"{worst.wavefronts / worst.requests:.1f} wavefronts a request; "
            f"{worst.conflicts:,.0f} of {worst.wavefronts:,.0f} are conflicts"
        ),
        change="pad the rows of the shared array by one element, or swizzle its columns",
        gain=f"shared wavefronts fall from {total:,.0f} to {total - worst.conflicts:,.0f}",
        cures=_each(worst, 1 - worst.conflicts / worst.wavefronts),
        left="wavefronts",
    )


def integer_arithmetic(evidence: Evidence) -> Advice | None:
    """Advise a change where integer instructions take a large part of the issue slots, and these are used."""
    kinds = by_class(evidence)
    share = _share(kinds, MixClass.INTEGER)
    if share < INTEGER_SHARE or not kinds.get(MixClass.FMA) or evidence.timing.issue_active_pct < ISSUING_PCT:
        return None
    each = kinds[MixClass.INTEGER] / kinds[MixClass.FMA]
    return Advice(
        rule="integer_arithmetic",
        title="index arithmetic takes the issue slots",
        evidence=f"{100 * share:.0f}% of the warp instructions are integer, {each:.1f} for each multiply-add",
        change="unsigned 32-bit indices, flat arrays, sizes known at compile time; advance instead of recomputing",
    )


def fma_density(evidence: Evidence) -> Advice | None:
    """Advise a change where few of the instructions that fill the issue slots multiply and add."""
    kinds = by_class(evidence)
    share = _share(kinds, MixClass.FMA)
    if not share or share >= FMA_SHARE or evidence.timing.issue_active_pct < ISSUING_PCT:
        return None
    return Advice(
        rule="fma_density",
        title="few of the instructions are multiply-adds",
        evidence=f"{100 * share:.0f}% of the warp instructions issued are multiply-adds",
        change="more results a thread (register tiling) spread loads, indices and loop control over more multiply-adds",
        gain=f"until then at most {100 * share:.0f}% of the multiply-adds that one issue a cycle allows",
    )


def register_tiling(evidence: Evidence) -> Advice | None:
    """Advise a change where shared memory is read often for each multiply-add."""
    fma = by_class(evidence).get(MixClass.FMA, 0)
    rows = [row for row in by_line(evidence) if row.space == "shared" and row.op == "ld"]
    loads = sum(row.requests for row in rows)
    if not fma or loads < LOADS_PER_FMA * fma:
        return None
    wavefronts, now = sum(row.wavefronts for row in rows), _words(rows) / fma
    return Advice(
        rule="register_tiling",
        title="shared memory is read too often for each product",
        evidence=f"{loads / fma:.2f} shared loads and {wavefronts / fma:.2f} wavefronts a multiply-add of a warp",
        change="compute a TM x TN patch of C a thread: TM + TN loads then feed TM x TN multiply-adds",
        gain=f"8 x 8 results a thread need {TILED_WORDS:.2f} words a multiply-add, now {now:.2f}",
        cures=tuple(one for row in rows if row.wavefronts for one in _each(row, _tiled(row, now))),
        left="wavefronts",
    )


def double_arithmetic(evidence: Evidence) -> Advice | None:
    """Advise on the source line with most arithmetic in double precision, where its operands were single precision.

    The conversions between the two (F2F.F64.F32) tell: a kernel whose arrays are doubles has none.
    """
    program, executed = evidence.program, evidence.executed
    doubles = [one for one in program.instructions if row_of(one).port == "fp64" and executed[one.index]]
    widened = any(one.mnemonic == "F2F.F64.F32" and executed[one.index] for one in program.instructions)
    count = sum(executed[one.index] for one in doubles)
    if not widened or count < DOUBLE_SHARE * evidence.warp_instructions:
        return None
    most = max(doubles, key=lambda one: executed[one.index])
    line = source_line(program, most)
    text = line_text(program, line)
    where = f"line {line.line}{text and ': ' + text}" if line else most.opcode
    return Advice(
        rule="double_arithmetic",
        title=f"arithmetic in double precision on {where}",
        evidence=f"{count:,.0f} warp instructions go to the fp64 pipe, though their operands were single precision",
        change="keep to single precision: float32(0) in numba, 0.0f in CUDA C++; a literal such as 0.0 is a double",
    )


def low_occupancy(evidence: Evidence) -> Advice | None:
    """Advise a change where few warps are resident on an SM and no unit is busy; say what would make room for one more
    block. Where a unit is busy, more warps would only wait for it; and where the grid has no more blocks than the GPU
    holds already, room for more stays empty."""
    occupancy = evidence.occupancy
    if evidence.blocks <= occupancy.blocks_per_sm * evidence.gpu.sm.count:
        return None
    if occupancy.theoretical_pct >= LOW_OCCUPANCY_PCT or utilisations(evidence)[0].share_pct >= BUSY_PCT:
        return None
    cliffs = []
    if occupancy.registers_cliff is not None:
        cliffs.append(f"{plural(occupancy.registers_cliff, 'register')} fewer a thread")
    if occupancy.shared_cliff_bytes is not None:
        cliffs.append(f"{plural(occupancy.shared_cliff_bytes, 'shared byte')} fewer a block")
    return Advice(
        rule="low_occupancy",
        title=f"occupancy is limited by {' and '.join(occupancy.limiters)}",
        evidence=f"{occupancy.warps_per_sm} of {evidence.gpu.sm.max_warps} warps ({occupancy.theoretical_pct:.0f}%)",
        change=f"one more block an SM takes {' or '.join(cliffs)}" if cliffs else "smaller blocks",
    )


def tail_wave(evidence: Evidence) -> Advice | None:
    """Advise a change where the last wave of blocks leaves SMs idle."""
    waves = evidence.timing.waves
    if waves <= 1 or waves / math.ceil(waves) >= TAIL_EFFICIENCY:
        return None
    idle = 1 - waves / math.ceil(waves)
    # Where a unit is busy, an SM with fewer blocks is through with them sooner: it counts how evenly they are dealt.
    per_sm = evidence.blocks / evidence.gpu.sm.count
    busy = utilisations(evidence)[0].share_pct >= BUSY_PCT
    return Advice(
        rule="tail_wave",
        title="the last wave of blocks fills the GPU only in part",
        evidence=f"{evidence.blocks:,} blocks are {waves:.2f} waves: {100 * idle:.0f}% of their places stay empty",
        change="smaller blocks or tiles, split the K loop over blocks, or a persistent kernel",
        at_best=per_sm / math.ceil(per_sm) if busy else waves / math.ceil(waves),
    )


def idle_sms(evidence: Evidence) -> Advice | None:
    """Advise a change where there are fewer blocks than SMs."""
    count = evidence.gpu.sm.count
    if evidence.blocks >= count:
        return None
    shared = [use.share_pct for use in utilisations(evidence) if use.unit in (L2, DRAM, ATOMICS)]  # by all SMs
    return Advice(
        rule="idle_sms",
        title="fewer blocks than SMs",
        evidence=f"{plural(evidence.blocks, 'block')} on {count} SMs: {100 * evidence.blocks / count:.0f}% have work",
        change="smaller tiles, split the K loop over blocks, or a larger problem",
        gain=f"up to {count / evidence.blocks:.1f}x with every SM at work",
        at_best=max(evidence.blocks / count, min(1.0, max(shared, default=0) / 100)),
    )


RULES: tuple[Callable[[Evidence], Advice | None], ...] = (
    idle_sms,
    spills,
    uncoalesced_access,
    contended_atomics,
    bank_conflicts,
    register_tiling,
    integer_arithmetic,
    fma_density,
    double_arithmetic,
    low_occupancy,
    tail_wave,
)


def advise(evidence: Evidence) -> tuple[Advice, ...]:
    """Return the advice of all rules, in the order of RULES. `gains.ranked` sorts it by what it would save."""
    return tuple(advice for rule in RULES if (advice := rule(evidence)) is not None)


def _share(kinds: dict[MixClass, float], kind: MixClass) -> float:
    total = sum(kinds.values())
    return kinds.get(kind, 0.0) / total if total else 0.0


def _words(rows: list[LineTraffic]) -> float:
    return sum(row.requests * row.width_bytes / 4 for row in rows)


def _tiled(row: LineTraffic, words_now: float) -> float:
    """Return the part of a line's wavefronts that is left where fewer words are read: conflicts stay as they are."""
    left = min(1.0, TILED_WORDS / words_now)
    return (row.conflicts + left * (row.wavefronts - row.conflicts)) / row.wavefronts


def _each(row: LineTraffic, left: float) -> tuple[tuple[int, float], ...]:
    return tuple((index, left) for index in row.indices)


def _verb(row: LineTraffic) -> str:
    return {"ld": "load", "st": "store"}.get(row.op, row.op)


def _quoted(row: LineTraffic) -> str:
    return f": {row.text}" if row.text else ""
