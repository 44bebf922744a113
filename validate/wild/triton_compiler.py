"""Compiles Triton kernels to cubins, which needs no GPU.

Settings of a kernel in the manifest, as `[kernel.triton]`:

    parameters = ["x_ptr", "n"]         the parameters that `args` are for, in order; a scalar 1 becomes a constant
    constants = { BLOCK = "{BM}" }      values of tl.constexpr parameters; "tl.float16" names a type, "None" is None
    types = { x_ptr = "*i1" }        types of parameters where the arguments' own do not say them
    descriptors = { a = "{BM},{BK}" }   parameters that are tensor descriptors of the host's, and their block's shape
    warps = 4                           num_warps, a formula
    stages = 3                          num_stages, a formula
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.tensor_maps import SWIZZLES
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

from .formula import Names, evaluate, filled

_TYPES = {
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "tf32": "fp32",
    "f64": "fp64",
    "e4m3": "fp8e4nv",
    "e5m2": "fp8e5",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "u8": "u8",
    "u16": "u16",
    "u32": "u32",
    "u64": "u64",
}
_DIVISIBLE = [["tt.divisibility", 16]]  # what Triton's launcher finds of pointers and of multiples of 16


@dataclass(frozen=True)
class TritonCubin:
    """A compiled Triton kernel.

    cubin          the cubin
    symbol         the kernel's name in it
    threads        threads of a block
    shared_bytes   dynamic shared memory of a block
    parameters     the cubin's parameters, as `gemmsim analyze --arg` takes them
    positions      for each argument its place among the launch's arguments, None where it is a constant in the cubin
    """

    cubin: bytes
    symbol: str
    threads: int
    shared_bytes: int
    parameters: tuple[str, ...]
    positions: tuple[int | None, ...]


def compile_triton(
    path: Path, function: str, settings: Mapping[str, Any], texts: Sequence[str], sizes: Names, arch: str, blocks: int
) -> TritonCubin:
    """Compile `function` of the Python file `path`, which is loaded, for arguments as `texts` describe them.

    blocks  of the launch, each of which gets scratch memory where the kernel needs some

    Raises GemmsimError where Triton is missing or cannot compile the kernel.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError:
        raise GemmsimError("Triton is not installed: pip install triton") from None
    kernel = getattr(_loaded(path), function)
    args = parse_arguments(texts).args
    parameters, wanted = settings["parameters"], _filled_values(settings.get("types", {}), sizes)
    descriptors = _filled_values(settings.get("descriptors", {}), sizes)
    if len(parameters) != len(args):
        raise GemmsimError(f"manifest: {function} has {len(parameters)} parameters, but {len(args)} args")
    constants = {name: _constant(value, sizes) for name, value in settings.get("constants", {}).items()}
    signature = dict.fromkeys(kernel.arg_names, "constexpr")
    attributes: dict[tuple[int, ...], list[list[object]]] = {}
    passed = []
    for name, argument in zip(parameters, args, strict=True):
        if not argument.shape and argument.value == 1 and argument.dtype in ("i32", "i64"):
            constants[name] = 1
            passed.append(False)
            continue
        passed.append(True)
        signature[name] = wanted.get(name, ("*" if argument.shape else "") + _TYPES[argument.dtype])
        if name in descriptors:
            signature[name] = f"tensordesc<{signature[name].removeprefix('*')}[{descriptors[name]}]>"
        elif argument.shape or (isinstance(argument.value, int) and argument.value % 16 == 0):
            attributes[(kernel.arg_names.index(name),)] = _DIVISIBLE
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(k),): v for k, v in constants.items()}, attributes)
    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), 32)
    options = {
        "num_warps": evaluate(settings.get("warps", 4), sizes),
        "num_stages": evaluate(settings.get("stages", 3), sizes),
    }
    try:
        compiled = triton.compile(source, target=target, options=options)
    except Exception as error:
        raise GemmsimError(f"Triton cannot compile it for {arch}: {_first_line(error)}") from None
    about = compiled.metadata
    maps = iter(about.tensordesc_meta or ())
    passed_on: list[str] = []
    positions: list[int | None] = []
    for name, argument, text, passes in zip(parameters, args, texts, passed, strict=True):
        positions.append(len(passed_on) if passes else None)
        if name in descriptors:
            passed_on += _descriptor(text, argument, next(maps))
        elif passes:
            passed_on.append(text)
    # Triton appends pointers to scratch memory in global memory and to that of its profiler.
    scratch = about.global_scratch_size * blocks
    passed_on += [f"u8[{scratch}]" if scratch else "i64=0", "i64=0"]
    return TritonCubin(
        cubin=compiled.asm["cubin"],
        symbol=about.name,
        threads=32 * about.num_warps,
        shared_bytes=about.shared,
        parameters=tuple(passed_on),
        positions=tuple(positions),
    )


def _descriptor(text: str, array: Argument, about: Mapping[str, Any]) -> list[str]:
    """Return the parameters that Triton's launcher makes of a tensor descriptor: a map, sizes, and strides in elements.

    text, array  the argument; about  what Triton says of the map
    """
    box = "x".join(map(str, about["block_size"]))
    swizzle = next(name for name, number in SWIZZLES.items() if number == about["swizzle"])
    strides = (stride // about["elem_size"] for stride in array.strides)
    sizes = [f"i32={size}" for size in array.shape]
    return [f"tensormap({text}, box={box}, swizzle={swizzle})", *sizes, *(f"i64={stride}" for stride in strides)]


@contextmanager
def line_information(wanted: bool) -> Iterator[None]:
    """Within this context manager, Triton puts line information into cubins, or leaves it out."""
    try:
        from triton import knobs
    except ImportError:  # compile_triton says so
        yield
        return
    before = knobs.compilation.disable_line_info
    knobs.compilation.disable_line_info = not wanted
    try:
        yield
    finally:
        knobs.compilation.disable_line_info = before


def _loaded(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"wild_{abs(hash(path))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise GemmsimError(f"cannot load '{path.name}': {error}") from None
    return module


def _constant(value: object, sizes: Names) -> object:
    if not isinstance(value, str):
        return value
    text = filled(value, sizes)
    if text == "None":
        return None
    if text.startswith("tl."):
        import triton.language

        return getattr(triton.language, text.removeprefix("tl."))
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else text


def _filled_values(texts: Mapping[str, str], sizes: Names) -> dict[str, str]:
    return {name: filled(text, sizes) for name, text in texts.items()}


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "rror" in line]
    return f"{type(error).__name__}: {(telling or lines or ['no message'])[0]}"
