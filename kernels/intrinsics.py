"""Instructions that numba.cuda has no word for, as functions to call in a kernel.

Each is one PTX instruction, written into the kernel as inline assembly, and has its name; the PTX ISA manual ("Parallel
Thread Execution ISA", NVIDIA) says what it does, and which lane holds which element of a matrix fragment. They compile
without a GPU and run on one from sm_80 on (`dp4a` and the 128-bit accesses on older ones, too).

    a = global_address(A)                  # uint64, of A[0, 0]
    s = shared_address(tile)               # uint32, of tile[0, 0] in shared memory
    cp_async_cg_16(s + 16 * t, a + 16 * t, 16)
    cp_async_commit_group()
    cp_async_wait_group(0)
    cuda.syncthreads()
    fragment = ldmatrix_x4(s + 48 * row)   # four uint32

Addresses are in bytes. What accesses 16 bytes needs an address that is a multiple of 16: ask for
`cuda.shared.array(shape, dtype, alignment=16)`. Several registers are a tuple. Packed values (two f16 or bf16, four s8)
are uint32, the first in the low bits.

This module imports numba: import it where the kernel is built.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.core import errors
from numba.cuda.extending import intrinsic

_LETTER = {types.uint32: "r", types.int32: "r", types.uint64: "l", types.float32: "f", types.float64: "d"}
_IR = {
    types.uint32: ir.IntType(32),
    types.int32: ir.IntType(32),
    types.uint64: ir.IntType(64),
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
}
_SHARED_SPACE = 3  # NVVM's address space of shared memory
_NONE: frozenset[int] = frozenset()
_U32, _U64, _F32, _F64 = types.uint32, types.uint64, types.float32, types.float64


def _instruction(ptx: str, returns: Any, *takes: Any, memory: bool = False, constant: frozenset[int] = _NONE) -> Any:
    """A function to call in kernels that is the one instruction `ptx`.

    ptx      with {d} for what it returns ({d0}, {d1}, ... for its parts) and {0}, {1}, ... for its arguments
    returns  numba type of the result: a scalar, a UniTuple, or void
    takes    numba types of the arguments (what a kernel passes is converted)
    memory   whether it accesses memory, so that no access may be moved across it
    constant   positions of the arguments that are part of the instruction: the compiler must find their values, be it
               by unrolling a loop
    """

    return intrinsic(
        _with_arity(lambda: (returns(*takes), _generator(ptx, returns, takes, memory, constant)), len(takes))
    )


def _generator(ptx: str, returns: Any, takes: Sequence[Any], memory: bool, constant: frozenset[int] = _NONE) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        outputs = _scalars(returns)
        names = iter(f"${i}" for i in range(1000))
        operands = {f"d{i}": f"${i}" for i in range(len(outputs))} | {"d": _operand(returns, names)}
        places = [_operand(taken, names) for taken in takes]
        values: list[Any] = []
        for taken, argument in zip(takes, arguments, strict=True):
            values += _unpack(builder, argument) if isinstance(taken, types.UniTuple) else [argument]
        letters = [f"=&{_LETTER[one]}" for one in outputs]  # "&": the text may write them before it reads all
        for i, taken in enumerate(takes):
            letters += ["n" if i in constant else _LETTER[one] for one in _scalars(taken)]
        result = _ir_type(outputs)
        form = ir.FunctionType(result, [value.type for value in values])
        text = ptx.format(*places, **operands)
        clobbers = ["~{memory}"] if memory else []
        assembly = ir.InlineAsm(form, text, ",".join(letters + clobbers), side_effect=memory)
        # convergent: the lanes of a warp execute it together, so it may not be moved into a branch
        called = builder.call(assembly, values, attrs=("convergent", "nounwind"))
        if not outputs:
            return context.get_dummy_value()
        if not isinstance(returns, types.UniTuple):
            return called
        parts = [builder.extract_value(called, i) for i in range(len(outputs))]
        return context.make_tuple(builder, returns, parts)

    return generate


def _with_arity(typed: Callable[..., Any], count: int) -> Callable[..., Any]:
    """numba counts an intrinsic's parameters."""
    forms: tuple[Callable[..., Any], ...] = (
        lambda typingctx: typed(),
        lambda typingctx, a: typed(),
        lambda typingctx, a, b: typed(),
        lambda typingctx, a, b, c: typed(),
        lambda typingctx, a, b, c, d: typed(),
        lambda typingctx, a, b, c, d, e: typed(),
        lambda typingctx, a, b, c, d, e, f: typed(),
    )
    return forms[count]


def _scalars(one: Any) -> list[Any]:
    if isinstance(one, types.UniTuple):
        return [one.dtype] * one.count
    return [] if one == types.void else [one]


