"""Operands back to text: the inverse of `gemmsim.isa.parse.parse_operand`, for tests that nothing gets lost."""

from __future__ import annotations

from gemmsim.isa.program import ZERO, Operand, OperandKind


def render(operand: Operand) -> str:
    """As nvdisasm prints the operand, less `.reuse`; branch targets as byte offsets. `parse_operand` reads it back."""
    o = operand
    if o.kind is OperandKind.IMMEDIATE:
        if o.name == "set":
            return "{" + ",".join(str(bit) for bit in reversed(range(o.value.bit_length())) if o.value >> bit & 1) + "}"
        return o.name or _hex(o.value)
    if o.kind is OperandKind.TARGET:
        return f"`({o.value:#x})"
    if o.kind is OperandKind.SPECIAL:
        return o.name
    special = {OperandKind.CONSTANT: _render_constant, OperandKind.ADDRESS: _render_address}
    body = special.get(o.kind, _render_register)(o)
    if o.absolute:
        name, dot, suffix = body.partition(".") if o.kind is not OperandKind.CONSTANT else body.rpartition(".")
        body = f"|{name}|{dot}{suffix}" if dot else f"|{body}|"
    complement = "!" if o.kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE) else "~"
    return "-" * o.negate + complement * o.invert + body


def _hex(value: int) -> str:
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


def _register(kind: OperandKind, index: int) -> str:
    zero = "T" if kind in (OperandKind.PREDICATE, OperandKind.UNIFORM_PREDICATE) else "Z"
    return f"{kind.value}{zero if index == ZERO else index}"


def _render_register(o: Operand) -> str:
    return _register(o.kind, o.index) + ("." + o.suffix if o.suffix else "")


def _render_constant(o: Operand) -> str:
    bank = _register(OperandKind.UNIFORM_REGISTER, o.bank) if o.name else f"{o.bank:#x}"
    terms = [_register(OperandKind.REGISTER, o.index)] if o.index != ZERO else []
    terms += [_register(OperandKind.UNIFORM_REGISTER, o.uniform)] if o.uniform != ZERO else []
    terms += [_hex(o.value)] if o.value or not terms else []
    return f"{o.name or 'c'}[{bank}][{'+'.join(terms)}]" + ("." + o.suffix if o.suffix else "")


def _render_address(o: Operand) -> str:
    descriptor = f"{o.name}[{_register(OperandKind.UNIFORM_REGISTER, o.bank)}]" if o.name else ""
    base = _register(OperandKind.REGISTER, o.index) if o.index != ZERO or o.wide or o.scale != 1 or o.suffix else ""
    if base:
        base += f".{o.suffix}" * bool(o.suffix) + f".X{o.scale}" * (o.scale != 1) + ".64" * o.wide
    terms = [base] if base else []
    terms += [_register(OperandKind.UNIFORM_REGISTER, o.uniform)] if o.uniform != ZERO else []
    if o.name == "gdesc" and not terms and not o.value:  # a matrix descriptor is no address: nothing follows it
        return descriptor
    terms += [_hex(o.value)] if o.value or not terms else []
    return f"{descriptor}[{'+'.join(terms)}]"
