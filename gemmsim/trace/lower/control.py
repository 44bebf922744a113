"""Lowers branches, calls, convergence and block barriers, and instructions without effect on what is computed."""

from __future__ import annotations

from gemmsim.isa.program import INSTRUCTION_BYTES, Operand, OperandKind, Program
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate

ALL_THREADS = 0xFFFFFFFF


def nop(context: Context) -> None:
    """Lower fences and hints. The executor completes each instruction of a warp, asynchronous copies included, before
    the next one, so nothing is left to do for them."""
    context.emit("nop")


def fence(context: Context) -> None:
    """FENCE.VIEW.ASYNC is fence.proxy.async. Only the sanitizer uses it."""
    context.emit("nop", detail=micro.FENCE_PROXY if "ASYNC" in context.instruction.modifiers else 0)


def memory_fence(context: Context) -> None:
    """MEMBAR does nothing here, but a trace says which executions of it have an active thread: these take time."""
    context.emit("nop", detail=micro.MEMORY_FENCE)


def pause(context: Context) -> None:
    """Lower YIELD and NANOSLEEP, which stand in loops that wait.

    Warps of a block wait for each other at an mbarrier by such a loop, so that another warp runs next. Programs without
    mbarriers wait by instructions that the executor knows.
    """
    context.emit("give_way" if has_mbarriers(context.program) else "nop")


def has_mbarriers(program: Program) -> bool:
    """Return whether warps of a block wait for each other at barriers in shared memory (mbarrier)."""
    return any(i.opcode == "SYNCS" or (i.opcode == "ATOMS" and "ARRIVE" in i.modifiers) for i in program.instructions)


def _condition(context: Context) -> Source:
    """Return the predicate operand of a branch or of BREAK as a source; a source that is true where there is none."""
    conditions = [o for o in context.instruction.operands if is_predicate(o)]
    if len(conditions) > 1:
        raise context.unsupported("branch condition")
    return context.predicate(conditions[0]) if conditions else context.true


def bra(context: Context) -> None:
    modifiers = context.modifiers("U", "DIV", "CONV", "ANY")
    if "ANY" in modifiers:
        _bra_any(context)
        return
    if not modifiers & {"DIV", "CONV"}:
        context.emit("branch", (), (_condition(context),))
        return
    # BRA.DIV branches to the divergent copy of a warp-synchronous region unless all threads that the mask names (all of
    # the warp on sm_75) are together; BRA.CONV branches where they are together.
    named = [o for o in context.instruction.operands if o.kind != OperandKind.TARGET]
    mask = context.bits(named[0]) if named else Source(context.literal(ALL_THREADS))
    context.emit("branch_divergent", (), (mask,), detail=int("CONV" in modifiers))


def _bra_any(context: Context) -> None:
    """@P BRA.U.ANY branches with all lanes that are together where P holds in any of them."""
    given = context.instruction.predicate
    context.emit("nop")  # the first micro-operation has the guard by which the instruction's threads are counted
    with context.guarded(context.true):
        holds = context.predicate(given) if given else context.true
        found = (context.sink, context.temporary)
        context.emit("exchange", found, (holds,), uniform=True, detail=micro.VOTES["ANY"])
        context.emit("branch", (), (context.scratch(0),))


def brx(context: Context) -> None:
    """BRX Ra -d branches to the byte offset Ra - d, counted from the next instruction."""
    context.modifiers()
    register, displacement = context.instruction.operands[:2]
    base = context.instruction.offset + INSTRUCTION_BYTES + displacement.value
    context.emit("jump", (), (context.bits(register),), (base,))


