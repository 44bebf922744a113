"""Executes blocks with the sanitizing executor and says what is wrong with the kernel.

It finds races, copies and wgmma that nobody waited for, missing fences, mbarriers whose phases or bytes do not add up,
uses of shared memory that nobody wrote, accesses out of bounds or misaligned, barriers that not all threads reach, and
uses of the shared memory of a block of the cluster that may have ended. A forbidden access is left out, and the block
goes on. What stops a block (threads that wait forever, a trap) ends the run. Only the blocks that are executed are
looked at.

A new kind of finding touches these places:

sanitizer/shadow.py        its number in the table of findings (FINDING_DEFECT)
sanitizer/checks.py        the check that reports it (at barriers: ordering.py; of shared memory: granules.py,
                           unwritten.py; of global memory: global_granules.py; at mbarriers, of TMA and wgmma:
                           engine/watched; of wgmma's registers: flights.py)
sanitizer/findings.py      its name for people, a member of `Defect`
sanitizer/sentences.py     from the number to the `Defect` and the sentence: `DEFECTS`, `SENTENCES`; `_finding` of
                           shadow_state.py makes the finding
`_without_false_findings`  here: what is no defect, or follows from another finding
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gemmsim.isa.opcodes import MemoryAccess, row_of
from gemmsim.isa.program import Instruction, OperandKind, Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace import micro, words
from gemmsim.trace.block_state import BlockState
from gemmsim.trace.execute import Executor
from gemmsim.trace.lower.context import CONTROL_NUMBER
from gemmsim.trace.sanitizer.findings import Defect, Finding, Sanitized, Site
from gemmsim.trace.sanitizer.shadow_state import ShadowState
from gemmsim.trace.stopped import Stopped
from gemmsim.trace.waiting import waits_at_mbarriers, waits_of

_SHARED_ATOMIC = MemoryAccess("shared", "atom")
_SWAP_WITHIN = 12  # instructions from the load of an atomic operation to its compare-and-swap


def sanitize(executor: Executor, blocks: Sequence[int]) -> Sanitized:
    """Execute `blocks` with an executor that was made with sanitizing=True, and return what it found.

    Findings between the same two source lines are joined. Raises GemmsimError where the budget runs out, and for a
    kernel with mbarriers as sm_80 has them.
    """
    shadow = executor.shadow
    assert shadow is not None
    if any(i.opcode == "ATOMS" and "ARRIVE" in i.modifiers for i in executor.program.instructions):
        raise GemmsimError(
            f"kernel '{executor.program.name}' waits at mbarriers by atomic instructions (ATOMS.ARRIVE), whose order "
            "the search for races does not follow: leave out the sanitizer, or compile it for sm_90"
        )
    shadow.forget_findings()
    stopped: list[Finding] = []
    try:
        executor.trace(blocks, streams=[False] * len(blocks))
    except Stopped as fault:
        if fault.status == words.BUDGET:
            raise
        stopped = [_fault(executor, shadow, fault)]
        blocks = blocks[: list(blocks).index(fault.block) + 1]
    found = merged([*_without_false_findings(executor.program, shadow.findings()), *stopped])
    return Sanitized(tuple(found), len(blocks), executor.launch.blocks, bool(stopped), shadow.lost)


def _without_false_findings(program: Program, findings: list[Finding]) -> list[Finding]:
    """Leave out findings that are no defects, or that follow from another.

    The compiler makes one atomic operation into a load and compare-and-swaps, and one barrier of the source into
    several. A read of memory that nobody wrote yet follows from a race with the write, where the simulated order is
    only one of the possible ones.
    """
    racing = {
        site.instruction.offset
        for finding in findings
        if finding.defect is Defect.RACE
        for site in (finding.at, finding.other)
        if site and site.does == "reads"
    }
    miscounted = any(finding.defect is Defect.BYTES_EXPECTED for finding in findings)
    return [
        finding
        for finding in findings
        if not (finding.defect is Defect.RACE and _of_one_atomic(program, finding))
        and not (finding.defect is Defect.UNINITIALISED and finding.at.instruction.offset in racing)
        and not (finding.defect is Defect.DIVERGENT_BARRIER and _same_barrier(program, finding.at, finding.other))
        and not (miscounted and _follows(finding))
    ]


def _follows(finding: Finding) -> bool:
    """Whether a finding may follow from a phase that ended too early, as other bytes came than were expected."""
    copied = finding.other is not None and finding.other.instruction.opcode.startswith(("UTMA", "UBLK"))
    return finding.defect is Defect.PHASE or (finding.defect is Defect.UNWAITED_COPY and copied)


def _of_one_atomic(program: Program, finding: Finding) -> bool:
    """Whether a race is only within one atomic operation of the source, which the compiler has split.

    A race is such where a load collides with an atomic instruction, and a compare-and-swap with the value that it
    loaded follows within `_SWAP_WITHIN` instructions.
    """
    reads = [site for site in (finding.at, finding.other) if site and site.does == "reads"]
    if len(reads) != 1 or "updates" not in (finding.at.does, finding.other.does if finding.other else ""):
        return False
    load = reads[0].instruction
    following = program.instructions[load.index + 1 : load.index + 1 + _SWAP_WITHIN]
    swaps = [i for i in following if row_of(i).memory == _SHARED_ATOMIC and {"CAS", "CAST"} & set(i.modifiers)]
    return load.operands[0].index in [_compared(swap) for swap in swaps]


def _compared(swap: Instruction) -> int | None:
    """Return the number of the register that a compare-and-swap compares with memory: the operand after the address."""
    kinds = [operand.kind for operand in swap.operands]
    after = kinds.index(OperandKind.ADDRESS) + 1
    return swap.operands[after].index if after < len(kinds) else None


def _same_barrier(program: Program, at: Site, other: Site | None) -> bool:
    """Whether two barriers are copies that the compiler has made of one, as where it unrolls a loop.

    Copies have the same source lines, callers included, and in code that passes both one leads to the other. Where
    neither does, they are of two branches: of two calls on one line, then.
    """
    if other is None or other.does != at.does or at.line is None or at.line != other.line:
        return False
    first, second = at.instruction, other.instruction
    return first.sources == second.sources and (_leads(program, first, second) or _leads(program, second, first))


def _leads(program: Program, first: Instruction, second: Instruction) -> bool:
    """Whether the code can come from one instruction to another, of another basic block or behind it."""
    blocks = program.blocks
    number = next(i for i, block in enumerate(blocks) if block.start <= first.index < block.stop)
    if blocks[number].start <= second.index < blocks[number].stop and second.index > first.index:
        return True
    waiting, seen = list(blocks[number].successors), set[int]()
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            waiting += blocks[at].successors
    return any(blocks[at].start <= second.index < blocks[at].stop for at in seen)


def merged(findings: list[Finding]) -> list[Finding]:
    """Join findings between the same two source lines."""
    by_key: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        first = by_key.setdefault(finding.key(), finding)
        if first is not finding:
            by_key[finding.key()] = replace(first, count=first.count + finding.count)
    return list(by_key.values())


def _fault(executor: Executor, shadow: ShadowState, fault: Stopped) -> Finding:
    """Make the finding that says what stopped a block."""
    counters = executor.buffers.counters
    sentence = str(fault).partition(" (block")[0]
    states = executor.residents.live() if executor.residents else {fault.block: executor.state}
    if fault.status in (words.DEADLOCK, words.STUCK):
        for block, state in states.items():
            if waits := _mbarrier_waits(executor, shadow, state):
                said = waits_at_mbarriers(executor.program, executor.micro, state)
                (at, last), other = waits, shadow.site_of(waits[1], "arrives") if waits[1] else None
                detail = shadow.in_cluster(block, executor.clusters.rank(block) << words.RANK_SHIFT, last)
                return Finding(Defect.PHASE, said, shadow.position(block), "", None, 0, at, other, detail, 1)
        waiting = [(block, site) for block, state in states.items() for site in _waiting(executor, shadow, state)]
        if fault.status == words.DEADLOCK or any(site.instruction.opcode == "UCGABAR_WAIT" for _, site in waiting):
            (block, at), *others = waiting
            other = next((site for _, site in others if site.where != at.where), None)
            sentence, defect = "threads wait for each other forever", Defect.DIVERGENT_BARRIER
            return Finding(defect, sentence, shadow.position(block), "", None, 0, at, other, "", 1)
    warp, lane = int(counters[words.FAULT_WARP]), int(counters[words.FAULT_LANE])
    at = shadow.site("executes", int(counters[words.FAULT_INSTRUCTION]), warp, lane)
    return Finding(Defect.FAULT, sentence, shadow.position(fault.block), "", None, 0, at, None, "", 1)


def _mbarrier_waits(executor: Executor, shadow: ShadowState, state: BlockState) -> tuple[Site, int] | None:
    """Return a thread that waits at an mbarrier, and the stamp of the last arrival at that one, 0 where there was none;
    None where no thread waits."""
    for wait in waits_of(executor.program, executor.micro, state):
        if wait.mbarrier:
            at = shadow.site("waits", wait.instruction.index, wait.warp, (wait.lanes & -wait.lanes).bit_length() - 1)
            assert state.shadow is not None
            return at, state.shadow.last_arrival(wait.at)
    return None


def _waiting(executor: Executor, shadow: ShadowState, state: BlockState) -> list[Site]:
    """Return one `Site` for each group of threads of a warp that waits: a thread of the group, and where it waits."""
    names = {CONTROL_NUMBER[name] for name in ("barrier", "cluster_barrier", "converge", "warpsync")}
    sites = []
    for number, warp in enumerate(state.warps):
        for path in range(int(warp[words.PATH_COUNT])):
            row = warp[words.PATHS_AT + words.PATH_WORDS * path :][: words.PATH_WORDS]
            op = executor.code[int(row[words.PATH_PC]) - 1]
            lane = (int(row[words.PATH_MASK]) & -int(row[words.PATH_MASK])).bit_length() - 1
            if int(op[micro.OP]) in names and row[words.PATH_REASON] != words.RUNNABLE:
                sites.append(shadow.site("waits at", int(op[micro.INSTRUCTION]), number, lane))
    return sites
