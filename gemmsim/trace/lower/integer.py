"""Lowers integer arithmetic (sums, products, shifts, minima, bit counts) on vector and uniform registers."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform, negations


def split(context: Context) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    """Split the operands: destination, predicates written, sources, and predicates read (those after the sources)."""
    destination, *rest = context.instruction.operands
    written: list[Operand] = []
    while rest and is_predicate(rest[0]):
        written.append(rest.pop(0))
    read: list[Operand] = []
    while rest and is_predicate(rest[-1]):
        read.insert(0, rest.pop())
    return destination, written, rest, read


def add3(context: Context) -> None:
    modifiers = context.modifiers("X", "64", "U32")
    d, written, s, read = split(context)
    s = [*s, Operand(d.kind)] if len(s) == 2 else s
    immediates = (negations(*s),)
    if "64" in modifiers:
        if read or any(p.index != ZERO for p in written):
            raise context.unsupported("carry of a 64-bit add")
        context.write(d, "iadd64", tuple(context.wide(o) for o in s), immediates)
        return
    sources = tuple(context.bits(o) for o in s)
    if not read and all(context.result(p) == context.sink for p in written):
        context.write(d, "iadd3", sources, immediates)
        return
    results = (context.result(d), *(context.result(p) for p in written))
    carries = [context.predicate(p) for p in read] + [context.false] * (2 - len(read))
    context.emit("iadd3_carry", results, (*sources, *carries), immediates, uniform=is_uniform(d))


def imad(context: Context) -> None:
    modifiers = context.modifiers("U32", "MOV", "IADD", "SHL", "X", "WIDE", "HI", "S32")
    d, written, (a, b, c), read = split(context)
    product = (_factor(context, a, 0), _factor(context, b, 1))
    signed = "U32" not in modifiers
    with_carry = bool("X" in modifiers or written or read)
    if "WIDE" in modifiers and not (written or read):
        name = "imad_wide_s32" if signed else "imad_wide_u32"
        context.write(d, name, (*product, context.wide(c)), (negations(c),))
        return
    if not with_carry and "HI" not in modifiers:
        context.write(d, "imad", (*product, context.bits(c)), (negations(c),))
        return
    if c.negate or ("HI" in modifiers and read):
        raise context.unsupported("carry of this form of IMAD")
    results = (context.result(d), *(context.result(p) for p in written))
    carry = context.predicate(read[0]) if read else context.false
    sources: tuple[Source, ...]
    immediates: tuple[int, ...] = (int(signed),)
    if "WIDE" in modifiers:
        name, sources = "imad_wide_carry", (*product, context.wide(c), carry)
    elif "HI" in modifiers:
        name, sources = "imad_hi", (*product, context.wide(c))
    else:
        name, sources, immediates = "imad_carry", (*product, context.bits(c), carry), ()
    context.emit(name, results, sources, immediates, uniform=is_uniform(d))


def _factor(context: Context, operand: Operand, slot: int) -> Source:
    """Make the source of a product's factor. A negated factor is computed first: a complement cannot stand for it."""
    source = context.bits(operand)
    if not operand.negate:
        return source
    return context.compute(slot, "iadd3", (source, context.false, context.false), (1,))


def lea(context: Context) -> None:
    modifiers = context.modifiers("HI", "X", "SX32")
    d, written, (a, b, *high, amount), read = split(context)
    results = (context.result(d), *(context.result(p) for p in written))
    carry = context.predicate(read[0]) if read else context.false
    shift = amount.value & 31
    addend = context.bits(b)
    shifted = Source(context.bits(a).row)  # the sign of `a` belongs to the shifted value
    flags = int(a.negate) | int(b.negate) << 1 | int(a.invert) << 2
    sources: tuple[Source, ...]
    if "SX32" in modifiers:
        name, sources = "lea_hi_sx32", (shifted, addend, carry)
    elif "HI" in modifiers:
        name, sources = "lea_hi", (shifted, addend, context.bits(high[0]), carry)
    elif "X" in modifiers:
        name, sources, flags = "lea_x", (shifted, addend, carry), int(a.invert)
    else:
        name, sources, flags = "lea", (shifted, addend), flags & 3
    context.emit(name, results, sources, (shift, flags), uniform=is_uniform(d))


