"""Loads and stores at plain addresses, and the few 32-lane moves of the memory path.

numba's arrays are records with a reference count: handing twenty of them to a function for every simulated load costs
more than the load, and compiling their indexing costs seconds. The executor's functions therefore take addresses
(uint64) of arrays that Python keeps alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gemmsim.trace.codegen import VECTOR, is_full, lanes_of, splat, store_rows

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_ADDRESS, _INDEX, _WORD = types.uint64, types.int64, types.uint32


def _typed(returns: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes an intrinsic of fixed types from a function (builder, *values) -> value or None."""

    def make(body: Callable[..., Any]) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            value = body(builder, *values)
            return context.get_dummy_value() if value is None else value

        made = returns(*arguments), generate
        forms: tuple[Callable[..., Any], ...] = (  # numba looks at the number of parameters
            lambda typing, a: made,
            lambda typing, a, b: made,
            lambda typing, a, b, c: made,
            lambda typing, a, b, c, d: made,
        )
        form = forms[len(arguments) - 1]
        form.__name__, form.__doc__ = body.__name__, body.__doc__
        return intrinsic(form)

    return make


def _element(builder: Any, address: Any, index: Any, bits: int) -> Any:
    return builder.gep(builder.inttoptr(address, ir.IntType(bits).as_pointer()), [index])


def _reader(numba_type: Any, bits: int) -> Any:
    def get(builder: Any, address: Any, index: Any) -> Any:
        return builder.load(_element(builder, address, index, bits))

    return _typed(numba_type, _ADDRESS, _INDEX)(get)


def _writer(numba_type: Any, bits: int) -> Any:
    def put(builder: Any, address: Any, index: Any, value: Any) -> None:
        builder.store(value, _element(builder, address, index, bits))

    return _typed(types.void, _ADDRESS, _INDEX, numba_type)(put)


# get_u32(address, index): element `index` of the array of that type at `address`. The signed ones read 64-bit integers
# of that width, so that arithmetic on them needs no casts.
get_u8, get_u16 = _reader(types.uint8, 8), _reader(types.uint16, 16)
get_u32, get_u64, get_i64 = _reader(types.uint32, 32), _reader(types.uint64, 64), _reader(types.int64, 64)
set_u8, set_u16 = _writer(types.uint8, 8), _writer(types.uint16, 16)
set_u32, set_u64, set_i64 = _writer(types.uint32, 32), _writer(types.uint64, 64), _writer(types.int64, 64)


@_typed(types.int64, _ADDRESS, _INDEX)
def get_i32(builder: Any, address: Any, index: Any) -> Any:
    return builder.sext(builder.load(_element(builder, address, index, 32)), _I64)


@_typed(types.void, _ADDRESS, _INDEX, types.int64)
def set_i32(builder: Any, address: Any, index: Any, value: Any) -> None:
    builder.store(builder.trunc(value, _I32), _element(builder, address, index, 32))


@_typed(types.uint64, _ADDRESS, _INDEX)
def moved(builder: Any, address: Any, count: Any) -> Any:
    """moved(address, bytes): the address so many bytes further."""
    return builder.add(address, count)


@_typed(types.uint64, _ADDRESS, _ADDRESS, _INDEX)
def row_of(builder: Any, state: Any, op: Any, column: Any) -> Any:
    """row_of(state, op, column): address of the row whose word offset stands in that column of a micro-operation."""
    word = builder.load(_element(builder, op, column, 32))
    return builder.add(state, builder.shl(builder.zext(word, _I64), ir.Constant(_I64, 2)))


@_typed(types.uint64, _ADDRESS, _INDEX)
def lane_address(builder: Any, rows: Any, lane: Any) -> Any:
    """lane_address(rows, lane): the 64-bit value of a lane, whose low and high words stand in two rows."""
    low = builder.load(_element(builder, rows, lane, 32))
    high = builder.load(_element(builder, rows, builder.add(lane, ir.Constant(_I64, 32)), 32))
    return builder.or_(builder.zext(low, _I64), builder.shl(builder.zext(high, _I64), ir.Constant(_I64, 32)))


@_typed(types.int64, _WORD)
def first_set(builder: Any, mask: Any) -> Any:
    """first_set(mask): number of the lowest set bit (32 where none is)."""
    return builder.zext(builder.cttz(mask, ir.Constant(ir.IntType(1), 0)), _I64)


