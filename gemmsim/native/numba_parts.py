"""How small functions reach numba: with fixed types, and as parts of one library.

A plain `@njit` function is optimised and turned into machine code by itself, and again inside each caller that it is
linked into. With the executor's thirty small functions in four layers, that took most of a cold start. A `subroutine`
is type-checked and lowered into the library of its caller, which LLVM sees once. An `instruction` is written in LLVM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from numba.core import compiler, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global

from gemmsim.native.numba_start import postpone_blas

ADDRESS = types.uint64  # addresses and other 64-bit words
INDEX = types.int64  # numbers
WORD = types.uint32  # register contents and lane masks
TRUTH, NOTHING = types.boolean, types.void
SINGLE, DOUBLE = types.float32, types.float64

Decorator = Callable[..., Callable[..., Any]]

postpone_blas()


def _register(
    function: Callable[..., Any], returns: Any, arguments: tuple[Any, ...], lower: Callable[..., Any]
) -> None:
    """Tell numba the type of `function`, and that `lower` writes a call of it. Integers of other types that are passed
    to it are converted to those of `arguments`.
    """
    signature = returns(*arguments)

    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature if len(args) == len(arguments) else None

    Template.key = function
    infer_global(function, types.Function(Template))
    lower_builtin(function, *arguments)(lower)


def instruction(returns: Any, *arguments: Any) -> Decorator:
    """Decorate a function (builder, *values) -> value or None that writes LLVM: compiled code can then call it by its
    name, with arguments of these types.
    """

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        def name(*args: Any) -> Any:
            raise NotImplementedError("this runs only inside the compiled executor")

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            value = body(builder, *values)
            return context.get_dummy_value() if value is None else value

        name.__name__, name.__doc__ = body.__name__, body.__doc__
        _register(name, returns, arguments, lower)
        return name

    return decorate


def subroutine(returns: Any, *arguments: Any) -> Decorator:
    """Decorate a function, written in the Python that numba understands, so that compiled code can call it with
    arguments of these types. It may call other subroutines and instructions.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        lowered: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # library -> what it calls the function

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            library = context.active_code_library
            if library not in lowered:
                flags = compiler.Flags()
                flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
                made = compiler.compile_internal(
                    context.typing_context, context, library, function, arguments, returns, flags, {}
                )
                lowered[library] = made.fndesc
            _, value = context.call_internal_no_propagate(builder, lowered[library], signature, values)
            return value

        _register(function, returns, arguments, lower)
        return function

    return decorate
