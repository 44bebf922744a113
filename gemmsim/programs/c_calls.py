"""Lets C code call Python functions as functions of the CUDA driver API.

A function is registered under its documented name by `entry`. Its annotations (`Pointer`, `Size`, ...) are its types in
C; it gets the simulated machine first. It returns nothing, and raises `DriverError` for a result other than success.
"""

from __future__ import annotations

import _thread
import ctypes
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_type_hints

from gemmsim.support.errors import GemmsimError

Pointer = Annotated[int, ctypes.c_uint64]
Handle = Annotated[int, ctypes.c_uint64]
Address = Annotated[int, ctypes.c_uint64]  # a device address
Size = Annotated[int, ctypes.c_size_t]
Int = Annotated[int, ctypes.c_int]
Uint = Annotated[int, ctypes.c_uint]
Ulong = Annotated[int, ctypes.c_uint64]
Ushort = Annotated[int, ctypes.c_ushort]
Uchar = Annotated[int, ctypes.c_ubyte]
Text = Annotated[bytes, ctypes.c_char_p]

# Results of the driver API, by their names and values in CUresult (cuda.h).
SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, INVALID_CONTEXT = 0, 1, 2, 101, 201
NO_BINARY_FOR_GPU, INVALID_HANDLE, NOT_FOUND, NOT_READY = 209, 400, 500, 600
LAUNCH_FAILED, NOT_SUPPORTED, UNKNOWN = 719, 801, 999
_NAMES = {
    SUCCESS: b"CUDA_SUCCESS",
    INVALID_VALUE: b"CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: b"CUDA_ERROR_OUT_OF_MEMORY",
    INVALID_DEVICE: b"CUDA_ERROR_INVALID_DEVICE",
    INVALID_CONTEXT: b"CUDA_ERROR_INVALID_CONTEXT",
    NO_BINARY_FOR_GPU: b"CUDA_ERROR_NO_BINARY_FOR_GPU",
    INVALID_HANDLE: b"CUDA_ERROR_INVALID_HANDLE",
    NOT_FOUND: b"CUDA_ERROR_NOT_FOUND",
    NOT_READY: b"CUDA_ERROR_NOT_READY",
    LAUNCH_FAILED: b"CUDA_ERROR_LAUNCH_FAILED",
    NOT_SUPPORTED: b"CUDA_ERROR_NOT_SUPPORTED",
    UNKNOWN: b"CUDA_ERROR_UNKNOWN",
}
# The buffers stay where they are, because C code keeps their addresses.
RESULT_NAMES = {code: ctypes.create_string_buffer(name) for code, name in _NAMES.items()}

Entry = Callable[..., None]
ENTRIES: dict[str, Entry] = {}


class DriverError(Exception):
    """A result of the driver API other than success. code: its value in CUresult."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def entry(*names: str) -> Callable[[Entry], Entry]:
    """Make a decorator that registers a function under the names that it has in the CUDA driver API."""

    def register(function: Entry) -> Entry:
        ENTRIES.update(dict.fromkeys(names, function))
        return function

    return register


def callback(function: Entry, machine: Callable[[], Any]) -> Any:
    """Return the C function that calls `function`. It must be kept as long as C code may call it.

    machine  returns the machine that `function` gets

    A failure that has no code of its own is kept in the machine's `failure`, as C code cannot be told of it.
    """
    hints = list(get_type_hints(getattr(function, "func", function), include_extras=True).values())
    types = [get_args(hint)[1] for hint in hints if hasattr(hint, "__metadata__")]

    def called(*args: Any) -> int:
        try:
            function(machine(), *args)
        except DriverError as error:
            return error.code
        except GemmsimError as error:
            machine().failure = error
            return LAUNCH_FAILED
        except KeyboardInterrupt:
            _thread.interrupt_main()  # raised again when Python code of the program goes on
            return UNKNOWN
        except BaseException as error:
            machine().failure = error
            return UNKNOWN
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, *types)(called)


def put(pointer: int, kind: Any, value: Any) -> None:
    """Write a value of a C type to the place that `pointer` names; nothing where that is NULL."""
    if pointer:
        kind.from_address(pointer).value = value


def put_word(pointer: int, value: int) -> None:
    """Write a size, handle or address of 8 bytes."""
    put(pointer, ctypes.c_uint64, value)


def put_int(pointer: int, value: int) -> None:
    put(pointer, ctypes.c_int, value)


def put_text(pointer: int, text: str, room: int) -> None:
    """Write a text of at most `room` bytes, its end included."""
    content = text.encode()[: room - 1] + b"\0"
    ctypes.memmove(pointer, content, len(content))