def _operand(one: Any, names: Any) -> str:
    """How the assembly writes an operand: `$3`, or `{$3, $4}` for a tuple."""
    places = [next(names) for _ in _scalars(one)]
    return "{" + ", ".join(places) + "}" if isinstance(one, types.UniTuple) else "".join(places)


def _unpack(builder: Any, value: Any) -> list[Any]:
    return [builder.extract_value(value, i) for i in range(value.type.count)]


def _ir_type(outputs: list[Any]) -> Any:
    if not outputs:
        return ir.VoidType()
    return _IR[outputs[0]] if len(outputs) == 1 else ir.LiteralStructType([_IR[one] for one in outputs])


def _tuple(one: Any, count: int) -> Any:
    return types.UniTuple(one, count)


_U32X2, _U32X4 = _tuple(_U32, 2), _tuple(_U32, 4)
_F32X2, _F32X4, _F64X2, _S32X4 = _tuple(_F32, 2), _tuple(_F32, 4), _tuple(_F64, 2), _tuple(types.int32, 4)


# Addresses


def _address(space: int, returns: Any) -> Any:
    def typed(typingctx: Any, array: Any) -> Any:
        if not isinstance(array, types.Array):
            return None

        def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            pointer = builder.addrspacecast(data, ir.PointerType(data.type.pointee, addrspace=space))
            return builder.ptrtoint(pointer, _IR[returns])

        return returns(array), generate

    return intrinsic(typed)


# global_address(array) -> uint64, shared_address(array) -> uint32: of the array's first element, in bytes.
global_address = _address(1, _U64)
shared_address = _address(_SHARED_SPACE, _U32)

# Loads and stores: load_global_b32x4(address) -> four uint32, store_shared_b32x4(address, values); _b16 has its
# value in the low half of a uint32. The _if forms take a last argument: where it is 0 a load gives zeros without an
# access, and a store does nothing. They cost no branch, so a loop over them unrolls.

_FLAG = ".reg .pred p; setp.ne.u32 p, "


def _load(space: str, kind: str, returns: Any) -> Any:
    return _instruction(f"ld.{space}.{kind} {{d}}, [{{0}}];", returns, _U64 if space == "global" else _U32, memory=True)


def _store(space: str, kind: str, value: Any) -> Any:
    address = _U64 if space == "global" else _U32
    return _instruction(f"st.{space}.{kind} [{{0}}], {{1}};", types.void, address, value, memory=True)


load_global_f32x4, load_global_b32x4 = _load("global", "v4.f32", _F32X4), _load("global", "v4.b32", _U32X4)
load_shared_f32x4, load_shared_b32x4 = _load("shared", "v4.f32", _F32X4), _load("shared", "v4.b32", _U32X4)
store_global_f32x4, store_global_b32x4 = _store("global", "v4.f32", _F32X4), _store("global", "v4.b32", _U32X4)
store_shared_f32x4, store_shared_b32x4 = _store("shared", "v4.f32", _F32X4), _store("shared", "v4.b32", _U32X4)
load_global_f32x2, store_global_f32x2 = _load("global", "v2.f32", _F32X2), _store("global", "v2.f32", _F32X2)

_STORE_B16 = "{{ .reg .b16 h; cvt.u16.u32 h, {1}; st.shared.b16 [{0}], h; }}"
store_shared_b16 = _instruction(_STORE_B16, types.void, _U32, _U32, memory=True)

