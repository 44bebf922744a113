"""Lowers integer arithmetic (sums, products, shifts, minima, bit counts) on vector and uniform registers."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.trace.lower.context import Context, Source, is_predicate, is_uniform, negations

_PACKED = ("16x2", "U16x2", "S16x2", "8x4", "U8x4", "S8x4")


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
    modifiers = context.modifiers("X", "64", "U32", "S32", "ISAT", *_PACKED)
    d, written, s, read = split(context)
    if modifiers & {"ISAT", *_PACKED}:
        a, b = (context.bits(o) for o in s)
        packed = next((m.lstrip("US") for m in modifiers if m in _PACKED), "saturated")
        context.write(d, f"viadd_{packed}", (a, b), (negations(*s),))
        return
    s = [*s, Operand(d.kind)] if len(s) == 2 else s
    immediates = (negations(*s),)
    if "64" in modifiers:
        wide = tuple(context.wide(o) for o in s)
        if not read and all(p.index == ZERO for p in written):
            context.write(d, "iadd64", wide, immediates)
        elif len(read) > 1 or len(written) > 1 or s[2].index != ZERO:
            raise context.unsupported("carry of this form of a 64-bit add")
        else:
            flag = context.result(written[0]) if written else context.sink
            carry = context.predicate(read[0]) if read else context.false
            low = (context.result(d), flag)
            context.emit("iadd64_carry", low, (*wide[:2], carry), immediates, uniform=is_uniform(d))
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
    modifiers = context.modifiers("U32", "S32", "S64", "U64", *_PACKED, "RELU")
    d, (a, b), (smaller,) = _minmax_operands(context, 2)
    relu = "RELU" in modifiers
    if packed := modifiers & set(_PACKED):
        (kind,) = packed
        how = (int(kind[0] == "S"), int(relu))
        context.write(d, f"vimnmx_{kind[1:]}", (context.bits(a), context.bits(b), smaller), how)
        return
    kind = next((m for m in modifiers if m != "RELU"), "S32").lower()
    if not kind.endswith("64"):
        _at_least_zero(context, d, f"imnmx_{kind}", (context.bits(a), context.bits(b), smaller), relu)
        return
    if relu:
        raise context.unsupported("modifier .RELU")
    # a < b is computed as two instructions do, ISETP.U32 on the low words and ISETP.EX on the high ones; then a choice.
    first, second = context.wide(a), context.wide(b)
    low = context.compute(0, "setp_lt_u32", (first, second, context.true), (0, 0))
    high = (Source(first.row + 1), Source(second.row + 1), context.true, low)
    less = context.compute(1, f"setp_ex_lt_{kind[0]}32", high, (0, 0))
    # 0x82: whether "a < b" and "the smaller one is wanted" are alike
    context.compute(1, "plop3", (less, smaller, context.true), (0x82, 0))
    context.write(d, "sel64", (first, second, less))


def _at_least_zero(context: Context, d: Operand, op: str, sources: tuple[Source, ...], relu: bool) -> None:
    """Write the result of `op` to `d`; with `relu` 0 in place of a negative one."""
    if relu:
        context.write(d, "at_least_zero", (context.compute(0, op, sources),))
    else:
        context.write(d, op, sources)


def minmax3(context: Context) -> None:
    """VIMNMX3 gives the smallest or largest of three values; each predicate asks for the smaller of a pair."""
    modifiers = context.modifiers("U32", "S32", "U16x2", "S16x2", "RELU")
    d, sources, predicates = _minmax_operands(context, 3)
    smaller = [predicates[0], predicates[-1]]
    relu, packed = "RELU" in modifiers, bool(modifiers & {"U16x2", "S16x2"})
    kind = "u32" if "U32" in modifiers else "s32"
    value = context.bits(sources[0])
    for number, source in enumerate(sources[1:]):
        pair, last = (value, context.bits(source), smaller[number]), number == 1
        if packed:
            how = (int("S16x2" in modifiers), int(relu and last))
            value = context.compute(0, "vimnmx_16x2", pair, how)
        else:
            value = context.compute(0, f"imnmx_{kind}", pair)
    context.write(d, "at_least_zero" if relu and not packed else "mov", (value,))


def add_minmax(context: Context) -> None:
    """VIADDMNMX gives the smaller or the larger of a + b and c."""
    modifiers = context.modifiers("U32", "S32", "RELU", "U16x2", "S16x2")
    d, (a, b, c), (smaller,) = _minmax_operands(context, 3)
    if c.negate:
        raise context.unsupported("negated operand")
    relu = "RELU" in modifiers
    if modifiers & {"U16x2", "S16x2"}:
        pair = context.compute(0, "viadd_16x2", (context.bits(a), context.bits(b)), (negations(a, b),))
        how = (int("S16x2" in modifiers), int(relu))
        context.write(d, "vimnmx_16x2", (pair, context.bits(c), smaller), how)
        return
    total = context.compute(0, "iadd3", (context.bits(a), context.bits(b), context.false), (negations(a, b),))
    op = "imnmx_u32" if "U32" in modifiers else "imnmx_s32"
    _at_least_zero(context, d, op, (total, context.bits(c), smaller), relu)


def _minmax_operands(context: Context, count: int) -> tuple[Operand, list[Operand], list[Source]]:
    """Split the operands into destination, `count` sources, and the predicates that ask for the smaller value.

    From sm_100 on nvdisasm prints two more predicates that are written, and one that is read; none of them is in use.
    VIMNMX has the two behind its destination, and nothing more that is read.
    """
    operands = list(context.instruction.operands)
    before = _leading_predicates(operands)
    d = operands.pop(0)
    written = before + _leading_predicates(operands)
    sources, smaller = operands[:count], operands[count:]
    if before:
        *smaller, last = smaller
        if last.index != ZERO or not last.invert:
            raise context.unsupported("predicate operand")
    if not smaller or any(p.index != ZERO for p in written):
        raise context.unsupported("predicate operand")
    if count == 2 and any(o.negate for o in sources):
        raise context.unsupported("negated operand")
    return d, sources, [context.predicate(p) for p in smaller]


def _leading_predicates(operands: list[Operand]) -> list[Operand]:
    """Remove the predicates at the head of `operands`, and return them."""
    count = next((i for i, operand in enumerate(operands) if not is_predicate(operand)), len(operands))
    leading = operands[:count]
    del operands[:count]
    return leading


def unary(context: Context) -> None:
    """Lower IABS, POPC and BREV."""
    context.modifiers()
    d, written, (a,), read = split(context)
    if written or read or a.negate:
        raise context.unsupported("operand form")
    context.write(d, context.operation, (context.bits(a),))


def flo(context: Context) -> None:
    """FLO gives the highest bit that is set or, of a negative integer, that is not set."""
    modifiers = context.modifiers("U32", "SH")
    d, written, (a,), read = split(context)
    if any(p.index >= 0 for p in written) or read or a.negate:
        raise context.unsupported("operand form")
    source = context.bits(a)
    if "U32" not in modifiers:
        source = context.compute(0, "flipped_if_negative", (source,))
    context.write(d, "flo_u32", (source,), (int("SH" in modifiers),))


def sgxt(context: Context) -> None:
    modifiers = context.modifiers("U32", "W")
    d, a, bits = context.instruction.operands
    amount = context.bits(bits)
    if "W" in modifiers:
        amount = context.compute(0, "lop3_c0", (amount, Source(context.literal(31)), context.false))
    context.write(d, "sgxt", (context.bits(a), amount), (int("U32" not in modifiers),))


def bmsk(context: Context) -> None:
    modifiers = context.modifiers("W", "C")
    d, a, b = context.instruction.operands
    context.write(d, "bmsk", (context.bits(a), context.bits(b)), (int("W" in modifiers),))


def idp(context: Context) -> None:
    """IDP.4A and IDP.2A: a modifier names the type of each factor, and S8 or S16 is meant where there is none."""
    form, *modifiers = context.instruction.modifiers
    kinds = [m for m in modifiers if m in ("S8", "U8", "S16", "U16")]
    if form not in ("4A", "2A") or set(modifiers) - {*kinds, "LO", "HI"}:
        raise context.unsupported("modifier")
    first, second = [int(k[0] == "S") for k in (kinds * 2)[:2] or ["S8", "S8"]]
    if form == "4A":
        _without_signs(context, "idp4a", (first, second))
    else:
        _without_signs(context, "idp2a", (first, second, int("HI" in modifiers)))


def vabsdiff(context: Context) -> None:
    _without_signs(context, "vabsdiff", (int("U32" not in context.modifiers("U32")),))


def vabsdiff4(context: Context) -> None:
    modifiers = context.modifiers("U8", "S8", "ACC")
    _without_signs(context, "vabsdiff4", (int("U8" not in modifiers), int("ACC" in modifiers)))


def _without_signs(context: Context, op: str, immediates: tuple[int, ...]) -> None:
    """Lower to `op` an instruction of three sources, none of which may be negated."""
    d, *sources = context.instruction.operands
    if any(o.negate for o in sources):
        raise context.unsupported("negated operand")
    a, b, c = (context.bits(o) for o in sources)
    context.write(d, op, (a, b, c), immediates)
