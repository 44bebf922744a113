"""LOP3, PLOP3, PRMT, SEL, ISETP and their uniform forms."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.isa.semantics.logic import COMMON_TABLES
from gemmsim.isa.semantics.predicate import AND, OR, XOR
from gemmsim.trace.lower.context import ALL, Context, Source, is_predicate, is_uniform
from gemmsim.trace.lower.half import half_source
from gemmsim.trace.lower.integer import check_modifiers

BOOLEAN = {"AND": AND, "OR": OR, "XOR": XOR}


def lop3(context: Context) -> None:
    """LOP3.LUT [P,] Rd, Ra, Rb, Rc, table[, Q]: P is whether any bit of the result is set, or else Q."""
    check_modifiers(context, "LUT")
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
    check_modifiers(context, "LUT")
    *predicates, first, second = context.instruction.operands
    p, q, a, b, c = predicates
    sources = tuple(context.predicate(o) for o in (a, b, c))
    results = (context.result(p), context.result(q))
    context.emit("plop3", results, sources, (first.value, second.value), uniform=is_uniform(p))


def prmt(context: Context) -> None:
    check_modifiers(context)
    d, a, selector, c = context.instruction.operands
    sources = (context.bits(a), context.bits(selector), context.bits(c))
    context.emit("prmt", (context.result(d),), sources, uniform=is_uniform(d))


def sel(context: Context) -> None:
    modifiers = check_modifiers(context, "64")
    d, a, b, p = context.instruction.operands
    if a.negate or b.negate:
        raise context.unsupported("negated operand")
    name, operand = ("sel64", context.wide) if "64" in modifiers else ("sel", context.bits)
    sources = (operand(a), operand(b), context.predicate(p))
    context.emit(name, (context.result(d),), sources, uniform=is_uniform(d))


# comparison -> micro-operation, operands swapped, result inverted
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
# The plain ones are false where an operand is NaN, those with U true.
_FLOAT = {
    **{"LT": ("lt", False, False), "GT": ("lt", True, False), "LE": ("le", False, False), "GE": ("le", True, False)},
    **{"EQ": ("eq", False, False), "NE": ("lg", False, False), "NUM": ("num", False, False)},
    **{"LTU": ("le", True, True), "GTU": ("le", False, True), "LEU": ("lt", True, True), "GEU": ("lt", False, True)},
    **{"EQU": ("lg", False, True), "NEU": ("eq", False, True), "NAN": ("num", False, True)},
}


def _how(context: Context) -> int:
    return next((BOOLEAN[m] for m in context.instruction.modifiers if m in BOOLEAN), AND)


def isetp(context: Context) -> None:
    modifiers = check_modifiers(context, *_INTEGER, "U32", "S32", "U64", "S64", *BOOLEAN, "EX")
    comparison = next(m for m in context.instruction.modifiers if m in _INTEGER)
    kind = next((m for m in ("U32", "S64", "U64") if m in modifiers), "S32")
    p, q, a, b, *read = context.instruction.operands
    if a.negate or b.negate:
        raise context.unsupported("negated operand")
    results = (context.result(p), context.result(q))
    how, uniform, third = _how(context), is_uniform(p), context.predicate(read[0])
    if kind.endswith("64"):
        _compare_wide(context, comparison, kind, results, context.wide(a), context.wide(b), third, how, uniform)
        return
    table = _INTEGER_EX if "EX" in modifiers else _INTEGER
    name, swap, invert = table[comparison]
    sources = (context.bits(b), context.bits(a)) if swap else (context.bits(a), context.bits(b))
    type_ = "u32" if name == "eq" else kind.lower()
    if "EX" in modifiers:
        low = context.predicate(read[1])
        if comparison == "NE":  # not (equal, and not (low words differ))
            low = Source(low.row, low.keep, low.flip ^ ALL)
        context.emit(f"setp_ex_{name}_{type_}", results, (*sources, third, low), (int(invert), how), uniform=uniform)
    elif len(read) == 1:
        context.emit(f"setp_{name}_{type_}", results, (*sources, third), (int(invert), how), uniform=uniform)
    else:
        raise context.unsupported("operand form")


def _compare_wide(
    context: Context,
    comparison: str,
    kind: str,
    results: tuple[int, int],
    a: Source,
    b: Source,
    third: Source,
    how: int,
    uniform: bool,
) -> None:
    """64-bit comparisons of sm_100 and later, as the two 32-bit ones that earlier code has for them."""
    name, swap, invert = _INTEGER[comparison]
    if swap:
        a, b = b, a
    low = context.scratch(0)
    context.emit(f"setp_{name}_u32", (low.row,), (a, b, context.true), (0, AND), uniform=True)
    high = (Source(a.row + 1, a.keep, a.flip), Source(b.row + 1, b.keep, b.flip), third, low)
    type_ = "u32" if name == "eq" or kind == "U64" else "s32"
    context.emit(f"setp_ex_{name}_{type_}", results, high, (int(invert), how), uniform=uniform)


def fsetp(context: Context) -> None:
    modifiers = check_modifiers(context, *_FLOAT, "FTZ", *BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    sources = [context.single(a), context.single(b)]
    if "FTZ" in modifiers:
        for i, source in enumerate(sources):
            context.emit("flush_f32", (context.scratch(i).row,), (source,), uniform=True)
            sources[i] = context.scratch(i)
    emit_float_comparison(context, "f32", (p, q), sources, third)


def dsetp(context: Context) -> None:
    check_modifiers(context, *_FLOAT, *BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    emit_float_comparison(context, "f64", (p, q), [context.double(a), context.double(b)], third)


def hsetp2(context: Context) -> None:
    """HSETP2 P, PT, a, b, PT: of the low halves after the operands' swizzles."""
    modifiers = check_modifiers(context, *_FLOAT, "BF16_V2", *BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    if context.result(q) != context.sink:
        raise context.unsupported("second predicate of HSETP2")
    kind = "bf16" if "BF16_V2" in modifiers else "f16"
    sources = []
    for i, operand in enumerate((a, b)):
        row = context.scratch(i)
        context.emit(f"{kind}_to_f32", (row.row,), (half_source(context, operand, 2 + i),), (0,), uniform=True)
        sources.append(row)
    emit_float_comparison(context, "f32", (p, q), sources, third)


def emit_float_comparison(
    context: Context, type_: str, written: tuple[Operand, Operand], sources: list[Source], third: Operand
) -> None:
    comparison = next(m for m in context.instruction.modifiers if m in _FLOAT)
    name, swap, invert = _FLOAT[comparison]
    a, b = reversed(sources) if swap else sources
    results = tuple(context.result(p) for p in written)
    operands = (a, b, context.predicate(third))
    context.emit(
        f"setp_{name}_{type_}", results, operands, (int(invert), _how(context)), uniform=is_uniform(written[0])
    )


def p2r(context: Context) -> None:
    """P2R Rd, PR, Ra, mask: the predicates as bits; others of Ra kept."""
    check_modifiers(context)
    d, _, a, mask = context.instruction.operands
    context.emit("mov", (context.result(d),), (context.bits(a),))
    for bit in range(7):
        if mask.value >> bit & 1:
            source = context.bits(Operand(d.kind, d.index))
            p = Source(context.predicate_base + bit)
            context.emit("with_bit", (context.result(d),), (source, p), (bit,))


def r2p(context: Context) -> None:
    check_modifiers(context)
    _, a, mask = context.instruction.operands
    for bit in range(7):
        if mask.value >> bit & 1:
            context.emit("bit_of", (context.predicate_base + bit,), (context.bits(a),), (bit,))


TABLE = {
    "LOP3": lop3,
    "ULOP3": lop3,
    "PLOP3": plop3,
    "UPLOP3": plop3,
    "PRMT": prmt,
    "UPRMT": prmt,
    "SEL": sel,
    "USEL": sel,
    "ISETP": isetp,
    "UISETP": isetp,
    "FSETP": fsetp,
    "UFSETP": fsetp,
    "DSETP": dsetp,
    "HSETP2": hsetp2,
    "P2R": p2r,
    "R2P": r2p,
}
