"""Makes what stands for functions of packages that are not simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmsim.support.errors import GemmsimError


def refused(what: str) -> Callable[..., Any]:
    """Return a function that raises GemmsimError, which says that the program uses `what`."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise GemmsimError(f"the program uses {what}")

    return refuse
