"""Caches results of functions by the identity of the arguments.

Where one program is launched several times, this cache makes that it is decoded and lowered only once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def cached_by_identity(size: int) -> Callable[[Function], Function]:
    """Make a decorator that keeps the last `size` results of a function of positional arguments.

    The key of a result is which objects the arguments are, not what they equal. This suits arguments that are large and
    never change, and results that no caller changes.
    """

    def decorate(function: Function) -> Function:
        cache: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = OrderedDict()

        @wraps(function)
        def cached(*arguments: Any) -> Any:
            key = tuple(map(id, arguments))
            if key in cache:
                cache.move_to_end(key)
                return cache[key][1]
            result = function(*arguments)
            # The arguments are stored too: as long as they live, no other object can have their identity.
            cache[key] = arguments, result
            if len(cache) > size:
                cache.popitem(last=False)
            return result

        return cached  # type: ignore[return-value]

    return decorate
