"""IADD3, IMAD, LEA, SHF, IMNMX and their uniform forms."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform, negations


def split(context: Context) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    """Destination, predicates written, sources, predicates read (those after the sources)."""
    destination, *rest = context.instruction.operands
    written: list[Operand] = []
    while rest and is_predicate(rest[0]):
        written.append(rest.pop(0))
    read: list[Operand] = []
    while rest and is_predicate(rest[-1]):
        read.insert(0, rest.pop())
    return destination, written, rest, read


def check_modifiers(context: Context, *allowed: str) -> set[str]:
    modifiers = set(context.instruction.modifiers)
    if extra := modifiers - set(allowed):
        raise context.unsupported(f"modifier .{sorted(extra)[0]}")
    return modifiers


def carries(context: Context, read: list[Operand]) -> list[Source]:
    return [context.predicate(p) for p in read] + [context.false] * (2 - len(read))


def add3(context: Context) -> None:
    modifiers = check_modifiers(context, "X", "64", "U32")
    d, written, s, read = split(context)
    s = [*s, Operand(d.kind)] if len(s) == 2 else s
    uniform = is_uniform(d)
    if "64" in modifiers:
        if read or any(p.index != ZERO for p in written):
            raise context.unsupported("carry of a 64-bit add")
        sources = tuple(context.wide(o) for o in s)
        context.emit("iadd64", (context.result(d),), sources, (negations(*s),), uniform=uniform)
        return
    sources = tuple(context.bits(o) for o in s)
    live = [p for p in written if context.result(p) != context.sink]
    if not live and not read:
        context.emit("iadd3", (context.result(d),), sources, (negations(*s),), uniform=uniform)
        return
    results = (context.result(d), *(context.result(p) for p in written))
    context.emit("iadd3_carry", results, (*sources, *carries(context, read)), (negations(*s),), uniform=uniform)


def imad(context: Context) -> None:
    modifiers = check_modifiers(context, "U32", "MOV", "IADD", "SHL", "X", "WIDE", "HI", "S32")
    d, written, (a, b, c), read = split(context)
    uniform = is_uniform(d)
    product = [_factor(context, a, 0), _factor(context, b, 1)]
    signed = "U32" not in modifiers
    result = context.result(d)
    if "WIDE" in modifiers:
        if written or read:
            if c.negate:
                raise context.unsupported("negated addend with carry")
            carry = context.predicate(read[0]) if read else context.false
            outputs = (result, *(context.result(p) for p in written))
            context.emit(
                "imad_wide_carry", outputs, (*product, context.wide(c), carry), (int(signed),), uniform=uniform
            )
            return
        name = "imad_wide_s32" if signed else "imad_wide_u32"
        context.emit(name, (result,), (*product, context.wide(c)), (negations(c),), uniform=uniform)
    elif "HI" in modifiers:
        if read or c.negate:
            raise context.unsupported("carry into IMAD.HI")
        outputs = (result, *(context.result(p) for p in written))
        context.emit("imad_hi", outputs, (*product, context.wide(c)), (int(signed),), uniform=uniform)
    elif "X" in modifiers or written or read:
        carry = context.predicate(read[0]) if read else context.false
        if c.negate:
            raise context.unsupported("negated addend with carry")
        outputs = (result, *(context.result(p) for p in written))
        context.emit("imad_carry", outputs, (*product, context.bits(c), carry), uniform=uniform)
    else:
        context.emit("imad", (result,), (*product, context.bits(c)), (negations(c),), uniform=uniform)


def _factor(context: Context, operand: Operand, slot: int) -> Source:
    """A factor; a negated one is computed first, because a complement is not a negative under a product."""
    source = context.bits(operand)
    if not operand.negate:
        return source
    row = context.temporary + slot
    zero = Source(context.zero)
    context.emit("iadd3", (row,), (source, zero, zero), (1,), uniform=True)
    return Source(row)


def lea(context: Context) -> None:
    modifiers = check_modifiers(context, "HI", "X", "SX32")
    d, written, s, read = split(context)
    uniform = is_uniform(d)
    results = (context.result(d), *(context.result(p) for p in written))
    carry = context.predicate(read[0]) if read else context.false
    shift = s[-1].value & 31
    a, b = s[0], context.bits(s[1])
    plain = Source(context.bits(a).row)  # a's sign belongs to the shifted value
    flags = int(a.negate) | int(s[1].negate) << 1 | int(a.invert) << 2
    if "SX32" in modifiers:
        context.emit("lea_hi_sx32", results, (plain, b, carry), (shift, flags), uniform=uniform)
    elif "HI" in modifiers:
        context.emit("lea_hi", results, (plain, b, context.bits(s[2]), carry), (shift, flags), uniform=uniform)
    elif "X" in modifiers:
        context.emit("lea_x", results, (plain, b, carry), (shift, int(a.invert)), uniform=uniform)
    else:
        context.emit("lea", results, (plain, b), (shift, flags & 3), uniform=uniform)


def shf(context: Context) -> None:
    modifiers = check_modifiers(context, "L", "R", "U32", "S32", "U64", "S64", "HI", "W")
    d, low, amount, *rest = context.instruction.operands
    high = context.bits(rest[0]) if rest else context.false
    name = "shf_l" if "L" in modifiers else ("shf_r_s" if modifiers & {"S32", "S64"} else "shf_r_u")
    width = 64 if modifiers & {"U64", "S64"} else 32
    sources = (context.bits(low), context.bits(amount), high)
    immediates = (width, int("W" in modifiers), int("HI" in modifiers))
    context.emit(name, (context.result(d),), sources, immediates, uniform=is_uniform(d))


def minmax(context: Context) -> None:
    modifiers = check_modifiers(context, "U32", "S32", "S64", "U64")
    d, (a, b), smaller = _minmax_operands(context, 2)
    kind = next(iter(modifiers), "S32").lower()
    uniform = is_uniform(d)
    if not kind.endswith("64"):
        sources = (context.bits(a), context.bits(b), smaller)
        context.emit(f"imnmx_{kind}", (context.result(d),), sources, uniform=uniform)
        return
    # a < b as for two instructions, ISETP.U32 on the low words and ISETP.EX on the high ones; then a choice.
    low, less = context.scratch(0), context.scratch(1)
    first, second = context.wide(a), context.wide(b)
    context.emit("setp_lt_u32", (low.row,), (first, second, context.true), (0, 0), uniform=True)
    high = (Source(first.row + 1), Source(second.row + 1), context.true, low)
    context.emit(f"setp_ex_lt_{kind[0]}32", (less.row,), high, (0, 0), uniform=True)
    context.emit("plop3", (less.row,), (less, smaller, context.true), (0x82, 0), uniform=True)  # a < b equals PT
    context.emit("sel64", (context.result(d),), (first, second, less), uniform=uniform)


def add_minmax(context: Context) -> None:
    """VIADDMNMX: the smaller or larger of a + b and c."""
    modifiers = check_modifiers(context, "U32")
    d, (a, b, c), smaller = _minmax_operands(context, 3)
    total = context.scratch(0)
    addends = (context.bits(a), context.bits(b), Source(context.zero))
    context.emit("iadd3", (total.row,), addends, (negations(a, b),), uniform=True)
    if c.negate:
        raise context.unsupported("negated operand")
    kind = "u32" if "U32" in modifiers else "s32"
    context.emit(f"imnmx_{kind}", (context.result(d),), (total, context.bits(c), smaller), uniform=is_uniform(d))


def _minmax_operands(context: Context, count: int) -> tuple[Operand, list[Operand], Source]:
    """Destination, `count` sources, and the predicate that asks for the smaller one. sm_100 and later print two more
    predicates written and one read, which are not in use."""
    operands = list(context.instruction.operands)
    written = []
    while is_predicate(operands[0]):
        written.append(operands.pop(0))
    d, *sources = operands[: count + 1]
    smaller, *last = operands[count + 1 :]
    if any(p.index != ZERO for p in written) or any(p.index != ZERO or not p.invert for p in last):
        raise context.unsupported("predicate operand")
    if count == 2 and any(o.negate for o in sources):
        raise context.unsupported("negated operand")
    return d, sources, context.predicate(smaller)


def unary(name: str, *allowed: str):  # type: ignore[no-untyped-def]
    def emit(context: Context) -> None:
        check_modifiers(context, *allowed)
        d, written, (a,), read = split(context)
        if written or read or a.negate:
            raise context.unsupported("operand form")
        context.emit(name, (context.result(d),), (context.bits(a),), uniform=is_uniform(d))

    return emit


def flo(context: Context) -> None:
    modifiers = check_modifiers(context, "U32", "SH")
    if "U32" not in modifiers:
        raise context.unsupported("signed FLO")
    d, written, (a,), read = split(context)
    if any(p.index >= 0 for p in written) or read or a.negate:
        raise context.unsupported("operand form")
    context.emit("flo_u32", (context.result(d),), (context.bits(a),), (int("SH" in modifiers),), uniform=is_uniform(d))


def sgxt(context: Context) -> None:
    modifiers = check_modifiers(context, "U32")
    d, a, bits = context.instruction.operands
    sources = (context.bits(a), context.bits(bits))
    context.emit("sgxt", (context.result(d),), sources, (int("U32" not in modifiers),), uniform=is_uniform(d))


def bmsk(context: Context) -> None:
    modifiers = check_modifiers(context, "W", "C")
    d, a, b = context.instruction.operands
    sources = (context.bits(a), context.bits(b))
    context.emit("bmsk", (context.result(d),), sources, (int("W" in modifiers),), uniform=is_uniform(d))


def idp(context: Context) -> None:
    modifiers = list(context.instruction.modifiers)
    if modifiers[:1] != ["4A"] or set(modifiers[1:]) - {"S8", "U8"}:
        raise context.unsupported("modifier")
    kinds = (modifiers[1:] * 2)[:2] or ["S8", "S8"]
    d, a, b, c = context.instruction.operands
    if c.negate:
        raise context.unsupported("negated operand")
    sources = (context.bits(a), context.bits(b), context.bits(c))
    context.emit("idp4a", (context.result(d),), sources, tuple(int(k == "S8") for k in kinds))


def vabsdiff(context: Context) -> None:
    modifiers = check_modifiers(context, "U32")
    d, a, b, c = context.instruction.operands
    if a.negate or b.negate or c.negate:
        raise context.unsupported("negated operand")
    sources = (context.bits(a), context.bits(b), context.bits(c))
    context.emit("vabsdiff", (context.result(d),), sources, (int("U32" not in modifiers),))


def _both(*names: str) -> tuple[str, ...]:
    return (*names, *("U" + name for name in names))


TABLE = {
    **dict.fromkeys((*_both("IADD3", "IADD"), "VIADD"), add3),
    **dict.fromkeys(_both("IMAD"), imad),
    **dict.fromkeys(_both("LEA"), lea),
    **dict.fromkeys(_both("SHF"), shf),
    **dict.fromkeys((*_both("IMNMX"), *("VIMNMX", "UVIMNMX")), minmax),
    **dict.fromkeys(_both("IABS"), unary("iabs")),
    **dict.fromkeys(_both("POPC"), unary("popc")),
    **dict.fromkeys(_both("BREV"), unary("brev")),
    **dict.fromkeys(_both("FLO"), flo),
    **dict.fromkeys(_both("SGXT"), sgxt),
    **dict.fromkeys(_both("BMSK"), bmsk),
    "VIADDMNMX": add_minmax,
    "UVIADDMNMX": add_minmax,
    "VABSDIFF": vabsdiff,
    "IDP": idp,
}
