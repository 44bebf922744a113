"""A kernel is found by its symbol, by its name as people write it, or by a part of that."""

from __future__ import annotations

import pytest

from gemmsim.compile.entries import find_entry
from gemmsim.compile.names import cpp_name, parameter_types
from gemmsim.support.errors import GemmsimError

SMALL, LARGE = "_Z5sgemmILi64ELi64ELi8EEvPKfS1_Pfi", "_Z5sgemmILi128ELi128ELi8EEvPKfS1_Pfi"
METHOD, HIDDEN, FLAGS = "_ZN2ns6kernelEPfi", "_ZN4test12_GLOBAL__N_13fooIfEEvT_", "_Z1fILb1ELj3ELm5EEvv"
OVERLOADS = ("_Z4copyPf", "_Z4copyPd")
PLAIN = "plain"
ALL = (SMALL, LARGE, METHOD, HIDDEN, FLAGS, *OVERLOADS, PLAIN)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (SMALL, "void sgemm<64, 64, 8>(float const*, float const*, float*, int)"),
        (METHOD, "ns::kernel(float*, int)"),
        (HIDDEN, "void test::(anonymous namespace)::foo<float>(float)"),
        (PLAIN, "plain"),
        ("_Znonsense", "_Znonsense"),
    ],
)
def test_the_name_in_cpp(symbol: str, name: str) -> None:
    assert cpp_name(symbol) == name


@pytest.mark.parametrize(
    ("entry", "symbol"),
    [
        (LARGE, LARGE),
        ("sgemm<128, 128, 8>", LARGE),
        ("sgemm<128,128,8>", LARGE),
        ("void sgemm<128, 128, 8>(float const*, float const*, float*, int)", LARGE),
        ("sgemm<64,64,8>(const float *, const float*, float *, int)", SMALL),
        ("ns::kernel(float*, int)", METHOD),
        ("kernel(float *,int)", METHOD),
        ("kernel", METHOD),
        ("foo", HIDDEN),
        ("test::(anonymous namespace)::foo<float>", HIDDEN),
        ("f<true, 3, 5>", FLAGS),
        ("f", FLAGS),  # a whole name goes before a part of another: "f" is in most of them
        ("copy(double*)", OVERLOADS[1]),
        ("plain", PLAIN),
        ("lai", PLAIN),
        ("sgemm<128", LARGE),
        ("PKfS1_Pfi", None),
        ("sgemm", None),
        ("copy", None),
        ("<", None),
    ],
)
def test_an_entry_is_found_or_ambiguous(entry: str, symbol: str | None) -> None:
    if symbol is not None:
        assert find_entry(entry, ALL, "the file") == symbol
    else:
        with pytest.raises(GemmsimError, match=r"names [234] kernels of the file, say more of the name: "):
            find_entry(entry, ALL, "the file")


def test_candidates_are_listed_as_they_can_be_given() -> None:
    with pytest.raises(GemmsimError) as error:
        find_entry("copy", ALL, "the file")
    assert str(error.value).endswith(": copy(float*); copy(double*)")
    assert find_entry("copy(float*)", ALL, "the file") == OVERLOADS[0]


def test_without_an_entry_there_must_be_one_kernel() -> None:
    assert find_entry(None, (LARGE,), "the file") == LARGE
    with pytest.raises(GemmsimError, match=r"the file holds 2 kernels, choose one as the entry \(--entry\): copy"):
        find_entry(None, OVERLOADS, "the file")


def test_a_long_list_is_cut() -> None:
    with pytest.raises(GemmsimError, match=r"kernel11 and 28 more \(gemmsim decode lists them\)$"):
        find_entry(None, [f"kernel{number}" for number in range(40)], "the file")


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(GemmsimError, match=r"the file has no kernel 'sgem2' \(did you mean 'sgemm'\?\); it holds: "):
        find_entry("sgem2", ALL, "the file")


def test_names_that_are_too_long_for_the_cpp_runtime_are_demangled_all_the_same() -> None:
    """libstdc++ takes symbols of up to 1,023 characters."""
    pytest.importorskip("itanium_demangler")
    inner, outer = "i", "int"
    for _ in range(120):
        inner, outer = f"4PairI{inner}Lb1EE", f"Pair<{outer}, true>"
    symbol = f"_ZN2ns6kernelI{inner}Li128EEEvPT_"
    assert len(symbol) > 1024
    assert cpp_name(symbol) == f"void ns::kernel<{outer}, 128>({outer}*)"
    assert find_entry("kernel", (symbol, PLAIN), "the file") == symbol


@pytest.mark.parametrize(
    ("symbol", "types"),
    [
        (SMALL, ("float const*", "float const*", "float*", "int")),
        ("_Z4noneILi1EEvv", ()),
        (PLAIN, ()),
        ("_Z1fSt4pairIifEPFviE", ("std::pair<int, float>", "void (*)(int)")),
        (HIDDEN, ("float",)),
    ],
)
def test_the_types_of_parameters(symbol: str, types: tuple[str, ...]) -> None:
    assert parameter_types(symbol) == types
