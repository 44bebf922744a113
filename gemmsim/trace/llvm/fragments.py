"""Multiplies matrix fragments as vectors: registers are converted to float64, multiplied, and converted back.

All shapes follow one rule (`trace.engine.matrix`): with lane 4 g + t, the 32 lanes of one element of one register hold
eight rows (of A and C) or columns (of B), four neighbours in k each. So an element of A stays as it is, 32 numbers in
the order of lanes. An element of B is turned, so that the eight columns of each k lie side by side. Two registers of C,
interleaved, are eight rows of eight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from llvmlite import ir

from gemmsim.isa.semantics.half import round_to_odd, single_to_half
from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, alloca_once, for_range, instruction
from gemmsim.trace.llvm.lane_operations import VECTOR, LlvmLanes, declare
from gemmsim.trace.micro import S4, S8, U4, U8

_I32, _I64, _F64 = ir.IntType(32), ir.IntType(64), ir.DoubleType()
_ROW = ir.VectorType(_F64, 8)
_WORDS, _SINGLES, _DOUBLES = VECTOR["u32"], VECTOR["f32"], VECTOR["f64"]
# The number of lane 4 g + t goes to place 8 t + g.
_TURNED = [4 * g + t for t in range(4) for g in range(8)]
# Columns 2 t and 2 t + 1 of row g come from lane 4 g + t of the first and of the second register.
_TOGETHER = [32 * j + lane for lane in range(32) for j in range(2)]


def words_of(builder: Any, rows: Any, number: int = 0) -> Any:
    """Load the 32 words of the row that is `number` rows after the row at the address `rows`."""
    address = builder.add(rows, ir.Constant(_I64, 128 * number))
    return builder.load(builder.inttoptr(address, _WORDS.as_pointer()), align=4)


def _put(builder: Any, to: Any, values: Any) -> None:
    builder.store(values, builder.inttoptr(to, values.type.as_pointer()), align=8)


def _splat(type_: Any, value: int | float) -> Any:
    return ir.Constant(type_, [value] * type_.count)


def half_number(builder: Any, bits: Any) -> Any:
    """Convert IEEE binary16, in the low half of each word, to float32, exactly.

    Once its bits are shifted into place, the exponent is 112 too small, which is mended. Infinities and NaN, whose
    exponent is all ones, are treated apart.
    """
    magnitude = builder.shl(builder.and_(bits, _splat(_WORDS, 0x7FFF)), _splat(_WORDS, 13))
    scaled = builder.fmul(builder.bitcast(magnitude, _SINGLES), _splat(_SINGLES, 2.0**112))
    top = builder.or_(magnitude, _splat(_WORDS, 0x7F800000))
    special = builder.icmp_unsigned(">=", magnitude, _splat(_WORDS, 0x7C00 << 13))
    finite = builder.bitcast(scaled, _WORDS)
    sign = builder.shl(builder.and_(bits, _splat(_WORDS, 0x8000)), _splat(_WORDS, 16))
    return builder.bitcast(builder.or_(builder.select(special, top, finite), sign), _SINGLES)


def _byte(builder: Any, bits: Any, kind: str) -> Any:
    """Convert the float in the low byte of each word, "e5m2" or "e4m3", to float32, exactly.

    The first is the upper half of a binary16. The second becomes one that is 2**8 too small, since its exponent has
    another bias; it has no infinities, and its one magnitude that is no number has all bits set.
    """
    if kind == "e5m2":
        return half_number(builder, builder.shl(bits, _splat(_WORDS, 8)))
    magnitude, sign = builder.and_(bits, _splat(_WORDS, 0x7F)), builder.and_(bits, _splat(_WORDS, 0x80))
    half = builder.or_(builder.shl(magnitude, _splat(_WORDS, 7)), builder.shl(sign, _splat(_WORDS, 8)))
    scaled = builder.fmul(half_number(builder, half), _splat(_SINGLES, 2.0**8))
    number = builder.icmp_unsigned("<", magnitude, _splat(_WORDS, 0x7F))
    return builder.select(number, scaled, _splat(_SINGLES, math.nan))


def singles(builder: Any, words: Any, kind: str) -> list[Any]:
    """Convert a register's floats; returns for each place in the word the exact <32 x float> of all lanes."""
    if kind == "tf32":  # the hardware reads 19 bits of the 32
        return [builder.bitcast(builder.and_(words, _splat(_WORDS, 0xFFFFE000)), _SINGLES)]
    if kind == "bf16":
        low, high = builder.shl(words, _splat(_WORDS, 16)), builder.and_(words, _splat(_WORDS, 0xFFFF0000))
        return [builder.bitcast(low, _SINGLES), builder.bitcast(high, _SINGLES)]
    if kind == "f16":
        return [half_number(builder, words), half_number(builder, builder.lshr(words, _splat(_WORDS, 16)))]
    return [_byte(builder, builder.lshr(words, _splat(_WORDS, 8 * j)), kind) for j in range(4)]


