"""Defines what double precision opcodes compute: DFMA, DADD, DMUL."""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import f64, op

CANONICAL_NAN = 0xFFF8000000000000  # of double operations (PTX ISA: NaN payloads are unspecified; seen on sm_90)


def canonical(x: Lanes) -> Lanes:
    bits = x.bitcast("u64")
    return x.ne(x).select(bits.lift(CANONICAL_NAN), bits).bitcast("f64")


@op
def dadd(a: f64, b: f64) -> f64:
    return canonical(a + b)


@op
def dmul(a: f64, b: f64) -> f64:
    return canonical(a * b)


@op
def dfma(a: f64, b: f64, c: f64) -> f64:
    return canonical(a.fma(b, c))
