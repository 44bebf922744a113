"""Makes a case's matrices on the host and the parameters of its kernel, and checks whether its C is right."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.arrays import NUMPY_DTYPES, random_array
from gemmsim.launch.tensor_maps import MAP_BYTES, MapFields, read
from gemmsim.support.bit_patterns import to_numbers
from gemmsim.support.dtypes import DTYPES

FULL_CHECK = 1024  # every element of C is checked where none of M, N and K is larger than this
SAMPLED_ROWS = 64  # the number of rows of C that are checked where M, N or K is larger than FULL_CHECK
_FP8_SUMS = 2.0**-13  # wgmma keeps 13 places of sums of fp8 (gemmsim/isa/tensor_sums.toml)
_SCALARS: dict[str, Any] = {"f32": ctypes.c_float, "f64": ctypes.c_double, "i32": ctypes.c_int32}


@dataclass(frozen=True)
class Host:
    """The contents of a kernel's array arguments on the host, by name.

    A floating-point C is filled with NaN, so that elements that the kernel never writes show.
    """

    arrays: dict[str, NDArray[Any]]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


def host_operands(problem: Mapping[str, Any], launch: Mapping[str, Any]) -> Host:
    """Make the arrays of a record's launch: A, B and bias are random but the same at every call."""
    names = launch.get("arguments", ("A", "B", "C"))
    zeros = launch.get("zeros", {})
    m, n, k, dtype, result = (problem[key] for key in ("m", "n", "k", "dtype", "result_dtype"))
    shape_b = (n, k) if problem.get("b_transposed") else (k, n)
    arrays: dict[str, NDArray[Any]] = {"A": _random(dtype, (m, k), 1), "B": _random(dtype, shape_b, 2)}
    if result in ("f16", "f32", "f64"):
        arrays["C"] = np.full((m, n), np.nan, NUMPY_DTYPES[result])
    else:
        arrays["C"] = np.full((m, n), 0x7FC0 if result == "bf16" else -1, NUMPY_DTYPES[result])  # 0x7FC0: NaN
    if "bias" in names:
        arrays["bias"] = _random(result, (n,), 3)
    arrays |= {name: np.full(of["shape"], of.get("value", 0), NUMPY_DTYPES[of["dtype"]]) for name, of in zeros.items()}
    return Host({name: arrays[name] for name in ("A", "B", "C", "bias", *zeros) if name in names})


