"""Numbers that are given for parameters of another kind."""

from __future__ import annotations

import pytest

from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.declared import check_numbers
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Launch


def _said(declared: str, given: str) -> str:
    arguments = parse_arguments([given])
    try:
        check_numbers("f", [declared], Launch((1, 1, 1), (32, 1, 1), arguments.args, parameters=arguments.parameters))
    except GemmsimError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("declared", "given", "said"),
    [
        ("int", "f32=1024.5", "'int', but f32 is given: pass i32=..."),
        ("float", "i32=2", "'float', but i32 is given: pass f32=..."),
        ("double", "i64=2", "'double', but i64 is given: pass f64=..."),
        ("double", "f32[4]", "'double', but an array is given: pass f64=..."),
        ("unsigned short", "bf16=1", "'unsigned short', but bf16 is given: pass u16=..."),
        ("__half", "bf16=1", "'__half', but bf16 is given: pass f16=..."),
        ("float*", "f64=1", "'float*', but f64 is given: pass an array"),
    ],
)
def test_another_kind_of_number(declared: str, given: str, said: str) -> None:
    assert _said(declared, given) == f"kernel 'f': parameter 0 is declared as {said}"


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        ("int", "u32=7"),
        ("float", "tf32=7"),
        ("bool", "u8=1"),
        ("__half", "u16=0x3c00"),  # its bits
        ("long long", "f32[4]"),  # an address in an integer
        ("float*", "u64=0"),  # a null pointer
        ("float*", "f32[4]"),
        ("float4", "f32x4=(1,2,3,4)"),
        ("Params", "{i32=1, f32=2}"),
        ("int", "bytes=4"),
        ("int", "f64=1"),  # of another size, which the layout of the parameters refuses
    ],
)
def test_what_may_be_meant(declared: str, given: str) -> None:
    assert _said(declared, given) == ""


def test_types_that_are_not_known() -> None:
    check_numbers("f", (), Launch((1, 1, 1), (32, 1, 1), parse_arguments(["f32=1"]).args))
