"""Makes the checks that --verify FORMULA and --reference ask for, before anything is compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmsim.launch.array_files import file_contents, members
from gemmsim.launch.items import argument_name
from gemmsim.launch.spec import FileCheck, FormulaCheck, GemmCheck
from gemmsim.support.dtypes import FLOATS
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.trace.types import Argument

WRITTEN = ".written"  # ends the name of a saved array that says which elements were stored


def array_names(args: Sequence[Argument], gemm: GemmCheck | None = None) -> dict[str, int]:
    """Return {name: position in `args`} of the arrays of a launch.

    gemm  says which arrays of a built-in kernel are A, B, C and bias; other arrays are called by their own name, or
          "arg2" by their position
    """
    names = {argument_name(one, at): at for at, one in enumerate(args) if one.shape}
    if gemm is None or any(args[at].name for at in (gemm.a, gemm.b, gemm.c)):
        return names
    known = {"A": gemm.a, "B": gemm.b, "C": gemm.c} | ({} if gemm.bias is None else {"bias": gemm.bias})
    return known | {name: at for name, at in names.items() if at not in known.values()}


def formula_check(
    text: str,
    args: Sequence[Argument],
    numbers: Mapping[str, float],
    accumulate: str | None,
    tolerance: float | None,
) -> FormulaCheck:
    """Read the formula of --verify.

    numbers     {name: value} of numbers that the formula may name, such as alpha and beta
    accumulate  of --accumulate, see `FormulaCheck`

    Raises GemmsimError where the formula cannot be read or does not fit the arrays.
    """
    from gemmsim.launch.formula import parse_formula

    if accumulate is not None and accumulate not in FLOATS:
        raise GemmsimError(f"--accumulate {accumulate}{nearest(accumulate, FLOATS)}: known are {', '.join(FLOATS)}")
    return FormulaCheck(parse_formula(text, args, array_names(args), numbers), accumulate, _checked(tolerance))


def file_check(text: str, names: Mapping[str, int], tolerance: float | None) -> FileCheck:
    """Read --reference: an .npz whose arrays have the names of the launch's, or NAME=FILE for one array.

    Raises GemmsimError where the file cannot be read, or names no array of the launch.
    """
    what = f"--reference {text}"
    name, equals, path = text.partition("=")
    wanted = {name: path}
    if not equals:
        if not text.endswith(".npz"):
            raise GemmsimError(f"{what}: say which array it is, as in --reference C={text}")
        held = [member for member in members(text, what) if not member.endswith(WRITTEN)]
        wanted = {member: f"{text}:{member}" for member in held}
    strange = [one for one in wanted if one not in names]
    if strange or not wanted:
        which = f"no array of the launch is called '{strange[0]}'" if strange else "it holds no array"
        raise GemmsimError(f"{what}: {which}: the launch has {', '.join(names) or 'none'}")
    arrays = tuple((names[one], one, file_contents(where, one, what)) for one, where in wanted.items())
    return FileCheck(arrays, _checked(tolerance))


def _checked(tolerance: float | None) -> float | None:
    if tolerance is not None and not 0 <= tolerance < float("inf"):
        raise GemmsimError(f"--tolerance {tolerance} must be 0 or more")
    return tolerance
