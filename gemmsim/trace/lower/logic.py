"""Lowers bitwise logic, byte permutes, choices, comparisons and predicates, on vector and uniform registers."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.isa.semantics.logic import COMMON_TABLES
from gemmsim.isa.semantics.predicate import AND, OR, XOR
from gemmsim.trace.lower.context import ALL, Context, Source, is_predicate, is_uniform
from gemmsim.trace.lower.half import half_source

_BOOLEAN = {"AND": AND, "OR": OR, "XOR": XOR}


def lop3(context: Context) -> None:
    """Lower LOP3.LUT [P,] Rd, Ra, Rb, Rc, table[, Q]. P becomes true where a bit of the result is set or Q is true;
    with .PAND where both hold."""
    both = "PAND" in context.modifiers("LUT", "PAND")
    operands = list(context.instruction.operands)
    predicate = operands.pop(0) if is_predicate(operands[0]) else None
    combined = operands.pop() if is_predicate(operands[-1]) else None
    if combined and combined.index == ZERO and combined.invert != both:
        combined = None  # neither "or !PT" nor "and PT" changes anything
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
        together = (context.scratch(0), context.predicate(combined), context.false)
        context.emit("plop3", (flag, context.sink), together, (0xC0 if both else 0xFC, 0), uniform=uniform)


def plop3(context: Context) -> None:
    context.modifiers("LUT")
    p, q, a, b, c, first, second = context.instruction.operands
    sources = tuple(_truth(context, o) for o in (a, b, c))
    results = (context.result(p), context.result(q))
    context.emit("plop3", results, sources, (first.value, second.value), uniform=is_uniform(p))


def _truth(context: Context, operand: Operand) -> Source:
    """Make the source of a predicate, or of a register's sign bit (R0.SIGN), which is tested as a predicate is."""
    if operand.suffix != "SIGN":
        return context.predicate(operand)
    return Source(context.row(operand), ALL, ALL if operand.negate or operand.invert else 0)


# The selectors that stand for a selector of 0, 1, 2 and 3 in PRMT's modes (PTX ISA, prmt).
_SELECTORS = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def prmt(context: Context) -> None:
    modifiers = context.modifiers(*_SELECTORS)
    d, a, selector, c = context.instruction.operands
    chosen = context.bits(selector)
    for mode in modifiers:
        zero, one, two, three = _SELECTORS[mode]
        chosen = context.compute(0, "selector_of_mode", (chosen,), (zero | one << 16, two | three << 16))
    context.write(d, "prmt", (context.bits(a), chosen, context.bits(c)))


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


def _singles(context: Context, operands: tuple[Operand, ...]) -> list[Source]:
    """Make the sources of a comparison of float32; with .FTZ subnormal numbers are flushed first."""
    sources = [context.single(o) for o in operands]
    if "FTZ" in context.instruction.modifiers:
        sources = [context.compute(i, "flush_f32", (source,)) for i, source in enumerate(sources)]
    return sources


