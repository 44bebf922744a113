"""Compiles functions with numba. This module is imported only where no machine code is stored yet."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import compiler, types
from numba.core.registry import cpu_target
from numba.core.types.containers import NamedTuple
from numba.np.numpy_support import from_dtype

from gemmsim.native.arguments import RECORD, RESULTS, ArgumentType, record_named
from gemmsim.native.code_store import MachineCode
from gemmsim.native.numba_start import postpone_blas


def build(function: Callable[..., Any], signature: Sequence[ArgumentType]) -> MachineCode:
    """Compile a function, written in the Python that numba understands, for arguments of the types in `signature`.

    These types are in the words of `arguments.describe`. The machine code allocates nothing (reference counts are off:
    numba refuses a function that would need them) and calls nothing outside itself, so that it can be loaded without
    numba.
    """
    postpone_blas()
    flags = compiler.Flags()
    flags.nrt = False
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    if any(isinstance(kind, str) and kind.startswith(RECORD) for kind in signature):
        from gemmsim.native.compiled import let_call

        let_call(function)
    made = compiler.compile_extra(typing, target, function, tuple(map(_type, signature)), None, flags, {})
    needed = [one.name for one in made.library._final_module.functions if one.is_declaration]
    needed = [name for name in needed if not name.startswith("llvm.")]
    if needed:
        raise NotImplementedError(f"{function.__qualname__} calls {', '.join(needed)}, which only numba provides")
    returns = str(made.signature.return_type)
    if returns not in RESULTS:
        raise NotImplementedError(f"{function.__qualname__} returns {returns}: known are {', '.join(RESULTS)}")
    _, _, (code, _) = made.library.serialize_using_object_code()
    return MachineCode(made.fndesc.llvm_func_name, returns, code)


def _type(kind: ArgumentType) -> Any:
    if not isinstance(kind, str):  # a dataclass: the code reads its fields by name, like those of a named tuple
        names, types_of_fields = zip(*kind, strict=True)
        return NamedTuple([_type(one) for one in types_of_fields], namedtuple("Fields", names))
    if kind.startswith(RECORD):
        from gemmsim.native.compiled import RecordType

        return RecordType(record_named(kind))
    if " " not in kind:
        return getattr(types, kind)
    dtype, dimensions, layout = kind.split()
    return types.Array(from_dtype(np.dtype(dtype)), int(dimensions), "C" if layout == "C" else "A")
