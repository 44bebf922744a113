"""Provides small operations of the compiled executor in LLVM: loads and stores at addresses, bits of masks, 32-lane
moves.

The executor's functions take addresses (uint64) of arrays that Python keeps alive: handing twenty arrays with their
shapes to a function for every simulated load would cost more than the load.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir

from gemmsim.native.parts import (
    ADDRESS,
    BYTE,
    DOUBLE,
    INDEX,
    NOTHING,
    SHORT,
    SINGLE,
    TRUTH,
    WORD,
    alloca_once,
    instruction,
)
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.llvm.lane_operations import SIGNATURE, VECTOR, is_full, lanes_of, splat, store_rows

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_AT_ONCE = 8  # words that a vector register of the processor holds
_LANES_OF_REGISTER = ir.VectorType(_I32, _AT_ONCE)


def _element(builder: Any, address: Any, index: Any, bits: int) -> Any:
    """Return a pointer to element `index` of an array of integers of so many bits, or of float64 where `bits` is 0."""
    element = ir.IntType(bits) if bits else ir.DoubleType()
    return builder.gep(builder.inttoptr(address, element.as_pointer()), [index])


def _reader(kind: Any, bits: int) -> Any:
    def get(builder: Any, address: Any, index: Any) -> Any:
        return builder.load(_element(builder, address, index, bits))

    return instruction(kind, ADDRESS, INDEX)(get)


def _writer(kind: Any, bits: int) -> Any:
    def put(builder: Any, address: Any, index: Any, value: Any) -> None:
        builder.store(value, _element(builder, address, index, bits))

    return instruction(NOTHING, ADDRESS, INDEX, kind)(put)


# get_u32(address, index) reads element `index` of the array of uint32 at `address`, and set_u32(address, index, value)
# writes it; the others do so with other types. get_i32 and get_n32 extend 32 bits to 64, by their sign or by zeros.
get_u8, get_u16 = _reader(BYTE, 8), _reader(SHORT, 16)
get_u32, get_u64, get_i64 = _reader(WORD, 32), _reader(ADDRESS, 64), _reader(INDEX, 64)
set_u8, set_u16 = _writer(BYTE, 8), _writer(SHORT, 16)
get_f64, set_f64 = _reader(DOUBLE, 0), _writer(DOUBLE, 0)
set_u32, set_u64, set_i64 = _writer(WORD, 32), _writer(ADDRESS, 64), _writer(INDEX, 64)


@instruction(INDEX, ADDRESS, INDEX)
def get_i32(builder: Any, address: Any, index: Any) -> Any:
    return builder.sext(builder.load(_element(builder, address, index, 32)), _I64)


@instruction(INDEX, ADDRESS, INDEX)
def get_n32(builder: Any, address: Any, index: Any) -> Any:
    return builder.zext(builder.load(_element(builder, address, index, 32)), _I64)


@instruction(NOTHING, ADDRESS, INDEX, INDEX)
def set_i32(builder: Any, address: Any, index: Any, value: Any) -> None:
    builder.store(builder.trunc(value, _I32), _element(builder, address, index, 32))


@instruction(ADDRESS, ADDRESS, INDEX)
def moved(builder: Any, address: Any, count: Any) -> Any:
    """moved(address, bytes): the address so many bytes further."""
    return builder.add(address, count)


@instruction(ADDRESS, ADDRESS, ADDRESS, INDEX)
def row_of(builder: Any, registers: Any, op: Any, column: Any) -> Any:
    """row_of(registers, op, column): address of the row whose word offset is in that column of a micro-operation."""
    word = builder.load(_element(builder, op, column, 32))
    return builder.add(registers, builder.shl(builder.zext(word, _I64), ir.Constant(_I64, 2)))


def _function(builder: Any, op: Any, type_: Any) -> Any:
    """Return a pointer to the machine code of a micro-operation that is compiled by itself."""
    place = _element(builder, op, ir.Constant(_I64, micro.FUNCTION), 32)
    address = builder.load(builder.bitcast(place, _I64.as_pointer()), align=4)
    return builder.inttoptr(address, type_.as_pointer())


@instruction(NOTHING, ADDRESS, ADDRESS, WORD)
def lane_operation(builder: Any, op: Any, registers: Any, mask: Any) -> None:
    """lane_operation(op, registers, mask): execute a micro-operation on lanes; only those in the mask write results."""
    words = [builder.inttoptr(value, _I32.as_pointer()) for value in (op, registers)]
    builder.call(_function(builder, op, SIGNATURE), [*words, mask])


# As `gemmsim.native.build` makes it: the place for the result, then the arguments; returns a status.
_PART = ir.FunctionType(_I32, [_I64.as_pointer(), _I64, _I64, _I64, _I32, _I64])


@instruction(INDEX, ADDRESS, ADDRESS, ADDRESS, WORD, INDEX)
def call_part(builder: Any, context: Any, registers: Any, op: Any, mask: Any, warp: Any) -> Any:
    """call_part(context, registers, op, mask, warp): execute a micro-operation by the function that
    `gemmsim.trace.engine.parts` has for it; returns 0 or a status. The arguments are those of `memory_access.access`.
    """
    result = alloca_once(builder, _I64)
    builder.call(_function(builder, op, _PART), [result, context, registers, op, mask, warp])
    return builder.load(result)


@instruction(ADDRESS, ADDRESS, INDEX)
def lane_address(builder: Any, rows: Any, lane: Any) -> Any:
    """lane_address(rows, lane): the 64-bit value of a lane, whose low and high words stand in two rows."""
    low = builder.load(_element(builder, rows, lane, 32))
    high = builder.load(_element(builder, rows, builder.add(lane, ir.Constant(_I64, 32)), 32))
    return builder.or_(builder.zext(low, _I64), builder.shl(builder.zext(high, _I64), ir.Constant(_I64, 32)))


@instruction(INDEX, WORD)
def first_set(builder: Any, mask: Any) -> Any:
    """first_set(mask): number of the lowest set bit (32 where none is)."""
    return builder.zext(builder.cttz(mask, ir.Constant(ir.IntType(1), 0)), _I64)


@instruction(TRUTH, WORD, INDEX)
def has(builder: Any, mask: Any, lane: Any) -> Any:
    """has(mask, lane): whether bit `lane` of the mask is set."""
    return builder.trunc(builder.lshr(mask, builder.trunc(lane, _I32)), ir.IntType(1))


@instruction(ADDRESS, INDEX)
def scratch(builder: Any, words: Any) -> Any:
    """scratch(words): address of `words` 64-bit words (a literal), which last as long as the calling function runs."""
    return builder.ptrtoint(alloca_once(builder, _I64, size=words), _I64)


@instruction(SINGLE, ADDRESS)
def as_float(builder: Any, bits: Any) -> Any:
    return builder.bitcast(builder.trunc(bits, _I32), ir.FloatType())


@instruction(ADDRESS, SINGLE)
def float_bits(builder: Any, value: Any) -> Any:
    return builder.zext(builder.bitcast(value, _I32), _I64)


@instruction(DOUBLE, ADDRESS)
def as_double(builder: Any, bits: Any) -> Any:
    return builder.bitcast(bits, ir.DoubleType())


@instruction(ADDRESS, DOUBLE)
def double_bits(builder: Any, value: Any) -> Any:
    return builder.bitcast(value, _I64)


@instruction(DOUBLE, DOUBLE, DOUBLE, DOUBLE)
def fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """fused(a, b, c): a * b + c, rounded once."""
    return builder.fma(a, b, c)


def _row(builder: Any, address: Any, type_: str = "u32") -> Any:
    return builder.inttoptr(address, VECTOR[type_].as_pointer())


def _addresses(builder: Any, rows: Any) -> Any:
    """Load the 64-bit value of each lane, whose low and high words stand in the two rows at `rows`."""
    wide = VECTOR["u64"]
    low = builder.zext(builder.load(_row(builder, rows), align=4), wide)
    high = builder.zext(builder.load(_row(builder, builder.add(rows, ir.Constant(_I64, 128))), align=4), wide)
    return builder.or_(low, builder.shl(high, ir.Constant(wide, [32] * 32)))


@instruction(TRUTH, ADDRESS, ADDRESS, ADDRESS, WORD)
def matches(builder: Any, rows: Any, offsets: Any, base: Any, mask: Any) -> Any:
    """matches(rows, offsets, base, mask): whether the address equals base + offset in every lane of the mask; `offsets`
    is the address of 32 uint64."""
    offset = builder.load(_row(builder, offsets, "u64"), align=8)
    expected = builder.add(offset, splat(builder, base))
    equal = lanes_of(builder, builder.icmp_unsigned("==", _addresses(builder, rows), expected))
    return is_full(builder, builder.or_(equal, builder.not_(mask)))


@instruction(WORD, ADDRESS, ADDRESS, ADDRESS)
def inside(builder: Any, rows: Any, start: Any, size: Any) -> Any:
    """inside(rows, start, size): the lanes whose address is in [start, start + size)."""
    offset = builder.sub(_addresses(builder, rows), splat(builder, start))
    return lanes_of(builder, builder.icmp_unsigned("<", offset, splat(builder, size)))


@instruction(WORD, ADDRESS, WORD)
def equal_lanes(builder: Any, row: Any, value: Any) -> Any:
    """equal_lanes(row, value): the lanes whose word equals `value`."""
    return lanes_of(
        builder, builder.icmp_unsigned("==", builder.load(_row(builder, row), align=4), splat(builder, value))
    )


@instruction(WORD, ADDRESS, WORD)
def true_lanes(builder: Any, row: Any, flip: Any) -> Any:
    """true_lanes(row, flip): the lanes where a predicate's row (all ones or zero), xor `flip`, is set."""
    word = builder.load(_row(builder, row), align=4)
    zero = ir.Constant(VECTOR["u32"], None)
    return builder.xor(lanes_of(builder, builder.icmp_signed("<", word, zero)), flip)