def call(context: Context) -> None:
    """CALL.NOINC is a jump: the code before it has put the return address into a register.

    The operand of CALL.ABS is the callee's address or the label of the callee. CALL.REL names a label; where it has a
    register too, that holds the callee's offset from the function that the label names.
    """
    modifiers = context.modifiers("REL", "ABS", "NOINC")
    *registers, target = context.instruction.operands
    if "ABS" in modifiers and target.kind != OperandKind.TARGET and not registers:
        context.emit("jump", (), (context.bits(target),), (0,))
    elif target.kind != OperandKind.TARGET or len(modifiers & {"REL", "ABS"}) != 1:
        raise context.unsupported("call form")
    elif registers:
        context.emit("jump", (), (context.bits(registers[0]),), (target.value,))
    else:
        context.emit("branch", (), (context.true,))


def ret(context: Context) -> None:
    """RET.REL.NODEC Ra `(f) jumps to the offset Ra from the function f, RET.ABS.NODEC Ra d to the address Ra + d."""
    modifiers = context.modifiers("REL", "ABS", "NODEC")
    register, target = context.instruction.operands
    if target.kind != (OperandKind.TARGET if "REL" in modifiers else OperandKind.IMMEDIATE):
        raise context.unsupported("return form")
    context.emit("jump", (), (context.bits(register),), (target.value,))


def lepc(context: Context) -> None:
    """LEPC Rd[, label] loads the address of a label into a register pair; without a label it is its own address."""
    context.modifiers()
    d, *labels = context.instruction.operands
    at = labels[0].value if labels else context.instruction.offset
    if labels and labels[0].kind != OperandKind.TARGET:
        raise context.unsupported("operand form")
    context.write(d, "mov64", (Source(context.literal(at, at >> 32)),))


# The registers in which functions take their arguments and the return address, and leave their result. They were read
# off the code that the CUDA 13 toolchain makes for each architecture.
FIRST_ARGUMENT, RETURN_ADDRESS = 4, 20


def external(context: Context, number: int) -> None:
    """Lower function `number` of `Program.externals` as if its code were one instruction behind the kernel's."""
    context.emit("external", (FIRST_ARGUMENT,), detail=number)
    context.emit("jump", (), (Source(RETURN_ADDRESS),), (0,))


def nowhere(context: Context) -> None:
    """Lower what a call or return runs into that leads to an address where there is no code."""
    context.emit("trap", detail=micro.NOWHERE)


def exit_(context: Context) -> None:
    """EXIT, or EXIT P, which ends the threads for which both the guard and P hold."""
    context.modifiers()
    operands = context.instruction.operands
    if not operands:
        context.emit("exit")
        return
    (condition,) = operands
    given = context.instruction.predicate
    context.emit("nop")  # the first micro-operation has the guard by which the instruction's threads are counted
    with context.guarded(context.true):
        guard = context.predicate(given) if given else context.true
        both = context.compute(0, "plop3", (guard, context.predicate(condition), context.true), (0x80, 0))
    with context.guarded(both):
        context.emit("exit")


def bssy(context: Context) -> None:
    _convergence(context, "begin")


def bsync(context: Context) -> None:
    _convergence(context, "converge")


def break_(context: Context) -> None:
    _convergence(context, "leave")


def _convergence(context: Context, name: str) -> None:
    context.modifiers("RECONVERGENT", "RELIABLE")
    barrier = next(o for o in context.instruction.operands if o.kind == OperandKind.BARRIER)
    context.emit(name, (context.result(barrier),), (_condition(context),))


def bmov(context: Context) -> None:
    """BMOV saves and restores convergence barriers around calls."""
    modifiers = context.modifiers("32", "CLEAR")
    d, a = context.instruction.operands
    context.emit("mov", (context.result(d),), (context.bits(a),))
    if "CLEAR" in modifiers:
        context.emit("mov", (context.result(a),), (Source(context.zero),))