def fsetp(context: Context) -> None:
    context.modifiers(*_FLOAT, "FTZ", *_BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    _compare_floats(context, "f32", (context.result(p), context.result(q)), _singles(context, (a, b)), third)


def fset(context: Context) -> None:
    """FSET gives all ones where a comparison holds or, with .BF, 1.0; else 0."""
    modifiers = context.modifiers(*_FLOAT, "FTZ", *_BOOLEAN, "BF")
    d, a, b, third = context.instruction.operands
    holds = context.scratch(4)
    _compare_floats(context, "f32", (holds.row, context.sink), _singles(context, (a, b)), third)
    one = Source(context.literal(0x3F800000 if "BF" in modifiers else ALL))
    context.write(d, "sel", (one, context.false, holds))


def dsetp(context: Context) -> None:
    modifiers = context.modifiers(*_FLOAT, *_BOOLEAN, "MIN", "MAX")
    p, q, a, b, third = context.instruction.operands
    results = (context.result(p), context.result(q))
    sources = [context.double(a), context.double(b)]
    if modifiers & {"MIN", "MAX"}:
        if third.index != ZERO or third.invert:
            raise context.unsupported("predicate operand")
        context.emit("dsetp_minmax", results, tuple(sources), (int("MIN" in modifiers),), uniform=is_uniform(p))
    else:
        _compare_floats(context, "f64", results, sources, third)


def _halves(context: Context, operands: tuple[Operand, ...]) -> list[Source]:
    """Make the sources of a comparison of packed halves, in temporary rows from 2 on; with .FTZ they are flushed."""
    sources = [half_source(context, o, 2 + i) for i, o in enumerate(operands)]
    if "FTZ" in context.instruction.modifiers:
        sources = [context.compute(2 + i, "flush_f16", (source,)) for i, source in enumerate(sources)]
    return sources


def _compare_half(context: Context, result: int, sources: list[Source], third: Operand, high: int) -> None:
    """Compare the low or the high halves of packed sources, and write the predicate to row `result`."""
    widen = "bf16_to_f32" if "BF16_V2" in context.instruction.modifiers else "f16_to_f32"
    wide = [context.compute(i, widen, (source,), (high,)) for i, source in enumerate(sources)]
    _compare_floats(context, "f32", (result, context.sink), wide, third)


def hsetp2(context: Context) -> None:
    """HSETP2 P, Q, a, b, C compares the low halves for P and the high halves for Q, after the operands' swizzles."""
    context.modifiers(*_FLOAT, "BF16_V2", "FTZ", *_BOOLEAN)
    p, q, a, b, third = context.instruction.operands
    sources = _halves(context, (a, b))
    # The first result waits in a temporary row, since the third predicate may be the register that it goes to.
    low = context.scratch(4)
    _compare_half(context, low.row, sources, third, 0)
    if context.result(q) != context.sink:
        _compare_half(context, context.result(q), sources, third, 1)
    context.emit("plop3", (context.result(p), context.sink), (low, context.true, context.true), (0xF0, 0))


def hset2(context: Context) -> None:
    """HSET2 gives for each half all ones where a comparison holds or, with .BF, 1.0; else 0."""
    modifiers = context.modifiers(*_FLOAT, "BF16_V2", "FTZ", *_BOOLEAN, "BF")
    d, a, b, third = context.instruction.operands
    sources = _halves(context, (a, b))
    holds = [context.scratch(4), context.scratch(5)]
    for half in (0, 1):
        _compare_half(context, holds[half].row, sources, third, half)
    one = 0x3F80 if "BF16_V2" in modifiers else 0x3C00
    context.write(d, "set_halves", tuple(holds), (one if "BF" in modifiers else 0xFFFF,))


def _compare_floats(
    context: Context, type_: str, results: tuple[int, int], sources: list[Source], third: Operand
) -> None:
    """Compare two floats of `type_` as the modifiers ask, and write both predicates to the rows `results`."""
    comparison = next(m for m in context.instruction.modifiers if m in _FLOAT)
    name, swap, invert = _FLOAT[comparison]
    a, b = reversed(sources) if swap else sources
    immediates = (int(invert), _combination(context))
    operands = (a, b, context.predicate(third))
    uniform = is_uniform(context.instruction.operands[0])
    context.emit(f"setp_{name}_{type_}", results, operands, immediates, uniform=uniform)


_BYTES = {"B0": 0, "B1": 8, "B2": 16, "B3": 24}  # first bit of a byte of a register


def p2r(context: Context) -> None:
    """P2R Rd, PR, Ra, mask sets the bits in `mask` to the predicates; the other bits are those of Ra. With .B1 to .B3
    the predicates go to the byte of that number. UP2UR does the same with uniform ones."""
    modifiers = context.modifiers(*_BYTES)
    first = next((_BYTES[m] for m in modifiers), 0)
    d, _, *given = context.instruction.operands
    a, mask = given or (Operand(OperandKind.REGISTER), Operand(OperandKind.IMMEDIATE, value=0x7F))
    predicates = _predicates(context, mask)
    context.write(d, "mov", (context.bits(a),))
    for bit in range(7):
        if mask.value >> bit & 1:
            source = context.bits(Operand(d.kind, d.index))
            context.write(d, "with_bit", (source, Source(predicates + bit)), (first + bit,))


def _predicates(context: Context, mask: Operand) -> int:
    """Return the row of the first predicate, uniform or not, of an instruction whose operand `mask` chooses some."""
    if mask.kind != OperandKind.IMMEDIATE:
        raise context.unsupported("mask in a register")
    return context.uniform_predicate_base if context.instruction.opcode[0] == "U" else context.predicate_base


def r2p(context: Context) -> None:
    """R2P PR, Ra[.B1], mask sets the predicates in `mask` to bits of Ra, or of one of its bytes; UR2UP likewise."""
    modifiers = context.modifiers(*_BYTES)
    _, a, mask = context.instruction.operands
    if a.negate or a.absolute or a.suffix not in ("", *_BYTES):
        raise context.unsupported("operand form")
    first = _BYTES.get(a.suffix, 0) + next((_BYTES[m] for m in modifiers), 0)
    source = Source(context.row(a), ALL, ALL if a.invert else 0)
    predicates, uniform = _predicates(context, mask), is_uniform(a)
    for bit in range(7):
        if mask.value >> bit & 1:
            context.emit("bit_of", (predicates + bit,), (source,), (first + bit,), uniform=uniform)
