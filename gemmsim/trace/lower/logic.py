"""Lowers bitwise logic, byte permutes, choices, comparisons and predicates, on vector and uniform registers."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.isa.semantics.logic import COMMON_TABLES
from gemmsim.isa.semantics.predicate import AND, OR, XOR
from gemmsim.trace.lower.context import ALL, Context, Source, is_predicate, is_uniform
from gemmsim.trace.lower.half import half_source

_BOOLEAN = {"AND": AND, "OR": OR, "XOR": XOR}


def lop3(context: Context) -> None:
    """Lower LOP3.LUT [P,] Rd, Ra, Rb, Rc, table[, Q]. P becomes true where a bit of the result is set or Q is true."""
    context.modifiers("LUT")
    operands = list(context.instruction.operands)
    predicate = operands.pop(0) if is_predicate(operands[0]) else None
    combined = operands.pop() if is_predicate(operands[-1]) else None
    if combined and combined.index == ZERO and combined.invert:
        combined = None  # !PT adds nothing
    d, a, b, c, table = operands
    flag = context.result(predicate) if predicate else context.sink
    results = (context.result(d), context.scratch(0).row if combined else flag)
    sources = tuple(context.bits(o) for o in (a, b, c))
    uniform = is_uniform(d) or bool(predicate and is_uniform(predicate))
    if table.value in COMMON_TABLES:
        context.emit(f"lop3_{table.value:02x}", results, sources, uniform=uniform)
    else:
        context.emit("lop3", results, sources, (table.value,), uniform=uniform)
    if combined:
        either = (context.scratch(0), context.predicate(combined), context.false)
        context.emit("plop3", (flag, context.sink), either, (0xFC, 0), uniform=uniform)


def plop3(context: Context) -> None:
    context.modifiers("LUT")
    p, q, a, b, c, first, second = context.instruction.operands
    sources = tuple(context.predicate(o) for o in (a, b, c))
    results = (context.result(p), context.result(q))
    context.emit("plop3", results, sources, (first.value, second.value), uniform=is_uniform(p))


def prmt(context: Context) -> None:
    context.modifiers()
    d, a, selector, c = context.instruction.operands
    context.write(d, "prmt", (context.bits(a), context.bits(selector), context.bits(c)))


def sel(context: Context) -> None:
    modifiers = context.modifiers("64")
    d, a, b, p = context.instruction.operands
    if a.negate or b.negate:
        raise context.unsupported("negated operand")
    name, operand = ("sel64", context.wide) if "64" in modifiers else ("sel", context.bits)
    context.write(d, name, (operand(a), operand(b), context.predicate(p)))


# Comparison -> (comparison of the micro-operation, whether its operands are swapped, whether its result is inverted)
_INTEGER = {
    "LT": ("lt", False, False),
    "GT": ("lt", True, False),
    "LE": ("lt", True, True),
    "GE": ("lt", False, True),
    "EQ": ("eq", False, False),
    "NE": ("eq", False, True),
}
# With .EX the comparison of the low words decides where the high ones are equal, so LE and GE compare like LT and GT.
_INTEGER_EX = {**_INTEGER, "LE": _INTEGER["LT"], "GE": _INTEGER["GT"]}
# The plain comparisons are false where an operand is NaN, those with U are true.
_FLOAT = {
    **{"LT": ("lt", False, False), "GT": ("lt", True, False), "LE": ("le", False, False), "GE": ("le", True, False)},
    **{"EQ": ("eq", False, False), "NE": ("lg", False, False), "NUM": ("num", False, False)},
    **{"LTU": ("le", True, True), "GTU": ("le", False, True), "LEU": ("lt", True, True), "GEU": ("lt", False, True)},
    **{"EQU": ("lg", False, True), "NEU": ("eq", False, True), "NAN": ("num", False, True)},
}


def _combination(context: Context) -> int:
    """Return how a comparison combines with the third predicate: AND, OR or XOR, as in `semantics.predicate`."""
    return next((_BOOLEAN[m] for m in context.instruction.modifiers if m in _BOOLEAN), AND)


def isetp(context: Context) -> None:
    modifiers = context.modifiers(*_INTEGER, "U32", "S32", "U64", "S64", *_BOOLEAN, "EX")
    comparison = next(m for m in context.instruction.modifiers if m in _INTEGER)
    kind = next((m for m in ("U32", "S64", "U64") if m in modifiers), "S32")
    p, q, a, b, *read = context.instruction.operands
    if a.negate or b.negate:
        raise context.unsupported("negated operand")
    third = context.predicate(read[0])
    wide = kind.endswith("64")
    operand = context.wide if wide else context.bits
    name, swap, invert = (_INTEGER_EX if "EX" in modifiers and not wide else _INTEGER)[comparison]
    first, second = operand(b if swap else a), operand(a if swap else b)
    type_ = "u32" if name == "eq" else f"{kind[0].lower()}32"
    low = None
    if wide:  # from sm_100 on; done as the two comparisons of 32 bits that earlier code has for it
        low = context.compute(0, f"setp_{name}_u32", (first, second, context.true), (0, AND))
        first, second = (Source(one.row + 1, one.keep, one.flip) for one in (first, second))
    elif "EX" in modifiers:
        low = context.predicate(read[1])
        if comparison == "NE":  # not (equal, and not (the low words differ))
            low = Source(low.row, low.keep, low.flip ^ ALL)
    elif len(read) != 1:
        raise context.unsupported("operand form")
    name = f"setp_{name}_{type_}" if low is None else f"setp_ex_{name}_{type_}"
    sources = (first, second, third) if low is None else (first, second, third, low)
    results = (context.result(p), context.result(q))
    context.emit(name, results, sources, (int(invert), _combination(context)), uniform=is_uniform(p))


def fsetp(context: Context) -> None:
    modifiers = context.modifiers(*_FLOAT, "FTZ", *_BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    sources = [context.single(a), context.single(b)]
    if "FTZ" in modifiers:
        sources = [context.compute(i, "flush_f32", (source,)) for i, source in enumerate(sources)]
    _compare_floats(context, "f32", (p, q), sources, third)


def dsetp(context: Context) -> None:
    context.modifiers(*_FLOAT, *_BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    _compare_floats(context, "f64", (p, q), [context.double(a), context.double(b)], third)


def hsetp2(context: Context) -> None:
    """HSETP2 P, PT, a, b, PT compares the low halves after the operands' swizzles."""
    modifiers = context.modifiers(*_FLOAT, "BF16_V2", *_BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    if context.result(q) != context.sink:
        raise context.unsupported("second predicate of HSETP2")
    widen = "bf16_to_f32" if "BF16_V2" in modifiers else "f16_to_f32"
    sources = [context.compute(i, widen, (half_source(context, o, 2 + i),), (0,)) for i, o in enumerate((a, b))]
    _compare_floats(context, "f32", (p, q), sources, third)


def _compare_floats(
    context: Context, type_: str, written: tuple[Operand, Operand], sources: list[Source], third: Operand
) -> None:
    comparison = next(m for m in context.instruction.modifiers if m in _FLOAT)
    name, swap, invert = _FLOAT[comparison]
    a, b = reversed(sources) if swap else sources
    results = tuple(context.result(p) for p in written)
    immediates = (int(invert), _combination(context))
    operands = (a, b, context.predicate(third))
    context.emit(f"setp_{name}_{type_}", results, operands, immediates, uniform=is_uniform(written[0]))


def p2r(context: Context) -> None:
    """P2R Rd, PR, Ra, mask sets the bits in `mask` to the predicates; the other bits are those of Ra."""
    context.modifiers()
    d, _, a, mask = context.instruction.operands
    context.write(d, "mov", (context.bits(a),))
    for bit in range(7):
        if mask.value >> bit & 1:
            source = context.bits(Operand(d.kind, d.index))
            context.write(d, "with_bit", (source, Source(context.predicate_base + bit)), (bit,))


def r2p(context: Context) -> None:
    context.modifiers()
    _, a, mask = context.instruction.operands
    for bit in range(7):
        if mask.value >> bit & 1:
            context.emit("bit_of", (context.predicate_base + bit,), (context.bits(a),), (bit,))
