"""Turns the semantic functions of `gemmsim.isa.semantics` into compiled functions on 32-lane LLVM vectors, one for each
micro-operation on lanes.

Each semantic function is called once with `LlvmLanes` values, which write LLVM instructions instead of computing. The
result is compiled by itself, when the first program comes that has the micro-operation (`gemmsim.trace.engine.parts`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from gemmsim.isa.lanes import WIDTH_BITS, Lanes
from gemmsim.isa.semantics.operations import load
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_ELEMENT = {
    "u32": _I32,
    "s32": _I32,
    "u64": _I64,
    "s64": _I64,
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
    "b": ir.IntType(1),
}
VECTOR = {name: ir.VectorType(element, WARP_LANES) for name, element in _ELEMENT.items()}
_INT = {"add": "add", "sub": "sub", "mul": "mul", "and": "and_", "or": "or_", "xor": "xor", "shl": "shl"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


class LlvmLanes(Lanes):
    """The values of 32 lanes: a vector in the LLVM function being built. Operations append instructions to it."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Any, type_: str, value: Any) -> None:
        self.builder, self.type, self.value = builder, type_, value

    def _new(self, type_: str, value: Any) -> LlvmLanes:
        return LlvmLanes(self.builder, type_, value)

    def lift(self, value: int | float) -> Lanes:
        constant: int | float = value
        if self.type[0] in "us":
            constant = int(value) & ((1 << WIDTH_BITS[self.type]) - 1)
            if constant == 0:
                return self._new(self.type, ir.Constant(VECTOR[self.type], None))
        return self._new(self.type, ir.Constant(VECTOR[self.type], [constant] * WARP_LANES))

    def _binary(self, op: str, other: Lanes) -> Lanes:
        assert isinstance(other, LlvmLanes)
        build, a, b = self.builder, self.value, other.value
        if op in ("shl", "shr") and other.type[1:] != self.type[1:]:
            b = other.convert(self.type).value  # type: ignore[attr-defined]
        elif op not in ("shl", "shr"):
            assert self.type == other.type, (op, self.type, other.type)
        if self.type[0] == "f":
            return self._new(self.type, getattr(build, _FLOAT[op])(a, b))
        if op == "shr":
            return self._new(self.type, (build.ashr if self.type[0] == "s" else build.lshr)(a, b))
        return self._new(self.type, getattr(build, _INT[op])(a, b))

    def _compare(self, op: str, other: Lanes) -> Lanes:
        assert isinstance(other, LlvmLanes) and self.type == other.type, (op, self.type, other.type)
        a, b = self.value, other.value
        if self.type[0] == "f":
            compare = self.builder.fcmp_unordered if op == "!=" else self.builder.fcmp_ordered
        elif self.type[0] == "s":
            compare = self.builder.icmp_signed
        else:
            compare = self.builder.icmp_unsigned
        return self._new("b", compare(op, a, b))

    def invert(self) -> Lanes:
        return self._new(self.type, self.builder.not_(self.value))

    def bitcast(self, type_: str) -> Lanes:
        return self._new(type_, self.builder.bitcast(self.value, VECTOR[type_]))

    def convert(self, type_: str) -> Lanes:
        build, source, target = self.builder, self.type, VECTOR[type_]
        if source[0] == "f" and type_[0] == "f":
            cast = build.fptrunc if WIDTH_BITS[type_] < WIDTH_BITS[source] else build.fpext
        elif source[0] == "f":
            cast = build.fptosi if type_[0] == "s" else build.fptoui
        elif type_[0] == "f":
            cast = build.sitofp if source[0] == "s" else build.uitofp
        elif WIDTH_BITS[type_] < WIDTH_BITS[source]:
            cast = build.trunc
        elif WIDTH_BITS[type_] == WIDTH_BITS[source]:
            return self._new(type_, self.value)
        else:
            cast = build.sext if source[0] == "s" else build.zext
        return self._new(type_, cast(self.value, target))

    def select(self, yes: Lanes, no: Lanes) -> Lanes:
        assert isinstance(yes, LlvmLanes) and isinstance(no, LlvmLanes) and yes.type == no.type
        return self._new(yes.type, self.builder.select(self.value, yes.value, no.value))

    def _call(self, name: str, *args: Any) -> LlvmLanes:
        vector = VECTOR[self.type]
        suffix = {"f32": "f32", "f64": "f64", "u32": "i32"}[self.type]
        function = declare(self.builder.module, f"llvm.{name}.v{WARP_LANES}{suffix}", vector, [a.type for a in args])
        return self._new(self.type, self.builder.call(function, args))

    def fma(self, b: Lanes, c: Lanes) -> Lanes:
        return self._call("fma", self.value, b.value, c.value)  # type: ignore[attr-defined]

    def function(self, name: str) -> Lanes:
        return self._call(name, self.value)

    def count(self, name: str) -> Lanes:
        if name == "ctlz":
            return self._call(name, self.value, ir.Constant(ir.IntType(1), 0))
        return self._call(name, self.value)


def declare(module: Any, name: str, returns: Any, args: list[Any]) -> Any:
    if name in module.globals:
        return module.globals[name]
    return ir.Function(module, ir.FunctionType(returns, args), name)