_LOAD_B16_IF = (
    f"{{{{ {_FLAG}{{1}}, 0; .reg .b16 h; mov.b16 h, 0; @p ld.global.b16 h, [{{0}}]; cvt.u32.u16 {{d}}, h; }}}}"
)
_LOAD_F32_IF = f"{{{{ {_FLAG}{{1}}, 0; mov.b32 {{d}}, 0; @p ld.global.f32 {{d}}, [{{0}}]; }}}}"
_ZEROS = " ".join(f"mov.b32 {{d{i}}}, 0;" for i in range(4))
_LOAD_X4_IF = f"{{{{ {_FLAG}{{1}}, 0; {_ZEROS} @p ld.global.v4.b32 {{d}}, [{{0}}]; }}}}"
_STORE_F32_IF = f"{{{{ {_FLAG}{{2}}, 0; @p st.global.f32 [{{0}}], {{1}}; }}}}"
load_global_b16_if = _instruction(_LOAD_B16_IF, _U32, _U64, _U32, memory=True)
load_global_f32_if = _instruction(_LOAD_F32_IF, _F32, _U64, _U32, memory=True)
load_global_b32x4_if = _instruction(_LOAD_X4_IF, _U32X4, _U64, _U32, memory=True)
_LOAD_S32_IF = f"{{{{ {_FLAG}{{1}}, 0; mov.b32 {{d}}, 0; @p ld.global.s32 {{d}}, [{{0}}]; }}}}"
_STORE_S32_IF = f"{{{{ {_FLAG}{{2}}, 0; @p st.global.s32 [{{0}}], {{1}}; }}}}"
load_global_s32_if = _instruction(_LOAD_S32_IF, types.int32, _U64, _U32, memory=True)
store_global_s32_if = _instruction(_STORE_S32_IF, types.void, _U64, types.int32, _U32, memory=True)
# As load_global_b32x4_if, but where the flag is 0 the result is undefined
_LOAD_X4_OR_NOT = f"{{{{ {_FLAG}{{1}}, 0; @p ld.global.v4.b32 {{d}}, [{{0}}]; }}}}"
load_global_b32x4_or_not = _instruction(_LOAD_X4_OR_NOT, _U32X4, _U64, _U32, memory=True)
store_global_f32_if = _instruction(_STORE_F32_IF, types.void, _U64, _F32, _U32, memory=True)
_STORE_F32X2_IF = f"{{{{ {_FLAG}{{2}}, 0; @p st.global.v2.f32 [{{0}}], {{1}}; }}}}"
store_global_f32x2_if = _instruction(_STORE_F32X2_IF, types.void, _U64, _F32X2, _U32, memory=True)
_LOAD_F32X2_IF = f"{{{{ {_FLAG}{{1}}, 0; mov.b32 {{d0}}, 0; mov.b32 {{d1}}, 0; @p ld.global.v2.f32 {{d}}, [{{0}}]; }}}}"
load_global_f32x2_if = _instruction(_LOAD_F32X2_IF, _F32X2, _U64, _U32, memory=True)

# red_add_global_f32_if(address, value, flag): adds to the word atomically, where the flag is not 0.
_RED_F32_IF = f"{{{{ {_FLAG}{{2}}, 0; @p red.global.add.f32 [{{0}}], {{1}}; }}}}"
red_add_global_f32_if = _instruction(_RED_F32_IF, types.void, _U64, _F32, _U32, memory=True)

# Asynchronous copies, global to shared memory: cp_async_cg_16(to, source, size). Of the 4, 8 or 16 bytes that are
# written the first `size` are read, the others are zero; with size 0 the source is not accessed. `cg` goes past L1.


def _cp_async(cache: str, size_bytes: int) -> Any:
    ptx = f"cp.async.{cache}.shared.global [{{0}}], [{{1}}], {size_bytes}, {{2}};"
    return _instruction(ptx, types.void, _U32, _U64, _U32, memory=True)


cp_async_ca_4, cp_async_ca_8, cp_async_ca_16 = _cp_async("ca", 4), _cp_async("ca", 8), _cp_async("ca", 16)
cp_async_cg_16 = _cp_async("cg", 16)
# cp_async_cg_16_if(to, to_offset, source, source_offset, flag, here): all 16 bytes, or zeros where the flag is 0;
# nothing at all where `here` is 0. The offsets are constants, which the instruction itself adds to the addresses.
_CP_ASYNC_IF = (
    "{{ .reg .pred p, q; setp.eq.u32 p, {4}, 0; setp.ne.u32 q, {5}, 0; "
    "@q cp.async.cg.shared.global [{0}+{1}], [{2}+{3}], 16, p; }}"
)
cp_async_cg_16_if = _instruction(
    _CP_ASYNC_IF, types.void, _U32, _U32, _U64, _U32, _U32, _U32, memory=True, constant=frozenset({1, 3})
)
# The copies since the last commit become a group; wait_group(n) waits until at most the n latest groups are under way.
# Each thread waits for its own copies only: a barrier must follow before others' data are read.
cp_async_commit_group = _instruction("cp.async.commit_group;", types.void, memory=True)


