"""How a launch is written: --arg, --grid and key=value; and the arrays that are drawn for it."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.gpu import load_gpu
from gemmsim.launch.argument_text import parse_argument
from gemmsim.launch.arrays import (
    MAX_ARRAY_BYTES,
    MAX_PERIODIC_BYTES,
    NUMPY_DTYPES,
    PERIODIC_ABOVE,
    Contents,
    array_argument,
    random_array,
    with_arrays,
)
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.notation import parse_assignments, parse_dims
from gemmsim.support.bit_patterns import bf16_bits
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch


def array(text: str, seed: int = 7) -> np.ndarray:
    """What the kernel finds in the array that --arg describes."""
    launch = Launch((1, 1, 1), (1, 1, 1), (parse_argument(text),))
    return np.asarray(with_arrays(launch, seed).args[0].value)


@pytest.mark.parametrize(("text", "dims"), [("8", (8, 1, 1)), ("8,4", (8, 4, 1)), (" 8, 4 ,2", (8, 4, 2))])
def test_dims(text: str, dims: tuple[int, int, int]) -> None:
    assert parse_dims(text, "--grid") == dims


@pytest.mark.parametrize("text", ["", "8,", "8,8,8,8", "a", "1.5", "0", "8,0", "-1", "\u0668"])
def test_bad_dims(text: str) -> None:
    with pytest.raises(GemmsimError, match="--block"):
        parse_dims(text, "--block")


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [("i32=256", "i32", 256), ("f32=1.0", "f32", 1.0), ("u8=0xff", "u8", 255), ("i8=-128", "i8", -128)],
)
def test_scalars(text: str, dtype: str, value: float) -> None:
    argument = parse_argument(text)
    assert (argument.dtype, argument.shape, argument.value) == (dtype, (), value)


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_arrays_are_random_by_seed(dtype: str) -> None:
    values = array(f"{dtype}[30, 20]")
    assert values.shape == (30, 10 if dtype in ("s4", "u4") else 20)  # two elements a byte
    assert values.dtype == NUMPY_DTYPES[dtype] and values.flags.c_contiguous
    np.testing.assert_array_equal(values, array(f"{dtype}[30,20]"))
    assert (values != array(f"{dtype}[30,20]", seed=8)).any() and len(np.unique(values)) > (
        1 if dtype == "bool" else 10
    )


def test_arrays_of_a_launch_are_drawn_in_order_and_given_ones_stay() -> None:
    there = Argument("f32", (4,), np.arange(4, dtype=np.float32))
    first, number, last = (parse_argument(text) for text in ("f32[6]", "i32=3", "i8[5]"))
    args = with_arrays(Launch((1, 1, 1), (1, 1, 1), (first, there, number, last)), 7).args
    random = np.random.default_rng(7)
    np.testing.assert_array_equal(np.asarray(args[0].value), random_array("f32", (6,), random))
    np.testing.assert_array_equal(np.asarray(args[3].value), random_array("i8", (5,), random))
    assert args[1] is there and args[2].value == 3


def test_large_arrays_repeat_a_run_where_they_may() -> None:
    """A run of f64 is 1021 pages of 512 elements."""
    run = 1021 * 512
    described = (Contents(), Contents(periodic=False), Contents(math.nan))
    args = tuple(array_argument("A", "f64", (3, PERIODIC_ABOVE), contents) for contents in described)
    repeated, drawn, unread = (
        np.asarray(one.value).ravel() for one in with_arrays(Launch((1, 1, 1), (1, 1, 1), args), 1).args
    )
    np.testing.assert_array_equal(repeated[:run], repeated[run : 2 * run])
    assert len(np.unique(drawn)) > 0.99 * drawn.size
    assert np.isnan(unread).all() and unread.size == drawn.size == repeated.size


def test_random_floats_lie_around_zero() -> None:
    values = random_array("f32", (10_000,), np.random.default_rng(7))
    assert -0.5 <= values.min() < -0.49 and 0.49 < values.max() < 0.5


def test_filled_arrays() -> None:
    assert array("f32[2,3]=0.5").tolist() == [[0.5] * 3] * 2
    assert array("i8[2]=-3").tolist() == [-3, -3]
    assert array("bf16[2]=1").tolist() == [0x3F80, 0x3F80]


def test_bf16_rounds_to_nearest_even() -> None:
    """0x3f808000 lies halfway between 0x3f80 and 0x3f81: the even one. 0x3f818000 likewise goes up to 0x3f82."""
    bits = np.array([0x3F808000, 0x3F808001, 0x3F818000, 0x3F817FFF], np.uint32)
    assert bf16_bits(bits.view(np.float32)).tolist() == [0x3F80, 0x3F81, 0x3F82, 0x3F81]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**99), max_value=2.0**99))
def test_bf16_is_the_nearest(value: float) -> None:
    """No neighbouring bfloat16 is nearer."""
    bits = int(bf16_bits(np.array([value], np.float32))[0])
    near = np.array([bits - 1 & 0xFFFF, bits, bits + 1 & 0xFFFF], np.uint32)
    around = (near << 16).view(np.float32).astype(np.float64)
    distance = np.abs(around[np.isfinite(around)] - value)
    assert abs(float(around[1]) - value) == distance.min()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "malformed"),
        ("f32", "a scalar needs a value, as in f32=1"),
        ("fp32[2]", r"unknown type 'fp32' \(did you mean 'f32'\?\)"),
        ("f32[]", "must be positive integers"),
        ("f32[0,2]", "must be positive integers"),
        ("f32[2,-1]", "must be positive integers"),
        ("f32[2", "malformed"),
        ("f32[2]=x", "'x' is not a number"),
        ("i32=1.5", "'1.5' is not an integer"),
        ("i8=128", "128 does not fit i8, which holds -128 to 127"),
        ("u32=-1", "does not fit u32"),
        ("f64[100000,100000]", "74.5 GiB, but an array may have 8 GiB at most"),
        ("f32[2]=__import__('os')", "is not a number"),
    ],
)
def test_bad_arguments(text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        parse_argument(text)
    assert "\n" not in str(caught.value)


def test_how_large_an_array_may_be() -> None:
    """One that repeats a period takes no memory, so that it may be larger than one whose elements are all there."""
    sparse, dense = MAX_PERIODIC_BYTES // 4, MAX_ARRAY_BYTES // 4
    big = array_argument("C", "f32", (sparse,), Contents(0.0))
    (made,) = with_arrays(Launch((1, 1, 1), (1, 1, 1), (big,)), 1).args
    assert np.asarray(made.value)[:: sparse // 7].tolist() == [0.0] * 8
    array_argument("C", "f32", (dense,), Contents(0.0, periodic=False))
    for size, contents in ((sparse + 1, Contents()), (dense + 1, Contents(periodic=False))):
        limit = (size - 1) >> 28
        with pytest.raises(GemmsimError, match=rf"C: {limit}.0 GiB, but an array may have {limit} GiB at most"):
            array_argument("C", "f32", (size,), contents)


def test_assignments() -> None:
    assert parse_assignments(["tile=16", " a = b "], "--set") == {"tile": "16", "a": "b"}
    for bad in (["tile"], ["=1"], ["tile="], ["a=1", "a=2"]):
        with pytest.raises(GemmsimError, match="--set"):
            parse_assignments(bad, "--set")


def test_a_spec_can_be_sent_to_another_process_and_is_small() -> None:
    """A, B and C of 8192 take 768 MiB once they are drawn; most of the bytes here are the GPU's numbers and sources."""
    spec = ladder_launch(LadderCase("tiled", 8192, 8192, 8192, beta=1.0), load_gpu("h200"))
    sent = pickle.dumps(spec)
    assert len(sent) < 200_000 and pickle.loads(sent) == spec