@lru_cache(maxsize=6)
def _random(dtype: str, shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    return random_array(dtype, shape, np.random.default_rng(seed))


def parameters(
    abi: str, names: Sequence[str], problem: Mapping[str, Any], arrays: Mapping[str, Any], maps: Mapping[str, Any]
) -> list[Any]:
    """Return the values that a kernel takes as ctypes, in the order of its arguments `names`.

    maps  ctypes values of the arguments that are tensor maps
    With the ABI "numba", a device array in `arrays` becomes 5 + 2 ndim words. With the ABI "c", it becomes its address.
    """
    values: list[Any] = []
    for name in names:
        if name in maps:
            values.append(maps[name])
        elif name in arrays:
            values += _array(arrays[name], abi)
        elif name in ("m", "n", "k"):
            values.append(ctypes.c_int32(problem[name]))
        else:
            default = {"alpha": 1, "beta": 0}[name]
            number = problem.get(name, default)
            scalar = _SCALARS[problem["result_dtype"]]
            values.append(scalar(int(number) if problem["result_dtype"] == "i32" else float(number)))
    return values


def packed_parameter(
    parameter: Mapping[str, Any],
    names: Sequence[str],
    arrays: Mapping[str, Any],
    encode: Callable[[MapFields, int, int], bytes],
) -> Any:
    """Return a parameter that a record lists as bytes, with the arrays' addresses, as a ctypes value.

    encode  returns a tensor map's bytes, given what it says, the address and the promotion to L2
    """
    content = bytearray.fromhex(parameter["bytes"])
    for place in parameter["addresses"]:
        address = arrays[names[place["argument"]]].__cuda_array_interface__["data"][0] + place["plus_bytes"]
        content[place["at_byte"] : place["at_byte"] + 8] = address.to_bytes(8, "little")
    for one in parameter.get("maps", ()):
        place = slice(one["at_byte"], one["at_byte"] + MAP_BYTES)
        fields, address = read(bytes(content[place])), int.from_bytes(content[place][:8], "little")
        content[place] = encode(fields, address, one["l2_promotion"])
    return (ctypes.c_char * len(content)).from_buffer(content)


def _array(array: Any, abi: str) -> list[Any]:
    address = ctypes.c_void_p(array.__cuda_array_interface__["data"][0])
    if abi == "c":
        return [address]
    item = array.dtype.itemsize
    strides = [item]
    for size in reversed(array.shape[1:]):
        strides.insert(0, strides[0] * size)
    head = [ctypes.c_void_p(0), ctypes.c_void_p(0), ctypes.c_int64(int(np.prod(array.shape))), ctypes.c_int64(item)]
    return [*head, address, *(ctypes.c_int64(number) for number in (*array.shape, *strides))]


def check(problem: Mapping[str, Any], host: Host, result: NDArray[Any]) -> dict[str, Any]:
    """Check `result`, the C that a kernel computed, and return the record's `correctness`.

    FULL_CHECK and SAMPLED_ROWS say which elements are checked. The allowed error is the bound of a K-term sum (Higham,
    section 3.1), as in `gemmsim analyze`; one rounding is added where C has a narrower dtype than the sums.
    """
    m, n, k = (problem[key] for key in ("m", "n", "k"))
    dtype, kind = problem["dtype"], problem["result_dtype"]
    rows = np.arange(m)
    if max(m, n, k) > FULL_CHECK and m > SAMPLED_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(m, SAMPLED_ROWS, replace=False))
    a = as_float64(host.arrays["A"][rows], dtype)
    b = as_float64(host.arrays["B"], dtype)
    b = b.T if problem.get("b_transposed") else b
    alpha = float(problem.get("alpha", 1))
    reference, terms = alpha * (a @ b), abs(alpha) * (np.abs(a) @ np.abs(b))
    rounded = (1 + problem.get("operand_roundoff", 0.0)) ** 2
    # Sums for a C of halves are made in f32 and rounded once at the end.
    of_sums = DTYPES[kind if kind in ("f64", "i32") else "f32"].unit_roundoff
    if dtype == "e4m3":
        of_sums = _FP8_SUMS
    of_store = DTYPES[kind].unit_roundoff if kind in ("f16", "bf16") else 0.0
    bound = (k + 3) * of_sums * rounded * terms + (rounded - 1) * terms
    if "bias" in host.arrays:
        bias = as_float64(host.arrays["bias"], kind)
        reference = reference + bias
        bound = bound + (k + 3) * of_sums * np.abs(bias)
    if problem.get("relu"):
        reference = np.maximum(reference, 0)
    bound = bound + of_store * (np.abs(reference) + bound)
    c = as_float64(result, kind)
    error = np.abs(c[rows] - reference)
    relative = float(np.max(error)) / (float(np.max(np.abs(reference))) or 1.0)
    finite = bool(np.isfinite(c).all())
    right = finite and bool((error <= bound).all())
    found: dict[str, Any] = {"status": "correct" if right else "wrong", "rows_checked": len(rows)}
    if np.isfinite(relative):
        found["relative_error"] = float(f"{relative:.3g}")
    if not right:
        found["why"] = (
            "an element was never written or is not finite" if not finite else "beyond what rounding explains"
        )
    return found


def as_float64(array: NDArray[Any], dtype: str) -> NDArray[np.float64]:
    """Return the values of an array as float64; an array of bf16 or fp8 holds bit patterns."""
    return to_numbers(dtype, array).astype(np.float64)
