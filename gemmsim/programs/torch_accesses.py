"""Notices when PyTorch reads or changes a tensor, so that launches whose results it needs are executed before.

Operators that sum up compute in float32 (`programs.torch_precision`).

PyTorch has an interface for what all of its operators are called through, those of backward passes included
(`TorchDispatchMode`), and its operators say which of their tensors they read, which they change, and which they only
look at from another side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from gemmsim.programs.machine import Machine
from gemmsim.programs.torch_precision import in_float32, sums_up

# Functions by which a program gets at a tensor's memory without an operator.
DIRECT = frozenset(
    {"numpy", "__array__", "tolist", "untyped_storage", "storage", "_typed_storage", "__dlpack__", "apply_", "map_"}
    | {"map2_", "__reduce_ex__", "__deepcopy__", "share_memory_", "pin_memory", "__repr__"}
)


class Accessed(Protocol):
    """Tells the memory of a tensor that it is about to be read or changed, and knows which tensors are on the GPU."""

    def before(self, tensor: Any, stores: bool) -> None: ...

    def __contains__(self, tensor: Any) -> bool: ...


def accesses_of(machine: Callable[[], Machine], storages: Accessed) -> Any:
    """Return the mode that tells `storages` of each tensor that an operator is about to read or to change."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Accesses(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            """Keep PyTorch from importing its compiler for this mode, which takes seconds."""
            return False

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = kwargs or {}
            if len(machine().postponed) or machine().memory.any_incomplete:
                for number, one in enumerate(operator._schema.arguments):
                    given = args[number] if number < len(args) else named.get(one.name)
                    stores = one.alias_info is not None and one.alias_info.is_write
                    if one.alias_info is None or stores:
                        for tensor in _tensors(torch, given):
                            storages.before(tensor, stores)
            if sums_up(operator, torch, args, named) and any(one in storages for one in _tensors(torch, list(args))):
                return in_float32(operator, torch, args, named)
            return operator(*args, **named)

    return Accesses()


def _tensors(torch: Any, given: Any) -> Iterator[Any]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _tensors(torch, one)
