"""LOP3, PLOP3, PRMT, SEL, ISETP and their uniform forms."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand
from gemmsim.isa.semantics.logic import COMMON_TABLES
from gemmsim.isa.semantics.predicate import AND, OR, XOR
from gemmsim.trace.lower.context import Context, is_predicate, is_uniform
from gemmsim.trace.lower.integer import check_modifiers

BOOLEAN = {"AND": AND, "OR": OR, "XOR": XOR}
_COMPARISONS = ("LT", "LE", "GT", "GE", "EQ", "NE")
_FLOAT_COMPARISONS = (*_COMPARISONS, "LTU", "LEU", "GTU", "GEU", "EQU", "NEU", "NUM", "NAN")


def lop3(context: Context) -> None:
    check_modifiers(context, "LUT")
    operands = list(context.instruction.operands)
    predicate = operands.pop(0) if is_predicate(operands[0]) else None
    if is_predicate(operands[-1]):
        combined = operands.pop()
        if combined.index != ZERO or not combined.invert:
            raise context.unsupported("combining predicate")
    d, a, b, c, table = operands
    results = (context.result(d), context.result(predicate) if predicate else context.sink)
    sources = tuple(context.bits(o) for o in (a, b, c))
    uniform = is_uniform(d) or bool(predicate and is_uniform(predicate))
    if table.value in COMMON_TABLES:
        context.emit(f"lop3_{table.value:02x}", results, sources, uniform=uniform)
    else:
        context.emit("lop3", results, sources, (table.value,), uniform=uniform)


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


def setp_operands(context: Context) -> tuple[Operand, Operand, Operand, Operand, list[Operand]]:
    p, q, a, b, *read = context.instruction.operands
    return p, q, a, b, read


def isetp(context: Context) -> None:
    modifiers = check_modifiers(context, *_COMPARISONS, "U32", "S32", "U64", "S64", "AND", "OR", "XOR", "EX")
    comparison = next(m for m in context.instruction.modifiers if m in _COMPARISONS)
    how = next((BOOLEAN[m] for m in context.instruction.modifiers if m in BOOLEAN), AND)
    kind = next((m for m in ("U32", "S64", "U64") if m in modifiers), "S32").lower()
    p, q, a, b, read = setp_operands(context)
    if a.negate or b.negate:
        raise context.unsupported("negated operand")
    operand = context.wide if kind.endswith("64") else context.bits
    results = (context.result(p), context.result(q))
    if "EX" in modifiers:
        strict = {"LE": "LT", "GE": "GT"}.get(comparison, comparison)
        kind = "u32" if strict in ("EQ", "NE") else kind
        third, low = read
        sources = (operand(a), operand(b), context.predicate(third), context.predicate(low))
        context.emit(f"setp_ex_{strict.lower()}_{kind}", results, sources, (how,), uniform=is_uniform(p))
        return
    sources3 = (operand(a), operand(b), context.predicate(read[0]))
    context.emit(f"setp_{comparison.lower()}_{kind}", results, sources3, (how,), uniform=is_uniform(p))


def fsetp(context: Context) -> None:
    modifiers = check_modifiers(context, *_FLOAT_COMPARISONS, "FTZ", "AND", "OR", "XOR")
    comparison = next(m for m in context.instruction.modifiers if m in _FLOAT_COMPARISONS)
    how = next((BOOLEAN[m] for m in context.instruction.modifiers if m in BOOLEAN), AND)
    p, q, a, b, (third,) = setp_operands(context)
    sources = [context.single(a), context.single(b)]
    if "FTZ" in modifiers:
        for i, source in enumerate(sources):
            row = context.temporary + i
            context.emit("flush_f32", (row,), (source,), uniform=True)
            sources[i] = type(source)(row)
    results = (context.result(p), context.result(q))
    name = f"setp_{comparison.lower()}_f32"
    context.emit(name, results, (*sources, context.predicate(third)), (how,), uniform=is_uniform(p))


def dsetp(context: Context) -> None:
    check_modifiers(context, *_FLOAT_COMPARISONS, "AND", "OR", "XOR")
    comparison = next(m for m in context.instruction.modifiers if m in _FLOAT_COMPARISONS)
    how = next((BOOLEAN[m] for m in context.instruction.modifiers if m in BOOLEAN), AND)
    p, q, a, b, (third,) = setp_operands(context)
    sources = (context.double(a), context.double(b), context.predicate(third))
    context.emit(f"setp_{comparison.lower()}_f64", (context.result(p), context.result(q)), sources, (how,))


def p2r(context: Context) -> None:
    """P2R Rd, PR, Ra, mask: the predicates as bits; others of Ra kept."""
    check_modifiers(context)
    d, _, a, mask = context.instruction.operands
    context.emit("mov", (context.result(d),), (context.bits(a),))
    for bit in range(7):
        if mask.value >> bit & 1:
            source = context.bits(Operand(d.kind, d.index))
            p = type(source)(context.predicate_base + bit)
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
    "P2R": p2r,
    "R2P": r2p,
}