def _elements(builder: Any, words: Any, kind: str) -> list[Any]:
    """Convert a register's integers; returns for each place in the word the <32 x double> of all lanes."""
    found, bits = [], int(kind[1:])
    for j in range(32 // bits):
        left = builder.shl(words, _splat(_WORDS, 32 - bits - bits * j))
        shift = builder.ashr if kind[0] == "s" else builder.lshr
        found.append(builder.sitofp(shift(left, _splat(_WORDS, 32 - bits)), _DOUBLES))
    return found


def turned(builder: Any, values: Any) -> Any:
    """Put the 32 values of an element of B in the order in which the eight columns of each k lie side by side."""
    return builder.shuffle_vector(values, values, ir.Constant(_WORDS, _TURNED))


def by_format(kinds: Mapping[int, str], write: Callable[..., None]) -> Any:
    """Make body(builder, format, to, rows), which does what `write(builder, kind, to, rows)` does for that format."""

    def body(builder: Any, format_: Any, to: Any, rows: Any) -> None:
        end = builder.append_basic_block("written")
        choice = builder.switch(format_, end)
        for number, kind in kinds.items():
            block = builder.append_basic_block(kind)
            choice.add_case(ir.Constant(_I64, number), block)
            builder.position_at_end(block)
            write(builder, kind, to, rows)
            builder.branch(end)
        builder.position_at_end(end)

    return body


def _doubles(builder: Any, rows: Any) -> Any:
    """Load the float64 numbers of the register pair whose rows begin at the address `rows`, one for each lane."""
    wide = VECTOR["u64"]
    low, high = (builder.zext(words_of(builder, rows, i), wide) for i in range(2))
    return builder.bitcast(builder.or_(low, builder.shl(high, _splat(wide, 32))), _DOUBLES)


_KINDS = {S8: "s8", U8: "u8", S4: "s4", U4: "u4"}


def _spreader(turns: bool) -> Any:
    """Make write(builder, kind, to, rows), which writes the elements of a register to the address `to` as float64.

    Each place in the word takes 256 bytes: the 32 lanes in their order (for A), or turned (for B).
    """

    def write(builder: Any, kind: str, to: Any, rows: Any) -> None:
        elements = [_doubles(builder, rows)] if kind == "f64" else _elements(builder, words_of(builder, rows), kind)
        for j, element in enumerate(elements):
            place = builder.add(to, ir.Constant(_I64, 256 * j))
            _put(builder, place, turned(builder, element) if turns else element)

    return write


def _of_doubles(turns: bool) -> Any:
    write = _spreader(turns)
    return instruction(NOTHING, ADDRESS, ADDRESS)(lambda builder, to, rows: write(builder, "f64", to, rows))


spread = instruction(NOTHING, INDEX, ADDRESS, ADDRESS)(by_format(_KINDS, _spreader(False)))
turn = instruction(NOTHING, INDEX, ADDRESS, ADDRESS)(by_format(_KINDS, _spreader(True)))
spread_f64, turn_f64 = _of_doubles(False), _of_doubles(True)


def _together(builder: Any, first: Any, second: Any) -> Any:
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_I32, 64), _TOGETHER))


def _apart(builder: Any, values: Any) -> list[Any]:
    places = ([2 * lane + j for lane in range(32)] for j in range(2))
    return [builder.shuffle_vector(values, values, ir.Constant(_WORDS, place)) for place in places]


def _accumulator(kind: str) -> Any:
    """Make load(to, rows), which writes two registers of C (of halves, one) to the address `to`, as eight rows of eight
    float64."""

    def load(builder: Any, to: Any, rows: Any) -> None:
        if kind == "f64":
            _put(
                builder,
                to,
                _together(
                    builder, _doubles(builder, rows), _doubles(builder, builder.add(rows, ir.Constant(_I64, 256)))
                ),
            )
            return
        wide = ir.VectorType(_F64, 64)
        if kind == "f16":  # one register holds both columns
            halves = words_of(builder, rows)
            both = (half_number(builder, halves), half_number(builder, builder.lshr(halves, _splat(_WORDS, 16))))
            _put(builder, to, builder.fpext(_together(builder, *both), wide))
            return
        values = _together(builder, words_of(builder, rows), words_of(builder, rows, 1))
        if kind == "s32":
            _put(builder, to, builder.sitofp(values, wide))
        else:
            _put(builder, to, builder.fpext(builder.bitcast(values, ir.VectorType(ir.FloatType(), 64)), wide))

    return instruction(NOTHING, ADDRESS, ADDRESS)(load)


load_f32, load_f16, load_s32, load_f64 = (_accumulator(kind) for kind in ("f32", "f16", "s32", "f64"))


