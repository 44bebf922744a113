"""Loads and stores at plain addresses, and the few 32-lane moves of the memory path.

numba's arrays are records with a reference count; handing twenty of them to a function for every simulated load costs
more than the load. The executor's inner functions therefore take addresses (uint64) of arrays that their caller keeps
alive.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gemmsim.trace.codegen import VECTOR, store_rows

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _pointer(builder: Any, address: Any, index: Any, element: Any) -> Any:
    return builder.gep(builder.inttoptr(address, element.as_pointer()), [index])


def _reader(numba_type: Any, bits: int, name: str) -> Any:
    def read(typingctx: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(_pointer(builder, args[0], args[1], ir.IntType(bits)))

        return numba_type(types.uint64, types.int64), generate

    read.__name__ = name
    return intrinsic(read)


def _writer(numba_type: Any, bits: int, name: str) -> Any:
    def write(typingctx: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], _pointer(builder, args[0], args[1], ir.IntType(bits)))
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64, numba_type), generate

    write.__name__ = name
    return intrinsic(write)


# get_u32(address, index): element `index` of the array of that type at `address`.
get_u8, get_u16 = _reader(types.uint8, 8, "get_u8"), _reader(types.uint16, 16, "get_u16")
get_u32, get_u64 = _reader(types.uint32, 32, "get_u32"), _reader(types.uint64, 64, "get_u64")
get_i32, get_i64 = _reader(types.int32, 32, "get_i32"), _reader(types.int64, 64, "get_i64")
set_u8, set_u16 = _writer(types.uint8, 8, "set_u8"), _writer(types.uint16, 16, "set_u16")
set_u32, set_u64 = _writer(types.uint32, 32, "set_u32"), _writer(types.uint64, 64, "set_u64")
set_i32, set_i64 = _writer(types.int32, 32, "set_i32"), _writer(types.int64, 64, "set_i64")


@intrinsic
def first_set(typingctx: Any, mask: Any) -> Any:
    """first_set(uint32) -> int64: number of the lowest set bit (32 where none is)."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.cttz(args[0], ir.Constant(ir.IntType(1), 0)), _I64)

    return types.int64(types.uint32), generate


@intrinsic
def as_float(typingctx: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.uint32), generate


@intrinsic
def as_bits(typingctx: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], _I32)

    return types.uint32(types.float32), generate


def _vector_at(builder: Any, address: Any, type_: str = "u32") -> Any:
    return builder.inttoptr(address, VECTOR[type_].as_pointer())


def _splat(builder: Any, scalar: Any, type_: str) -> Any:
    vector = VECTOR[type_]
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, 32), [0] * 32)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
def matches(typingctx: Any, low: Any, offsets: Any, base: Any, mask: Any) -> Any:
    """matches(address of 64 words: low rows then high rows, address of 32 uint64 offsets, base, mask) -> bool: in every lane of the mask
    the address equals base + offset."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = VECTOR["u64"]
        low = builder.zext(builder.load(_vector_at(builder, args[0]), align=4), wide)
        high_at = builder.add(args[0], ir.Constant(_I64, 128))
        high = builder.zext(builder.load(_vector_at(builder, high_at), align=4), wide)
        address = builder.or_(low, builder.shl(high, ir.Constant(wide, [32] * 32)))
        offset = builder.load(_vector_at(builder, args[1], "u64"), align=8)
        equal = builder.icmp_unsigned("==", address, builder.add(offset, _splat(builder, args[2], "u64")))
        bits = builder.or_(builder.bitcast(equal, _I32), builder.not_(args[3]))
        return builder.zext(builder.icmp_unsigned("==", bits, ir.Constant(_I32, 0xFFFFFFFF)), ir.IntType(8))

    return types.uint8(types.uint64, types.uint64, types.uint64, types.uint32), generate


@intrinsic
def copy_row(typingctx: Any, to: Any, source: Any, mask: Any) -> Any:
    """copy_row(to, from, mask): 32 words, those lanes of the mask."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        new = builder.load(_vector_at(builder, args[1]), align=4)
        store_rows(builder, [(_vector_at(builder, args[0]), new)], args[2])
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint32), generate


@intrinsic
def splat_row(typingctx: Any, to: Any, value: Any, mask: Any) -> Any:
    """splat_row(to, value, mask): one word to those lanes of the mask."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store_rows(builder, [(_vector_at(builder, args[0]), _splat(builder, args[1], "u32"))], args[2])
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint32, types.uint32), generate