@_typed(types.boolean, _WORD, _INDEX)
def has(builder: Any, mask: Any, lane: Any) -> Any:
    """has(mask, lane): whether that bit is set."""
    return builder.trunc(builder.lshr(mask, builder.trunc(lane, _I32)), ir.IntType(1))


@_typed(types.float32, types.uint64)
def as_float(builder: Any, bits: Any) -> Any:
    return builder.bitcast(builder.trunc(bits, _I32), ir.FloatType())


@_typed(types.uint64, types.float32)
def float_bits(builder: Any, value: Any) -> Any:
    return builder.zext(builder.bitcast(value, _I32), _I64)


@_typed(types.float64, types.uint64)
def as_double(builder: Any, bits: Any) -> Any:
    return builder.bitcast(bits, ir.DoubleType())


@_typed(types.uint64, types.float64)
def double_bits(builder: Any, value: Any) -> Any:
    return builder.bitcast(value, _I64)


@_typed(types.float64, types.float64, types.float64, types.float64)
def fused(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """fused(a, b, c): a * b + c, rounded once."""
    return builder.fma(a, b, c)


def _row(builder: Any, address: Any, type_: str = "u32") -> Any:
    return builder.inttoptr(address, VECTOR[type_].as_pointer())


def _addresses(builder: Any, rows: Any) -> Any:
    """The 64-bit values that two rows hold."""
    wide = VECTOR["u64"]
    low = builder.zext(builder.load(_row(builder, rows), align=4), wide)
    high = builder.zext(builder.load(_row(builder, builder.add(rows, ir.Constant(_I64, 128))), align=4), wide)
    return builder.or_(low, builder.shl(high, ir.Constant(wide, [32] * 32)))


@_typed(types.boolean, _ADDRESS, _ADDRESS, types.uint64, _WORD)
def matches(builder: Any, rows: Any, offsets: Any, base: Any, mask: Any) -> Any:
    """matches(rows, offsets, base, mask): in every lane of the mask the address equals base + offset; `offsets` is the
    address of 32 uint64."""
    offset = builder.load(_row(builder, offsets, "u64"), align=8)
    expected = builder.add(offset, splat(builder, base))
    equal = lanes_of(builder, builder.icmp_unsigned("==", _addresses(builder, rows), expected))
    return is_full(builder, builder.or_(equal, builder.not_(mask)))


@_typed(types.uint32, _ADDRESS, types.uint64, types.uint64)
def inside(builder: Any, rows: Any, start: Any, size: Any) -> Any:
    """inside(rows, start, size): the lanes whose address is in [start, start + size)."""
    offset = builder.sub(_addresses(builder, rows), splat(builder, start))
    return lanes_of(builder, builder.icmp_unsigned("<", offset, splat(builder, size)))


@_typed(types.uint32, _ADDRESS, _WORD)
def equal_lanes(builder: Any, row: Any, value: Any) -> Any:
    """equal_lanes(row, value): the lanes whose word equals `value`."""
    return lanes_of(
        builder, builder.icmp_unsigned("==", builder.load(_row(builder, row), align=4), splat(builder, value))
    )


@_typed(types.uint32, _ADDRESS, _WORD)
def true_lanes(builder: Any, row: Any, flip: Any) -> Any:
    """true_lanes(row, flip): the lanes where a predicate's row (all ones or zero), xor `flip`, is set."""
    word = builder.load(_row(builder, row), align=4)
    zero = ir.Constant(VECTOR["u32"], None)
    return builder.xor(lanes_of(builder, builder.icmp_signed("<", word, zero)), flip)


@_typed(types.void, _ADDRESS, _ADDRESS, _WORD)
def copy_row(builder: Any, to: Any, source: Any, mask: Any) -> None:
    """copy_row(to, from, mask): 32 words, those lanes of the mask."""
    new = builder.load(_row(builder, source), align=4)
    store_rows(builder, [(_row(builder, to), new)], mask)


@_typed(types.void, _ADDRESS, _WORD, _WORD)
def splat_row(builder: Any, to: Any, value: Any, mask: Any) -> None:
    """splat_row(to, value, mask): one word to those lanes of the mask."""
    store_rows(builder, [(_row(builder, to), splat(builder, value))], mask)


@_typed(types.int64, _WORD)
def population(builder: Any, mask: Any) -> Any:
    """population(mask): how many bits are set."""
    return builder.zext(builder.ctpop(mask), _I64)