def _result(kind: str) -> Any:
    """Make store(rows, from), the reverse of `load`: it writes eight rows of eight float64 to two registers of C.

    The numbers are rounded to nearest (f32 and f16), wrapped (s32) or saturated.
    """

    def store(builder: Any, rows: Any, source: Any) -> None:
        wide = ir.VectorType(_F64, 64)
        values = builder.load(builder.inttoptr(source, wide.as_pointer()), align=8)
        if kind == "f16":
            low, high = (half_bits(builder, part) for part in _apart(builder, values))
            word = builder.or_(low, builder.shl(high, _splat(_WORDS, 16)))
            builder.store(word, builder.inttoptr(rows, _WORDS.as_pointer()), align=4)
            return
        for j, part in enumerate(_apart(builder, values)):
            if kind == "f64":
                bits = builder.bitcast(part, VECTOR["u64"])
                words = [
                    builder.trunc(bits, _WORDS),
                    builder.trunc(builder.lshr(bits, _splat(VECTOR["u64"], 32)), _WORDS),
                ]
            elif kind == "f32":
                words = [builder.bitcast(builder.fptrunc(part, _SINGLES), _WORDS)]
            else:
                words = [
                    builder.trunc(
                        builder.fptosi(_bounded(builder, part) if kind == "saturated" else part, VECTOR["s64"]), _WORDS
                    )
                ]
            for i, word in enumerate(words):
                address = builder.add(rows, ir.Constant(_I64, 128 * (len(words) * j + i)))
                builder.store(word, builder.inttoptr(address, _WORDS.as_pointer()), align=4)

    return instruction(NOTHING, ADDRESS, ADDRESS)(store)


def half_bits(builder: Any, values: Any) -> Any:
    """Round 32 float64 to binary16, to nearest even, and return their bits in the low half of words."""
    lanes = LlvmLanes(builder, "f64", values)
    rounded = single_to_half(round_to_odd(lanes, lanes.lift(0.0)))
    assert isinstance(rounded, LlvmLanes)
    return rounded.value


def _bounded(builder: Any, values: Any) -> Any:
    for limit, beyond in ((-(2.0**31), "<"), (2.0**31 - 1, ">")):
        bound = _splat(_DOUBLES, limit)
        values = builder.select(builder.fcmp_ordered(beyond, values, bound), bound, values)
    return values


store_f32, store_f16, store_s32 = (_result(kind) for kind in ("f32", "f16", "s32"))
store_saturated, store_f64 = _result("saturated"), _result("f64")


_ROWS_AT_ONCE = 4  # of C: as many as hide the latency of an addition


def _product(elements: int) -> Any:
    """Make product(c, a, b, steps, stride), which adds eight rows of A times B to eight rows of C, in the order of k.

    elements   number of elements in one word of a register of A or B
    steps      number of registers of A, and of B, that take part
    stride     bytes from one register of A to the next
    """

    def product(builder: Any, c: Any, a: Any, b: Any, steps: Any, stride: Any) -> None:
        fma = declare(builder.module, "llvm.fma.v8f64", _ROW, [_ROW] * 3)
        for first in range(0, 8, _ROWS_AT_ONCE):
            rows = range(first, first + _ROWS_AT_ONCE)
            places = [builder.add(c, ir.Constant(_I64, 64 * row)) for row in rows]
            totals = [alloca_once(builder, _ROW) for _ in rows]
            for place, total in zip(places, totals, strict=True):
                builder.store(builder.load(builder.inttoptr(place, _ROW.as_pointer()), align=8), total)
            with for_range(builder, steps) as loop:
                step_a = builder.add(a, builder.mul(loop.index, stride))
                step_b = builder.add(b, builder.mul(loop.index, ir.Constant(_I64, 256 * elements)))
                for t in range(4):
                    for j in range(elements):
                        at = builder.add(step_b, ir.Constant(_I64, 256 * j + 64 * t))
                        right = builder.load(builder.inttoptr(at, _ROW.as_pointer()), align=8)
                        for row, total in zip(rows, totals, strict=True):
                            at = builder.add(step_a, ir.Constant(_I64, 256 * j + 8 * (4 * row + t)))
                            left = builder.load(builder.inttoptr(at, _F64.as_pointer()))
                            value = builder.call(fma, [_spread_row(builder, left), right, builder.load(total)])
                            builder.store(value, total)
            for place, total in zip(places, totals, strict=True):
                builder.store(builder.load(total), builder.inttoptr(place, _ROW.as_pointer()), align=8)

    return instruction(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX)(product)


def _spread_row(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(_ROW, ir.Undefined), scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, ir.Constant(_ROW, ir.Undefined), ir.Constant(ir.VectorType(_I32, 8), None))


product_1, product_4, product_8 = (_product(elements) for elements in (1, 4, 8))
