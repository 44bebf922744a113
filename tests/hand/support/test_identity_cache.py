"""Results kept by the identity of arguments."""

from __future__ import annotations

from gemmsim.support.identity_cache import cached_by_identity


def test_the_last_results_are_kept() -> None:
    calls = []

    @cached_by_identity(2)
    def double(values: list[int]) -> list[int]:
        calls.append(values)
        return [2 * value for value in values]

    one, same, other, third = [1], [1], [2], [3]
    assert double(one) is double(one) and double(one) == [2] and len(calls) == 1
    assert double(same) == [2] and len(calls) == 2  # equal, but another object
    double(one), double(other)  # of `one` and `same`, `same` was used longer ago
    assert len(calls) == 3
    double(one), double(third), double(one)
    assert len(calls) == 4
    double(same)
    assert len(calls) == 5


def test_a_new_object_is_not_taken_for_one_that_is_gone() -> None:
    """Whatever was an argument is held, so that its identity cannot become another object's."""

    @cached_by_identity(1)
    def first(values: list[int]) -> int:
        return values[0]

    assert [first([number]) for number in range(50)] == list(range(50))
