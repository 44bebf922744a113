"""Lowers moves between registers, special registers and constants, and exchanges between the lanes of a warp."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.isa.semantics.predicate import AND, OR
from gemmsim.trace import micro
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform
from gemmsim.trace.micro import FIRST_LANE, MATCH_ALL, MATCH_ANY, REDUCTIONS, SHUFFLES, VOTES

_WORDS = {"": 1, "64": 2, "128": 4}
_NARROW_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}


def mov(context: Context) -> None:
    modifiers = context.modifiers("64", "SPILL")  # MOV.SPILL keeps a uniform register that R2UR.FILL restores
    d, a, *mask = context.instruction.operands
    if mask and mask[0].value != 0xF:
        raise context.unsupported("lane mask")
    if "64" in modifiers:
        context.write(d, "mov64", (context.wide(a),))
    else:
        context.write(d, "mov", (context.bits(a),))


def rpcmov(context: Context) -> None:
    """RPCMOV.32 moves half of Rpc, a register of 64 bits that each thread has for its return address, to or from a
    register. Compilers keep other values there, too."""
    context.modifiers("32")
    d, a = context.instruction.operands
    name = d.name + a.name
    if name not in ("Rpc.LO", "Rpc.HI"):
        raise context.unsupported("operand form")
    row = context.counter("RPC") + (name == "Rpc.HI")
    if d.name:
        context.emit("mov", (row,), (context.bits(a),))
    else:
        context.write(d, "mov", (Source(row),))


# What CLOCK and GLOBALTIMER advance by (cycles, ns) each time that a warp reads one of them. Time is not known while a
# kernel is executed, so that only their order is right: kernels that wait for a time to pass do come to an end.
_TICK = 32
_CLOCKS = ("SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI")


def s2r(context: Context) -> None:
    context.modifiers()
    d, a = context.instruction.operands
    context.write(d, "mov", (_special(context, a.name),))


def cs2r(context: Context) -> None:
    """CS2R Rd, SR reads a special register, of the clocks both words; CS2R.32 reads one word."""
    modifiers = context.modifiers("32", "64")
    d, a = context.instruction.operands
    if "32" in modifiers:
        context.write(d, "mov", (_special(context, a.name),))
    elif a.name == "SRZ" or a.name in ("SR_CLOCKLO", "SR_GLOBALTIMERLO"):
        context.write(d, "mov64", (_special(context, a.name),))
    else:
        raise context.unsupported(f"both words of special register {a.name}")


def _special(context: Context, name: str) -> Source:
    """Return the source of a special register. Where it is a clock, the clock goes on."""
    if name == "SRZ":
        return context.false
    if name not in _CLOCKS:
        return Source(context.special(name))
    clock = context.counter(name[:-2])
    if name.endswith("LO"):
        tick = (Source(clock), Source(context.literal(_TICK, 0)), context.false)
        context.emit("iadd64", (clock,), tick, (0,), uniform=True)
    return Source(clock + int(name.endswith("HI")))


def ldc(context: Context) -> None:
    modifiers = context.modifiers(*_WORDS, *_NARROW_BYTES)
    size = next(iter(modifiers), "")
    d, a = context.instruction.operands
    if a.name:
        raise context.unsupported("bindless constant")
    if a.index == ZERO and a.uniform == ZERO:
        if size in _NARROW_BYTES:
            row = Source(context.constant(a.bank, a.value & ~3, 1))
            field = (8 * (a.value & 3), 8 * _NARROW_BYTES[size], int(size[0] == "S"))
            context.write(d, "bit_field", (row,), field)
            return
        result = context.result(d)
        for word in range(_WORDS[size]):
            row = Source(context.constant(a.bank, a.value + 4 * word, 1))
            to = result if result == context.sink else result + word
            context.emit("mov", (to,), (row,), uniform=is_uniform(d))
        return
    register = Source(context.row(Operand(OperandKind.REGISTER, a.index)))
    other = Source(context.row(Operand(OperandKind.UNIFORM_REGISTER, a.uniform)))
    where = context.compute(0, "address32", (register, other), (1, a.value))
    how = 4 * _WORDS.get(size, 1) | micro.CONSTANT << micro.SPACE_SHIFT
    context.emit("access", (context.result(d),), (where,), uniform=is_uniform(d), access=how, detail=a.bank)
    if size in _NARROW_BYTES:  # a whole word was read
        field = (0, 8 * _NARROW_BYTES[size], int(size[0] == "S"))
        context.write(d, "bit_field", (Source(context.result(d)),), field)


def r2ur(context: Context) -> None:
    """R2UR [P,] URd, Ra gives the value of the first active lane. P is set in the lanes whose own value differs; with
    .OR, P stays set where it was. A loop with one pass for each value is made of it: a lane goes on until none of its
    values differs."""
    modifiers = context.modifiers("FILL", "BROADCAST", "OR")
    *written, d, a = context.instruction.operands
    context.emit("exchange", (context.temporary,), (context.bits(a),), uniform=True, detail=FIRST_LANE)
    for p in written:
        before, how = (context.predicate(p), OR) if "OR" in modifiers else (context.true, AND)
        differs = (context.scratch(0), context.bits(a), before)
        context.emit("setp_eq_u32", (context.result(p), context.sink), differs, (1, how))
    context.write(d, "mov", (context.scratch(0),))


def shfl(context: Context) -> None:
    modifiers = context.modifiers(*SHUFFLES)
    p, d, a, lane, clamp = context.instruction.operands
    sources = (context.bits(a), context.bits(lane), context.bits(clamp))
    results = (context.result(d), context.result(p), context.temporary)
    context.emit("exchange", results, sources, detail=next(SHUFFLES[m] for m in modifiers))


def _value_and_flag(context: Context, results: list[Operand]) -> tuple[int, int]:
    """Return two rows: that of the register and that of the predicate among `results`.

    The row that drops what is written to it (the sink) stands for one that is not among them.
    """
    value = next((o for o in results if not is_predicate(o)), None)
    flag = next((o for o in results if is_predicate(o)), None)
    return context.result(value) if value else context.sink, context.result(flag) if flag else context.sink


def vote(context: Context) -> None:
    modifiers = context.modifiers(*VOTES)
    *results, a = context.instruction.operands
    uniform = any(is_uniform(o) for o in results)
    vote_ = next(VOTES[m] for m in modifiers)
    context.emit("exchange", _value_and_flag(context, results), (context.predicate(a),), uniform=uniform, detail=vote_)


def match(context: Context) -> None:
    """MATCH.ANY Rd, Ra gives each lane the mask of the lanes with its value. MATCH.ALL Pd, Rd, Ra gives the mask of all
    active lanes where all agree, else 0. With .U64 both words of a pair must agree."""
    modifiers = context.modifiers("ANY", "ALL", "U64", "U32")
    *results, a = context.instruction.operands
    how = MATCH_ALL if "ALL" in modifiers else MATCH_ANY
    value, flag = _value_and_flag(context, results)
    if "U64" not in modifiers:
        context.emit("exchange", (value, flag), (context.bits(a),), detail=how)
        return
    pair = context.wide(a)
    for word in (0, 1):
        part = Source(pair.row + word, pair.keep, pair.flip)
        context.emit("exchange", (context.temporary + word, context.temporary + 2 + word), (part,), detail=how)
    words = (context.scratch(0), context.scratch(1), context.false)
    context.emit("lop3_c0", (value,), words)
    if "ALL" in modifiers:
        flags = (context.scratch(2), context.scratch(3), context.true)
        context.emit("plop3", (flag, context.sink), flags, (0x80, 0))


def elect(context: Context) -> None:
    """ELECT P, URd, C gives the lowest active lane in URd, and sets P in that lane."""
    context.modifiers()
    p, d, condition = context.instruction.operands
    if condition.index != ZERO or condition.invert:
        raise context.unsupported("predicate operand")
    mask = (context.temporary, context.temporary + 1)
    context.emit("exchange", mask, (context.true,), uniform=True, detail=VOTES["ANY"])
    lowest = context.compute(0, "flo_u32", (context.compute(0, "brev", (context.scratch(0),)),), (1,))
    here = (lowest, Source(context.special("SR_LANEID")), context.true)
    context.emit("setp_eq_u32", (context.result(p), context.sink), here, (0, 0))
    context.write(d, "mov", (lowest,))


def redux(context: Context) -> None:
    """REDUX URd, Ra combines the values of all active lanes, by AND where no modifier says how; CREDUX likewise."""
    if "F32" in context.instruction.modifiers:
        _redux_floats(context)
        return
    modifiers = context.modifiers("SUM", "OR", "XOR", "MIN", "MAX", "S32")
    operation = next((m for m in context.instruction.modifiers if m in REDUCTIONS), "AND")
    if operation in ("MIN", "MAX") and "S32" in modifiers:
        operation += ".S32"
    d, a = context.instruction.operands
    detail = REDUCTIONS[operation]
    context.emit("exchange", (context.result(d),), (context.bits(a),), uniform=is_uniform(d), detail=detail)


def _redux_floats(context: Context) -> None:
    """CREDUX.MAX.F32 URd, Ra gives the largest number of all active lanes; MINABS and MAXABS compare magnitudes. NaN is
    passed over where not all lanes have it; with .NAN it is the result."""
    modifiers = context.modifiers("MIN", "MAX", "MINABS", "MAXABS", "F32", "NAN")
    name = next(m for m in context.instruction.modifiers if m[:3] in ("MIN", "MAX"))
    d, a = context.instruction.operands
    smallest, value = name.startswith("MIN"), context.single(a)
    if name.endswith("ABS"):
        value = Source(value.row, value.keep & 0x7FFFFFFF)
    # Integers in the order of the numbers: NaN is at the end at which it is chosen last or, with .NAN, first.
    last = smallest == ("NAN" not in modifiers)
    key = context.compute(0, "order_key", (value,), (int(last),))
    detail = REDUCTIONS["MIN" if smallest else "MAX"]
    context.emit("exchange", (context.temporary,), (key,), uniform=True, detail=detail)
    context.write(d, "number_of_key", (context.scratch(0),))
