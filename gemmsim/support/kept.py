"""Results kept for the next call: several launches of one program are lowered, decoded and so on once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def by_identity(size: int) -> Callable[[Function], Function]:
    """Keep the last `size` results of a function of positional arguments, by which objects these are.

    For arguments that are large and never change, and results that nobody changes.
    """

    def decorate(function: Function) -> Function:
        kept: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = OrderedDict()

        @wraps(function)
        def found(*arguments: Any) -> Any:
            key = tuple(map(id, arguments))
            if key in kept:
                kept.move_to_end(key)
                return kept[key][1]
            result = function(*arguments)
            kept[key] = arguments, result  # the arguments too: as long as they live, no other object has their identity
            if len(kept) > size:
                kept.popitem(last=False)
            return result

        return found  # type: ignore[return-value]

    return decorate
