"""Holds the numbers that a launch passes against the types that the kernel's source declares."""

from __future__ import annotations

from collections.abc import Sequence

from gemmsim.compile.declared import dtype_of
from gemmsim.support.dtypes import DTYPES, FLOATS
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument, Launch


def check_numbers(kernel: str, types: Sequence[str], launch: Launch) -> None:
    """Raises GemmsimError where a number is passed as a float and declared as an integer, or the other way round.

    kernel  its name, for the message
    types   of its parameters, as `compile.declared.declared_types` says them

    Nobody else would notice, as the machine code takes any four bytes for an `int`. Numbers of another size than the
    parameter's are refused when the parameters are laid out.
    """
    if len(types) != len(launch.passed):
        return
    for number, (declared, passed) in enumerate(zip(types, launch.passed, strict=True)):
        if isinstance(passed, int) and (said := _contradiction(declared, launch.args[passed])):
            raise GemmsimError(f"kernel '{kernel}': parameter {number} is declared as {said}")


def _contradiction(declared: str, given: Argument) -> str | None:
    """Say how an argument contradicts the type of its parameter; None where it does not."""
    wanted = dtype_of(declared)
    if wanted is None:
        wrong, right = declared.endswith("*") and _is_double(given), "an array"
    elif given.shape:
        wrong, right = wanted == "f64", "f64=..."  # an integer may hold an address
    else:
        same_size = DTYPES[given.dtype].item_bytes == DTYPES[wanted].item_bytes
        wrong, right = same_size and not _may_stand_for(given.dtype, wanted), f"{wanted}=..."
    shown = "an array" if given.shape else given.dtype
    return f"'{declared}', but {shown} is given: pass {right}" if wrong else None


def _may_stand_for(given: str, wanted: str) -> bool:
    """Whether a number of the type `given` may be passed for one of the type `wanted`, which has as many bytes."""
    if wanted in ("f32", "f64"):
        return given in FLOATS
    if wanted in FLOATS:  # NumPy lacks most of these types, so that programs have their bits as unsigned integers
        return given == wanted or given.startswith("u")
    return given not in FLOATS


def _is_double(given: Argument) -> bool:
    return not given.shape and given.dtype == "f64"