def warpsync(context: Context) -> None:
    """WARPSYNC mask, or WARPSYNC.ALL, waits for the named threads; those whose masks differ go on in groups of their
    own, which is all that .EXCLUSIVE asks. After WARPSYNC.COLLECTIVE mask, label all named threads execute what follows
    together, wherever they come from; ENDCOLLECTIVE sends each on to its own label."""
    modifiers = context.modifiers("ALL", "COLLECTIVE", "EXCLUSIVE")
    operands = list(context.instruction.operands)
    if "COLLECTIVE" in modifiers:
        *masks, label = operands  # with ALL there is no mask
        threads = context.bits(masks[0]) if masks else Source(context.literal(ALL_THREADS))
        context.emit("mov", (context.resume,), (Source(context.literal(label.value)),))
        context.emit("warpsync", (), (threads,), detail=1)
        return
    mask_row = context.literal(ALL_THREADS) if not operands else context.row(operands[0])
    context.emit("warpsync", (), (Source(mask_row),))


def end_collective(context: Context) -> None:
    context.modifiers()
    context.emit("jump", (), (Source(context.resume),), (0,))


_REDUCTIONS = {"AND": micro.REDUCE_AND, "OR": micro.REDUCE_OR, "POPC": micro.REDUCE_POPC}


def bar(context: Context) -> None:
    """BAR.SYNC, BAR.ARV and BAR.RED name a barrier, how many threads it waits for (all of the block where no number is
    given), and a predicate to reduce."""
    modifiers = context.modifiers("SYNC", "ARV", "RED", "DEFER_BLOCKING", *_REDUCTIONS)
    operands = list(context.instruction.operands)
    predicate = context.predicate(operands.pop()) if is_predicate(operands[-1]) else context.true
    if "RED" in modifiers:
        how = next(_REDUCTIONS[m] for m in _REDUCTIONS if m in modifiers)
    elif "ARV" in modifiers or "SYNC" in modifiers:
        how = micro.ARRIVE if "ARV" in modifiers else micro.SYNC
    else:
        raise context.unsupported("barrier form")
    number, count = [*operands, Operand(OperandKind.REGISTER)][:2]
    threads = context.bits(count)
    if number.kind == count.kind == OperandKind.REGISTER and number.index == count.index:  # it holds both
        threads = context.compute(0, "bit_field", (threads,), (16, 16, 0))
    computed = any(operand.kind != OperandKind.IMMEDIATE for operand in operands)
    context.emit("barrier", (), (context.bits(number), threads, predicate), (computed,), detail=how)


def cluster_arrive(context: Context) -> None:
    """UCGABAR_ARV arrives at the barrier of the block's cluster."""
    context.modifiers()
    context.emit("cluster_barrier", detail=micro.ARRIVE)


def cluster_wait(context: Context) -> None:
    """UCGABAR_WAIT waits until all threads of the cluster have arrived that have not ended."""
    context.modifiers()
    context.emit("cluster_barrier", detail=micro.SYNC)


def b2r(context: Context) -> None:
    """B2R.RESULT Rd[, Pd] reads the outcome of the last BAR.RED."""
    context.modifiers("RESULT")
    d, *predicates = context.instruction.operands
    flag = context.result(predicates[0]) if predicates else context.sink + 1
    context.emit("barrier_outcome", (context.result(d), flag))


def bpt(context: Context) -> None:
    """BPT.TRAP ends the kernel: an assertion has failed."""
    modifiers = context.modifiers("TRAP")
    if "TRAP" not in modifiers:
        raise context.unsupported("breakpoint")
    context.emit("trap")


def commit_copies(context: Context) -> None:
    """LDGDEPBAR and UTMACMDFLUSH make a group of the copies since the last group, which SB0 counts. Only the sanitizer
    uses it."""
    context.emit("nop", detail=micro.COMMIT)


def wait_copies(context: Context) -> None:
    """DEPBAR.LE SB0, n waits until at most n groups of copies are under way. Only the sanitizer uses this."""
    operands = context.instruction.operands
    if "LE" in context.instruction.modifiers and len(operands) >= 2 and operands[0].name == "SB0":
        context.emit("nop", immediates=(operands[1].value,), detail=micro.WAIT)
    else:
        context.emit("nop")