@instruction(NOTHING, ADDRESS, ADDRESS, WORD)
def copy_row(builder: Any, to: Any, source: Any, mask: Any) -> None:
    """copy_row(to, from, mask): copy the words of a row in the lanes of the mask."""
    new = builder.load(_row(builder, source), align=4)
    store_rows(builder, [(_row(builder, to), new)], mask)


@instruction(NOTHING, ADDRESS, WORD, WORD)
def splat_row(builder: Any, to: Any, value: Any, mask: Any) -> None:
    """splat_row(to, value, mask): write one word to the lanes of the mask."""
    store_rows(builder, [(_row(builder, to), splat(builder, value))], mask)


@instruction(NOTHING, ADDRESS, ADDRESS, WORD)
def sum_row(builder: Any, to: Any, source: Any, value: Any) -> None:
    """sum_row(to, from, value): write the words of a row, each plus `value`."""
    total = builder.add(builder.load(_row(builder, source), align=4), splat(builder, value))
    builder.store(total, _row(builder, to), align=4)


@instruction(WORD, ADDRESS, ADDRESS, INDEX, TRUTH, INDEX)
def moved_row(builder: Any, to: Any, source: Any, by: Any, signed: Any, bits: Any) -> Any:
    """moved_row(to, from, by, signed, bits): write the words of a row, each plus `by`, a number that may be negative.

    Returns the lanes in which the sum is still a number of so many bits, signed or not as the words are taken to be.
    """
    wide, one = VECTOR["u64"], ir.Constant(_I64, 1)
    words = builder.load(_row(builder, source), align=4)
    values = builder.select(signed, builder.sext(words, wide), builder.zext(words, wide))
    total = builder.add(values, splat(builder, by))
    builder.store(builder.trunc(total, VECTOR["u32"]), _row(builder, to), align=4)
    half = builder.shl(one, builder.sub(bits, one))
    from_bottom = builder.add(total, splat(builder, builder.select(signed, half, ir.Constant(_I64, 0))))
    return lanes_of(builder, builder.icmp_unsigned("<", from_bottom, splat(builder, builder.shl(half, one))))