def splat(builder: Any, scalar: Any) -> Any:
    """Return a vector that holds `scalar` in every lane."""
    vector = ir.VectorType(scalar.type, WARP_LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_I32, 0))
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), ir.Constant(VECTOR["u32"], None))


def lanes_of(builder: Any, truth: Any) -> Any:
    """Return 32 truth values as a word, in which bit l is the value of lane l."""
    return builder.bitcast(truth, _I32)


def is_full(builder: Any, mask: Any) -> Any:
    return builder.icmp_unsigned("==", mask, ir.Constant(_I32, 0xFFFFFFFF))


def store_rows(builder: Any, rows: list[tuple[Any, Any]], mask: Any) -> None:
    """Store 32 words to each pointer in `rows`, which holds (pointer, words), but only in the lanes of the mask.

    The full mask has a branch of its own: masked vector stores are many times slower than plain ones on some CPUs
    (AMD Zen).
    """
    with builder.if_else(is_full(builder, mask), likely=True) as (whole, partial):
        with whole:
            for pointer, value in rows:
                builder.store(value, pointer, align=4)
        with partial:
            lanes = builder.bitcast(mask, VECTOR["b"])
            for pointer, value in rows:
                builder.store(builder.select(lanes, value, builder.load(pointer, align=4)), pointer, align=4)


class _Row:
    """Emits the reads and writes of one micro-operation while its function is built."""

    def __init__(self, builder: Any, code: Any, registers: Any) -> None:
        self.builder, self.code, self.registers = builder, code, registers

    def word(self, column: int) -> Any:
        return self.builder.load(self.builder.gep(self.code, [ir.Constant(_I64, column)]))

    def pointer(self, column: int, next_row: int = 0) -> Any:
        offset = self.builder.zext(self.word(column), _I64)
        if next_row:
            offset = self.builder.add(offset, ir.Constant(_I64, next_row * WARP_LANES))
        element = self.builder.gep(self.registers, [offset])
        return self.builder.bitcast(element, VECTOR["u32"].as_pointer())

    def load_row(self, column: int, next_row: int = 0) -> Any:
        return self.builder.load(self.pointer(column, next_row), align=4)

    def source(self, number: int, type_: str) -> LlvmLanes:
        build, column = self.builder, micro.SOURCE + micro.SOURCE_COLUMNS * number
        if type_ == "pred":
            flipped = build.xor(self.load_row(column), splat(build, self.word(column + 2)))
            return LlvmLanes(build, "b", build.icmp_signed("<", flipped, ir.Constant(VECTOR["u32"], None)))
        keep, flip = splat(build, self.word(column + 1)), splat(build, self.word(column + 2))

        def masked(row: Any) -> Any:
            return build.xor(build.and_(row, keep), flip)

        if WIDTH_BITS[type_] == 32:
            return LlvmLanes(build, "u32", masked(self.load_row(column))).bitcast(type_)  # type: ignore[return-value]
        low, high = self.load_row(column), self.load_row(column, 1)
        low = low if type_ == "f64" else masked(low)  # the sign of a double is in its high word
        wide = VECTOR["u64"]
        upper = build.shl(build.zext(masked(high), wide), ir.Constant(wide, [32] * WARP_LANES))
        return LlvmLanes(build, "u64", build.or_(build.zext(low, wide), upper)).bitcast(type_)  # type: ignore[return-value]

    def immediate(self, number: int) -> LlvmLanes:
        return LlvmLanes(self.builder, "u32", splat(self.builder, self.word(micro.IMMEDIATE + number)))

    def result(self, number: int, type_: str, value: Any) -> list[tuple[Any, Any]]:
        """Return what to store for result `number`: (pointer, 32 words) for each row that a value of `type_` takes."""
        column = micro.RESULT + number
        if type_ == "pred":
            return [(self.pointer(column), self.builder.sext(value.value, VECTOR["u32"]))]
        if WIDTH_BITS[type_] == 32:
            return [(self.pointer(column), value.bitcast("u32").value)]
        bits = value.bitcast("u64")
        high = (bits >> 32).convert("u32").value
        return [(self.pointer(column), bits.convert("u32").value), (self.pointer(column, 1), high)]


# f(its row in the code, the warp's rows, mask of the lanes that write results)
SIGNATURE = ir.FunctionType(ir.VoidType(), [_I32.as_pointer(), _I32.as_pointer(), _I32])


def written(name: str) -> ir.Module:
    """Return an LLVM module that holds the function of the micro-operation `name`, under this name."""
    module, op = ir.Module(), load()[name]
    function = ir.Function(module, SIGNATURE, name)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    code, registers, mask = function.args
    row = _Row(builder, code, registers)
    sources = [row.source(i, t) for i, t in enumerate(op.sources)]
    immediates = [row.immediate(i) for i in range(op.immediates)]
    returned = op.function(*sources, *immediates)
    values = returned if isinstance(returned, tuple) else (returned,)
    rows = [r for i, (t, v) in enumerate(zip(op.results, values, strict=True)) for r in row.result(i, t, v)]
    store_rows(builder, rows, mask)
    builder.ret_void()
    return module