def shf(context: Context) -> None:
    modifiers = context.modifiers("L", "R", "U32", "S32", "U64", "S64", "HI", "W")
    d, low, amount, *rest = context.instruction.operands
    high = context.bits(rest[0]) if rest else context.false
    name = "shf_l" if "L" in modifiers else ("shf_r_s" if modifiers & {"S32", "S64"} else "shf_r_u")
    width = 64 if modifiers & {"U64", "S64"} else 32
    sources = (context.bits(low), context.bits(amount), high)
    context.write(d, name, sources, (width, int("W" in modifiers), int("HI" in modifiers)))


def minmax(context: Context) -> None:
    modifiers = context.modifiers("U32", "S32", "S64", "U64")
    d, (a, b), smaller = _minmax_operands(context, 2)
    kind = next(iter(modifiers), "S32").lower()
    if not kind.endswith("64"):
        context.write(d, f"imnmx_{kind}", (context.bits(a), context.bits(b), smaller))
        return
    # a < b is computed as two instructions do, ISETP.U32 on the low words and ISETP.EX on the high ones; then a choice.
    first, second = context.wide(a), context.wide(b)
    low = context.compute(0, "setp_lt_u32", (first, second, context.true), (0, 0))
    high = (Source(first.row + 1), Source(second.row + 1), context.true, low)
    less = context.compute(1, f"setp_ex_lt_{kind[0]}32", high, (0, 0))
    # 0x82: whether "a < b" and "the smaller one is wanted" are alike
    context.compute(1, "plop3", (less, smaller, context.true), (0x82, 0))
    context.write(d, "sel64", (first, second, less))


def add_minmax(context: Context) -> None:
    """VIADDMNMX gives the smaller or the larger of a + b and c."""
    modifiers = context.modifiers("U32")
    d, (a, b, c), smaller = _minmax_operands(context, 3)
    total = context.compute(0, "iadd3", (context.bits(a), context.bits(b), context.false), (negations(a, b),))
    if c.negate:
        raise context.unsupported("negated operand")
    context.write(d, "imnmx_u32" if "U32" in modifiers else "imnmx_s32", (total, context.bits(c), smaller))


def _minmax_operands(context: Context, count: int) -> tuple[Operand, list[Operand], Source]:
    """Split the operands into destination, `count` sources, and the predicate that asks for the smaller value.

    From sm_100 on nvdisasm prints two more predicates that are written, and one that is read; none of them is in use.
    """
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


def unary(context: Context) -> None:
    """Lower IABS, POPC and BREV."""
    context.modifiers()
    d, written, (a,), read = split(context)
    if written or read or a.negate:
        raise context.unsupported("operand form")
    context.write(d, context.operation, (context.bits(a),))


def flo(context: Context) -> None:
    modifiers = context.modifiers("U32", "SH")
    if "U32" not in modifiers:
        raise context.unsupported("signed FLO")
    d, written, (a,), read = split(context)
    if any(p.index >= 0 for p in written) or read or a.negate:
        raise context.unsupported("operand form")
    context.write(d, "flo_u32", (context.bits(a),), (int("SH" in modifiers),))


def sgxt(context: Context) -> None:
    modifiers = context.modifiers("U32")
    d, a, bits = context.instruction.operands
    context.write(d, "sgxt", (context.bits(a), context.bits(bits)), (int("U32" not in modifiers),))


def bmsk(context: Context) -> None:
    modifiers = context.modifiers("W", "C")
    d, a, b = context.instruction.operands
    context.write(d, "bmsk", (context.bits(a), context.bits(b)), (int("W" in modifiers),))


def idp(context: Context) -> None:
    modifiers = list(context.instruction.modifiers)
    if modifiers[:1] != ["4A"] or set(modifiers[1:]) - {"S8", "U8"}:
        raise context.unsupported("modifier")
    kinds = (modifiers[1:] * 2)[:2] or ["S8", "S8"]
    _without_signs(context, "idp4a", tuple(int(k == "S8") for k in kinds))


def vabsdiff(context: Context) -> None:
    _without_signs(context, "vabsdiff", (int("U32" not in context.modifiers("U32")),))


def _without_signs(context: Context, op: str, immediates: tuple[int, ...]) -> None:
    """Lower to `op` an instruction of three sources, none of which may be negated."""
    d, *sources = context.instruction.operands
    if any(o.negate for o in sources):
        raise context.unsupported("negated operand")
    a, b, c = (context.bits(o) for o in sources)
    context.write(d, op, (a, b, c), immediates)