@instruction(WORD, ADDRESS, ADDRESS, WORD)
def alike_lanes(builder: Any, first: Any, second: Any, bits: Any) -> Any:
    """alike_lanes(first, second, bits): the lanes in which two rows agree in these bits."""
    a, b = (builder.load(_row(builder, row), align=4) for row in (first, second))
    different = builder.and_(builder.xor(a, b), splat(builder, bits))
    return lanes_of(builder, builder.icmp_unsigned("==", different, ir.Constant(VECTOR["u32"], None)))


@instruction(NOTHING, ADDRESS, ADDRESS, WORD, WORD)
def masked_row(builder: Any, to: Any, source: Any, keep: Any, set_bits: Any) -> None:
    """masked_row(to, from, keep, set): write the words of a row, with the bits `keep` kept and the bits `set` set."""
    kept = builder.and_(builder.load(_row(builder, source), align=4), splat(builder, keep))
    builder.store(builder.or_(kept, splat(builder, set_bits)), _row(builder, to), align=4)


@instruction(TRUTH, ADDRESS)
def any_of_row(builder: Any, row: Any) -> Any:
    """any_of_row(row): whether any bit is set in the word of any lane."""
    words = builder.load(_row(builder, row), align=4)
    lanes = range(WARP_LANES)
    parts = [
        builder.shuffle_vector(words, words, ir.Constant(_LANES_OF_REGISTER, list(lanes[first : first + _AT_ONCE])))
        for first in lanes[::_AT_ONCE]
    ]
    # The processor tests one register of 256 bits. It would take longer to combine the words of the lanes.
    some = builder.bitcast(functools.reduce(builder.or_, parts), ir.IntType(32 * _AT_ONCE))
    return builder.icmp_unsigned("!=", some, ir.Constant(some.type, 0))


@instruction(INDEX, WORD)
def population(builder: Any, mask: Any) -> Any:
    """population(mask): how many bits are set."""
    return builder.zext(builder.ctpop(mask), _I64)
