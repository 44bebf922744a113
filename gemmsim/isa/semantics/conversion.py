"""Conversions: I2F, F2I, F2F, F2FP."""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.half import brain_to_single, half_to_single, single_to_brain, single_to_half
from gemmsim.isa.semantics.registry import f32, f64, imm, op, s32, u32


@op
def i2f_s32(a: s32) -> f32:
    return a.convert("f32")


@op
def i2f_u32(a: u32) -> f32:
    return a.convert("f32")


@op
def i2f_f64_s32(a: s32) -> f64:
    return a.convert("f64")


@op
def i2f_f64_u32(a: u32) -> f64:
    return a.convert("f64")


def _to_int(x: Lanes, low: float, high: float, type_: str) -> Lanes:
    """Clamped conversion of an already integral float64; NaN gives 0."""
    clamped = (x > low).select(x, x.lift(low))
    clamped = (clamped < high).select(clamped, x.lift(high))
    return x.ne(x).select(x.lift(0.0), clamped).convert("s64").bitcast("u64").convert("u32").bitcast(type_)


def _rounded(x: Lanes, mode: Lanes) -> Lanes:
    """mode 0 nearest even, 1 floor, 2 ceiling, 3 truncate."""
    nearest, down = x.function("rint"), x.function("floor")
    up, cut = x.function("ceil"), x.function("trunc")
    return mode.eq(0).select(nearest, mode.eq(1).select(down, mode.eq(2).select(up, cut)))


@op
def f2i_s32(a: f32, mode: imm) -> s32:
    return _to_int(_rounded(a.convert("f64"), mode), -(2.0**31), 2.0**31 - 1, "s32")


@op
def f2i_u32(a: f32, mode: imm) -> u32:
    return _to_int(_rounded(a.convert("f64"), mode), 0.0, 2.0**32 - 1, "u32")


@op
def f64_to_f32(a: f64) -> f32:
    return a.convert("f32")


@op
def f32_to_f64(a: f32) -> f64:
    return a.convert("f64")


@op
def f32_to_f16(a: f32) -> u32:
    return single_to_half(a)


@op
def f16_to_f32(a: u32, high: imm) -> f32:
    return half_to_single(high.ne(0).select(a >> 16, a & 0xFFFF))


@op
def bf16_to_f32(a: u32, high: imm) -> f32:
    return brain_to_single(high.ne(0).select(a >> 16, a & 0xFFFF))


@op
def pack_f16(high: f32, low: f32) -> u32:
    """F2FP.F16.F32.PACK_AB."""
    return (single_to_half(high) << 16) | single_to_half(low)


@op
def pack_bf16(high: f32, low: f32) -> u32:
    return (single_to_brain(high) << 16) | single_to_brain(low)
