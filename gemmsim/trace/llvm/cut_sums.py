"""Has the vector code of sums that are cut as tensor cores cut them (`gemmsim.trace.engine.cut_sum`).

A factor's elements lie in blocks, one for each place in a register's word: 32 numbers, then their 32 exponents (int32).
The numbers are float32, or float64 where an exponent takes eight bits, so that products neither overflow nor underflow.
C is 64 float64, eight rows of eight, and then their exponents.

Infinities have an exponent of their own, SPECIAL, and the number 1 or -1. NaN has it, too, and the number 0. So the
number times infinity is what they stand for, and what is multiplied is always finite. An element of a sparse A that is
not there has the number 0 and the exponent ABSENT.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir

from gemmsim.native.parts import ADDRESS, INDEX, NOTHING, alloca_once, for_range, instruction
from gemmsim.trace.llvm import fragments
from gemmsim.trace.llvm.lane_operations import VECTOR, declare
from gemmsim.trace.micro import BF16, E4M3, E5M2, F16, TF32

_I32, _I64, _F32, _F64 = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.DoubleType()
_WORDS, _SINGLES, _DOUBLES = VECTOR["u32"], VECTOR["f32"], VECTOR["f64"]
_ROW, _ROW_EXPONENTS = ir.VectorType(_F64, 8), ir.VectorType(_I32, 8)
C_EXPONENTS = 512  # bytes from the numbers of C to their exponents
NARROW_BLOCK, WIDE_BLOCK = 256, 384  # bytes of a block, with float32 and with float64
_LEAST = -126  # exponent of zero, and of subnormal float32, bfloat16 and TF32
_SUBNORMAL = {"f16": -14, "e5m2": -14, "e4m3": -6}  # the exponent of subnormal numbers of other types
SPECIAL, ABSENT = 1024, -4096
_SPECIAL_FROM = 500  # exponents of products from here on have a special factor
_KINDS = {F16: "f16", BF16: "bf16", TF32: "tf32", E4M3: "e4m3", E5M2: "e5m2"}
_WIDE = ("bf16", "tf32")


def _splat(type_: Any, value: int | float) -> Any:
    return ir.Constant(type_, [value] * type_.count)


def _spread(builder: Any, scalar: Any, type_: Any) -> Any:
    one = builder.insert_element(ir.Constant(type_, ir.Undefined), scalar, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, type_.count), None)
    return builder.shuffle_vector(one, ir.Constant(type_, ir.Undefined), zeros)


def _larger(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.icmp_signed(">", x, y), x, y)


def _at(builder: Any, address: Any, offset: int) -> Any:
    return builder.add(address, ir.Constant(_I64, offset)) if offset else address


def _load(builder: Any, address: Any, type_: Any) -> Any:
    return builder.load(builder.inttoptr(address, type_.as_pointer()), align=4)


def _put(builder: Any, address: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=4)


def _exponent(builder: Any, single: Any, kind: str) -> Any:
    bits = builder.bitcast(single, _WORDS)
    field = builder.and_(builder.lshr(bits, _splat(_WORDS, 23)), _splat(_WORDS, 255))
    least = _splat(_WORDS, _SUBNORMAL.get(kind, _LEAST))
    exponent = _larger(builder, builder.sub(field, _splat(_WORDS, 127)), least)
    zero = builder.icmp_unsigned("==", field, _splat(_WORDS, 0))
    exponent = builder.select(zero, _splat(_WORDS, _LEAST), exponent)
    special = builder.icmp_unsigned("==", field, _splat(_WORDS, 255))
    return builder.select(special, _splat(_WORDS, SPECIAL), exponent)


def _finite(builder: Any, single: Any) -> Any:
    """Put 1, -1 and 0 in the place of the infinities and NaN."""
    bits = builder.bitcast(single, _WORDS)
    magnitude = builder.and_(bits, _splat(_WORDS, 0x7FFFFFFF))
    sign = builder.and_(bits, _splat(_WORDS, 0x80000000))
    infinite = builder.icmp_unsigned("==", magnitude, _splat(_WORDS, 0x7F800000))
    other = builder.icmp_unsigned(">", magnitude, _splat(_WORDS, 0x7F800000))
    bits = builder.select(infinite, builder.or_(sign, _splat(_WORDS, 0x3F800000)), bits)
    return builder.bitcast(builder.select(other, _splat(_WORDS, 0), bits), _SINGLES)


def _terms(turned: bool) -> Any:
    """Make terms(format, to, register), which writes a register's elements as blocks to the address `to`: in the order
    of lanes (for A), or turned (for B)."""

    def write(builder: Any, kind: str, to: Any, rows: Any) -> None:
        wide = kind in _WIDE
        for j, single in enumerate(fragments.singles(builder, fragments.words_of(builder, rows), kind)):
            number = _finite(builder, single)
            parts = [builder.fpext(number, _DOUBLES) if wide else number, _exponent(builder, single, kind)]
            if turned:
                parts = [fragments.turned(builder, part) for part in parts]
            block = (WIDE_BLOCK if wide else NARROW_BLOCK) * j
            _put(builder, _at(builder, to, block), parts[0])
            _put(builder, _at(builder, to, block + (256 if wide else 128)), parts[1])

    return instruction(NOTHING, INDEX, ADDRESS, ADDRESS)(fragments.by_format(_KINDS, write))


spread_terms, turn_terms = _terms(False), _terms(True)


@instruction(NOTHING, ADDRESS, INDEX)
def put_exponents(builder: Any, c: Any, least: Any) -> None:
    """put_exponents(c, least): write the exponents of C; that of a subnormal number is `least`."""
    numbers, exponents = ir.VectorType(_I64, 64), ir.VectorType(_I32, 64)
    bits = _load(builder, c, numbers)
    field = builder.trunc(builder.and_(builder.lshr(bits, _splat(numbers, 52)), _splat(numbers, 2047)), exponents)
    floor = _spread(builder, builder.trunc(least, _I32), exponents)
    exponent = _larger(builder, builder.sub(field, _splat(exponents, 1023)), floor)
    zero = builder.icmp_unsigned("==", field, _splat(exponents, 0))
    _put(builder, _at(builder, c, C_EXPONENTS), builder.select(zero, _splat(exponents, _LEAST), exponent))


_ROWS_AT_ONCE = 4


class _Rows:
    """Writes the code for four rows of C: it sums their products with eight columns of B.

    elements   number of elements in one word of a register of A or B
    wide       whether numbers are float64
    places     addresses of C, A and B
    size       number of registers of A, and of B; bytes from one register of A to the next
    half       0 for the first four of the eight rows of C, 1 for the last four
    """

    def __init__(
        self, builder: Any, elements: int, wide: bool, places: tuple[Any, ...], size: tuple[Any, Any], half: Any
    ) -> None:
        self.builder, self.elements = builder, elements
        c, self.a, self.b = places
        self.registers, self.stride = size
        self.width, self.block = (8, WIDE_BLOCK) if wide else (4, NARROW_BLOCK)
        self.scalar = _F64 if wide else _F32
        self.vector = ir.VectorType(self.scalar, 8)
        self.number_of_row = builder.mul(half, ir.Constant(_I64, _ROWS_AT_ONCE))
        self.c = builder.add(c, builder.mul(self.number_of_row, ir.Constant(_I64, 64)))
        self.c_exponents = builder.add(
            _at(builder, c, C_EXPONENTS), builder.mul(self.number_of_row, ir.Constant(_I64, 32))
        )

    def in_block(self, address: Any, bytes_each: int) -> Any:
        """Return where the elements of the four rows begin, of which each takes so many bytes from `address` on."""
        return self.builder.add(address, self.builder.mul(self.number_of_row, ir.Constant(_I64, 4 * bytes_each)))

    def each_register(self) -> Any:
        """Loop over the registers; yields the addresses of the first block of A and of B."""
        builder = self.builder
        with for_range(builder, self.registers) as loop:
            step_a = builder.add(self.a, builder.mul(loop.index, self.stride))
            step_b = builder.add(self.b, builder.mul(loop.index, ir.Constant(_I64, self.block * self.elements)))
            yield step_a, step_b

    def places(self) -> list[tuple[int, int]]:
        """Return byte offset of a block, and number of its element of four, for each k of a register."""
        return [(self.block * j, t) for t in range(4) for j in range(self.elements)]

    def largest_exponents(self) -> list[Any]:
        builder = self.builder
        found = [alloca_once(builder, _ROW_EXPONENTS) for _ in range(_ROWS_AT_ONCE)]
        for row, place in enumerate(found):
            builder.store(_load(builder, _at(builder, self.c_exponents, 32 * row), _ROW_EXPONENTS), place)
        for step_a, step_b in self.each_register():
            exponents = self.in_block(_at(builder, step_a, 32 * self.width), 4)
            for block, t in self.places():
                right = _load(builder, _at(builder, step_b, block + 32 * self.width + 32 * t), _ROW_EXPONENTS)
                for row, place in enumerate(found):
                    at = _at(builder, exponents, block + 4 * (4 * row + t))
                    left = _spread(builder, _load(builder, at, _I32), _ROW_EXPONENTS)
                    builder.store(_larger(builder, builder.add(left, right), builder.load(place)), place)
        return [builder.load(place) for place in found]

    def power(self, exponents: Any, type_: Any) -> Any:
        """Return 2 to the power of `exponents`; those beyond the range of the type become its least or largest."""
        builder, single = self.builder, type_.element is _F32
        bias, shift, top = (127, 23, 254) if single else (1023, 52, 2046)
        field = builder.add(exponents, _splat(_ROW_EXPONENTS, bias))
        field = _larger(builder, field, _splat(_ROW_EXPONENTS, 0))
        over = builder.icmp_signed(">", field, _splat(_ROW_EXPONENTS, top))
        field = builder.select(over, _splat(_ROW_EXPONENTS, top), field)
        wide = ir.VectorType(_I32 if single else _I64, 8)
        bits = field if single else builder.zext(field, wide)
        return builder.bitcast(builder.shl(bits, _splat(wide, shift)), type_)

    def add_products(self, scales: list[Any], totals: list[Any]) -> None:
        """Add to `totals` (float64) the products in units of 1 / `scales`, cut to whole ones."""
        builder = self.builder
        for step_a, step_b in self.each_register():
            sums, numbers = [_splat(_ROW_EXPONENTS, 0)] * _ROWS_AT_ONCE, self.in_block(step_a, self.width)
            for block, t in self.places():
                right = _load(builder, _at(builder, step_b, block + 8 * self.width * t), self.vector)
                for row in range(_ROWS_AT_ONCE):
                    at = _at(builder, numbers, block + self.width * (4 * row + t))
                    left = _spread(builder, _load(builder, at, self.scalar), self.vector)
                    term = builder.fmul(builder.fmul(left, right), scales[row])
                    sums[row] = builder.add(sums[row], builder.fptosi(term, _ROW_EXPONENTS))
            for total, part in zip(totals, sums, strict=True):
                builder.store(builder.fadd(builder.load(total), builder.sitofp(part, _ROW)), total)

    def add_special(self, totals: list[Any]) -> None:
        """Add the products to `totals` as float64 does, with infinities and NaN."""
        builder = self.builder
        for step_a, step_b in self.each_register():
            numbers = self.in_block(step_a, self.width)
            exponents = self.in_block(_at(builder, step_a, 32 * self.width), 4)
            for block, t in self.places():
                right = _load(builder, _at(builder, step_b, block + 8 * self.width * t), self.vector)
                of_right = _load(builder, _at(builder, step_b, block + 32 * self.width + 32 * t), _ROW_EXPONENTS)
                for row, total in enumerate(totals):
                    at = 4 * row + t
                    left = _load(builder, _at(builder, numbers, block + self.width * at), self.scalar)
                    of_left = _load(builder, _at(builder, exponents, block + 4 * at), _I32)
                    of_left = _spread(builder, of_left, _ROW_EXPONENTS)
                    here = builder.icmp_signed("!=", of_left, _splat(_ROW_EXPONENTS, ABSENT))
                    factors = [
                        self.special(_spread(builder, left, self.vector), of_left, here),
                        self.special(right, of_right, here),
                    ]
                    builder.store(builder.fadd(builder.load(total), builder.fmul(*factors)), total)

    def special(self, numbers: Any, exponents: Any, here: Any) -> Any:
        """Return as float64 what the numbers stand for, where they are `here`."""
        builder = self.builder
        special = builder.and_(here, builder.icmp_signed("==", exponents, _splat(_ROW_EXPONENTS, SPECIAL)))
        scale = builder.select(special, _splat(_ROW, math.inf), _splat(_ROW, 1.0))
        return builder.fmul(numbers if numbers.type == _ROW else builder.fpext(numbers, _ROW), scale)


def _product(elements: int, wide: bool) -> Any:
    """Make product(c, a, b, registers, stride, bits), which adds eight rows of A times B to C.

    The terms are cut `bits` places below the largest exponent. The sum is exact in float64.
    """

    def product(builder: Any, c: Any, a: Any, b: Any, registers: Any, stride: Any, bits: Any) -> None:
        trunc = declare(builder.module, "llvm.trunc.v8f64", _ROW, [_ROW])
        places = _spread(builder, builder.trunc(bits, _I32), _ROW_EXPONENTS)
        with for_range(builder, ir.Constant(_I64, 8 // _ROWS_AT_ONCE)) as half:
            rows = _Rows(builder, elements, wide, (c, a, b), (registers, stride), half.index)
            largest = rows.largest_exponents()
            scales = [rows.power(builder.sub(places, exponents), rows.vector) for exponents in largest]
            totals = [alloca_once(builder, _ROW) for _ in largest]
            before = [_load(builder, _at(builder, rows.c, 64 * row), _ROW) for row in range(_ROWS_AT_ONCE)]
            for exponents, number, total in zip(largest, before, totals, strict=True):
                unit = rows.power(builder.sub(places, exponents), _ROW)
                builder.store(builder.call(trunc, [builder.fmul(number, unit)]), total)
            rows.add_products(scales, totals)
            for row, (exponents, total) in enumerate(zip(largest, totals, strict=True)):
                unit = rows.power(builder.sub(exponents, places), _ROW)
                _put(builder, _at(builder, rows.c, 64 * row), builder.fmul(builder.load(total), unit))
            _mend_special(rows, largest, before, totals)

    return instruction(NOTHING, ADDRESS, ADDRESS, ADDRESS, INDEX, INDEX, INDEX)(product)


def _mend_special(rows: _Rows, largest: list[Any], before: list[Any], totals: list[Any]) -> None:
    """Where infinities or NaN take part, put what they give in the place of the sums."""
    builder, first = rows.builder, _splat(_ROW_EXPONENTS, _SPECIAL_FROM)
    special = [builder.icmp_signed(">", exponents, first) for exponents in largest]
    any_ = special[0]
    for one in special[1:]:
        any_ = builder.or_(any_, one)
    with builder.if_then(builder.icmp_unsigned("!=", builder.bitcast(any_, ir.IntType(8)), ir.IntType(8)(0)), False):
        for number, total in zip(before, totals, strict=True):
            builder.store(number, total)
        rows.add_special(totals)
        for row, (chosen, total) in enumerate(zip(special, totals, strict=True)):
            at = _at(builder, rows.c, 64 * row)
            _put(builder, at, builder.select(chosen, builder.load(total), _load(builder, at, _ROW)))


product_tf32, product_bf16, product_f16, product_fp8 = (
    _product(elements, wide) for elements, wide in ((1, True), (2, True), (2, False), (4, False))
)


@instruction(NOTHING, ADDRESS, INDEX)
def round_single(builder: Any, c: Any, fraction_bits: Any) -> None:
    """round_single(c, fraction_bits): cut C to float32 and so many bits of its fraction; what is too large becomes
    infinite. There is one NaN."""
    absolute = declare(builder.module, "llvm.fabs.v32f64", _DOUBLES, [_DOUBLES])
    kept = builder.shl(ir.Constant(_I32, -1), builder.trunc(builder.sub(ir.Constant(_I64, 23), fraction_bits), _I32))
    for half in range(2):
        at = _at(builder, c, 256 * half)
        value = _load(builder, at, _DOUBLES)
        single = builder.fptrunc(value, _SINGLES)
        size = builder.call(absolute, [value])
        over = builder.fcmp_ordered(">", builder.call(absolute, [builder.fpext(single, _DOUBLES)]), size)
        over = builder.and_(over, builder.fcmp_ordered("<", size, _splat(_DOUBLES, 2.0**128)))
        bits = builder.sub(builder.bitcast(single, _WORDS), builder.zext(over, _WORDS))
        bits = builder.and_(bits, _spread(builder, kept, _WORDS))
        bits = builder.select(builder.fcmp_unordered("uno", value, value), _splat(_WORDS, 0x7FFFFFFF), bits)
        _put(builder, at, builder.fpext(builder.bitcast(bits, _SINGLES), _DOUBLES))


@instruction(NOTHING, ADDRESS)
def round_half(builder: Any, c: Any) -> None:
    """round_half(c): round C to binary16, to nearest even."""
    for half in range(2):
        at = _at(builder, c, 256 * half)
        bits = fragments.half_bits(builder, _load(builder, at, _DOUBLES))
        _put(builder, at, builder.fpext(fragments.half_number(builder, bits), _DOUBLES))
