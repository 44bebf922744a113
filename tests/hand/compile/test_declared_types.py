"""What kernels declare their parameters as, from text and symbols written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmsim.compile.declared import declared_types, dtype_of
from gemmsim.compile.source import CubinKernel, CudaKernel, PtxKernel

SOURCE = """
#define real float
namespace { struct Large { int x; }; }
extern "C" {
__device__ void helper(double x);
__global__ void __launch_bounds__(128, 2) f(const float* __restrict__ a, /* , */ int n, unsigned long long, real x,
                                            const __half h, float out[], const __grid_constant__ Large p) { }
}
#ifdef DOUBLE
extern "C" __global__ void g(double x) { }
#else
extern "C" __global__ void g(float x) { }
#endif
extern "C" __global__ void none() { }
"""
PTX = """
.visible .entry f(
    .param .u64 .ptr .global .align 16 f_param_0,
    .param .u32 f_param_1, .param .f32 f_param_2,
    .param .align 8 .b8 f_param_3[16]
)
"""
PATH = Path("k.cu")


def test_the_types_of_a_source() -> None:
    source = CudaKernel(SOURCE, PATH)
    types = declared_types(source, "f")
    assert types == ("float *", "int", "unsigned long long", "", "__half", "float*", "Large")
    assert [dtype_of(one) for one in types] == [None, "i32", "u64", None, "f16", None, None]
    assert declared_types(source, "none") == ()
    assert declared_types(source, "g") == ()  # which of the two is compiled is the preprocessor's to say
    assert declared_types(source, "h") == ()


def test_the_types_of_a_symbol_go_before_the_source() -> None:
    assert declared_types(CudaKernel(SOURCE, PATH), "_Z1fPKfi") == ("float const*", "int")
    assert declared_types(CubinKernel(b"", PATH), "_Z1fIfEvPT_S0_") == ("float*", "float")
    assert declared_types(CubinKernel(b"", PATH), "f") == ()
    assert declared_types(CubinKernel(b"", PATH), "_Z1fPKfi", "numba") == ()  # an array is several parameters there


def test_the_types_of_ptx() -> None:
    types = declared_types(PtxKernel(PTX, PATH), "f")
    assert types == (".u64", ".u32", ".f32", ".b8")
    assert [dtype_of(one) for one in types] == ["u64", "u32", "f32", None]


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [
        ("unsigned", "u32"),
        ("long long int", "i64"),
        ("signed char", "i8"),
        ("short unsigned", "u16"),
        ("const double", "f64"),
        ("std::uint8_t", "u8"),
        ("size_t", "u64"),
        ("__nv_bfloat16", "bf16"),
        ("float*", None),
        ("float4", None),
    ],
)
def test_the_dtype_of_a_declared_number(declared: str, dtype: str | None) -> None:
    assert dtype_of(declared) == dtype
