"""Makes the id, problem and launch of a record of a rung (a kernel of the ladder) from the rung's `KernelInfo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gemmsim.launch.cases import checked_dtype, checked_tunables
from gemmsim.launch.ladder import kernel_info
from gemmsim.support.errors import GemmsimError

from .spec import Spec, case_id

if TYPE_CHECKING:
    from gemmsim.launch.ladder import KernelInfo


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder with the dtypes and tunables of one case.

    tunables  the values of all tunables of the rung, by name
    zeros     name -> (dtype, shape) of each argument of the kernel that is an array of zeros
    """

    info: KernelInfo
    dtype: str
    result_dtype: str
    tunables: dict[str, int]
    zeros: dict[str, tuple[str, tuple[int, ...]]]


def rung_of(spec: Spec) -> tuple[Rung, dict[str, Any]]:
    """Return the `Rung` of a spec, and its record without results: `id`, `problem` and `launch`.

    Raises GemmsimError, one line, for an unknown rung, or a dtype, tunable or size that the rung does not take.
    """
    info = kernel_info(spec.kernel)
    tunables = checked_tunables(info, spec.tunables)
    dtype = checked_dtype(info, spec.dtype)
    try:
        shape = info.launch(spec.m, spec.n, spec.k, tunables)
    except ValueError as error:
        raise GemmsimError(f"kernel '{info.name}': {error}") from None
    zeros = info.zeros(spec.m, spec.n, spec.k, tunables) if info.zeros else {}
    rung = Rung(info, dtype, info.result_dtype(dtype), tunables, zeros)
    problem = {
        "m": spec.m, "n": spec.n, "k": spec.k, "dtype": dtype, "result_dtype": rung.result_dtype, "alpha": 1, "beta": 0,
        "b_transposed": info.b_transposed, "relu": info.relu, "operand_roundoff": info.operand_roundoff,
    }  # fmt: skip
    launch: dict[str, Any] = {
        "grid": list(shape.grid),
        "block": list(shape.block),
        "dynamic_shared_bytes": shape.dynamic_shared_bytes,
        "arguments": list(info.arguments),
    }
    if zeros:
        launch["zeros"] = {name: {"dtype": kind, "shape": list(dims)} for name, (kind, dims) in zeros.items()}
    maps = info.cuda.maps(dtype, tunables) if info.cuda else {}
    if maps:
        launch["maps"] = {name: {"array": one.array, "box": list(one.box)} for name, one in maps.items()}
    name = case_id(info.name, dtype, tunables, spec.m, spec.n, spec.k)
    return rung, {"id": name, "problem": problem, "launch": launch}