def _wait_group(typingctx: Any, pending: Any) -> Any:
    if not isinstance(pending, types.IntegerLiteral):
        raise errors.RequireLiteralValue("cp_async_wait_group takes a constant")

    def generate(context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        text = f"cp.async.wait_group {pending.literal_value};"
        form = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(form, text, "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(pending), generate


cp_async_wait_group = intrinsic(_wait_group)

# Matrices of 8 x 8 16-bit elements, shared memory to registers: lane 8 i + j gives the address of row j of matrix i (16
# bytes, aligned to 16); lane 4 r + c receives elements (r, 2 c) and (r, 2 c + 1) of each matrix, of its transpose with
# _trans. Of x1 and x2, the addresses of the lanes above 8 and 16 do not matter. Returns uint32, a tuple for x2 and x4.


def _ldmatrix(count: int, trans: str = "", offset: bool = False) -> Any:
    returns = _U32 if count == 1 else _tuple(_U32, count)
    place = "{{{d}}}" if count == 1 else "{d}"
    ptx = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {place}, [{{0}}{'+{1}' if offset else ''}];"
    if offset:
        return _instruction(ptx, returns, _U32, _U32, memory=True, constant=frozenset({1}))
    return _instruction(ptx, returns, _U32, memory=True)


ldmatrix_x1, ldmatrix_x2, ldmatrix_x4 = _ldmatrix(1), _ldmatrix(2), _ldmatrix(4)
ldmatrix_x1_trans, ldmatrix_x2_trans, ldmatrix_x4_trans = (_ldmatrix(count, ".trans") for count in (1, 2, 4))

# ldmatrix_x4_at(address, offset): the offset, a constant, is added by the instruction itself and takes no register.
ldmatrix_x4_at, ldmatrix_x4_trans_at = _ldmatrix(4, "", True), _ldmatrix(4, ".trans", True)

# Matrix multiply-add of a warp: mma(a, b, c) -> a @ b + c, fragments as tuples. With g = lane // 4 and t = lane % 4,
# a lane of m16n8k16 holds, in pairs: of A [16, 16] rows (g, g + 8, g, g + 8) at columns 2 t, 2 t, 2 t + 8, 2 t + 8;
# of B [16, 8] column g at rows 2 t and 2 t + 8; of C [16, 8] columns 2 t and 2 t + 1 of row g, then of row g + 8.


_MMA = "mma.sync.aligned.{}.row.col.{} {{d}}, {{0}}, {{1}}, {{2}};"


def _mma(shape: str, types_: str, d: Any, a: Any, b: Any) -> Any:
    return _instruction(_MMA.format(shape, types_), d, a, b, d)


mma_m16n8k16_f16 = _mma("m16n8k16", "f32.f16.f16.f32", _F32X4, _U32X4, _U32X2)
mma_m16n8k16_bf16 = _mma("m16n8k16", "f32.bf16.bf16.f32", _F32X4, _U32X4, _U32X2)
mma_m16n8k8_tf32 = _mma("m16n8k8", "f32.tf32.tf32.f32", _F32X4, _U32X4, _U32X2)
mma_m16n8k32_s8 = _mma("m16n8k32", "s32.s8.s8.s32", _S32X4, _U32X4, _U32X2)
mma_m8n8k4_f64 = _mma("m8n8k4", "f64.f64.f64.f64", _F64X2, _tuple(_F64, 1), _tuple(_F64, 1))


def _mma_of(typingctx: Any, array: Any, a: Any, b: Any, c: Any) -> Any:
    if not isinstance(array, types.Array) or array.dtype not in (types.float16, types.bfloat16):
        return None
    name = "bf16" if array.dtype == types.bfloat16 else "f16"
    takes = (_U32X4, _U32X2, _F32X4)
    inner = _generator(_MMA.format("m16n8k16", f"f32.{name}.{name}.f32"), _F32X4, takes, False)
    signature = _F32X4(array, *takes)
    return signature, lambda context, builder, _, arguments: inner(context, builder, signature, arguments[1:])


# mma_m16n8k16(array, a, b, c): the one of the two above for the elements of `array`.
mma_m16n8k16 = intrinsic(_mma_of)

# tf32_of(float32) -> uint32: rounded to TF32's 10 bits of fraction, to nearest, ties away from zero.
tf32_of = _instruction("cvt.rna.tf32.f32 {d}, {0};", _U32, _F32)
# dp4a(a, b, c) -> c + the four products of the signed bytes of a and b, int32.
dp4a_s8 = _instruction("dp4a.s32.s32 {d}, {0}, {1}, {2};", types.int32, _U32, _U32, types.int32)


# floats_of(array, uint32) -> two float32: what a packed pair of the elements of `array`, f16 or bf16, is worth.
_FLOATS = {
    types.float16: "{{ .reg .b16 l, h; mov.b32 {{l, h}}, {0}; cvt.f32.f16 {d0}, l; cvt.f32.f16 {d1}, h; }}",
    types.bfloat16: "shl.b32 {d0}, {0}, 16; and.b32 {d1}, {0}, 0xffff0000;",
}


def _floats_of(typingctx: Any, array: Any, pair: Any) -> Any:
    if not isinstance(array, types.Array) or array.dtype not in _FLOATS:
        return None
    inner = _generator(_FLOATS[array.dtype], _F32X2, (_U32,), False)
    signature = _F32X2(array, _U32)
    return signature, lambda context, builder, _, arguments: inner(context, builder, signature, arguments[1:])


floats_of = intrinsic(_floats_of)
