"""Compiles CUDA C++ to a cubin with NVRTC or nvcc, without a GPU or a driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gemmsim.compile.declarations import declarations, device_macros, kernels
from gemmsim.compile.entries import find_entry, matching
from gemmsim.compile.host_code import OPTIONS, compile_beside_host_code
from gemmsim.compile.includes import include_folders, user_headers
from gemmsim.compile.nvrtc import Outcome, nvrtc_compile
from gemmsim.compile.sections import kernel_symbols
from gemmsim.compile.source import CudaKernel
from gemmsim.compile.toolchain import header_folders
from gemmsim.support.errors import GemmsimError, nearest

_FEATURE = "not supported on .target"  # ptxas, of instructions of one architecture alone: wgmma, setmaxnreg
_WITH_FEATURES = ("sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121")
_NAME_MAP = "__nv_name_map("  # NVRTC's name for the place of an entry that it cannot find


def compile_cuda(source: CudaKernel, arch: str) -> tuple[bytes, str | None]:
    """Compile `source` for `arch`; returns the cubin, and the symbol of the source's entry (None where it names none).

    An entry that is a template with its arguments (`sgemm<128,128,8>`) is instantiated. Raises GemmsimError with the
    first line of the compiler's log that tells of an error, or for a missing toolchain.
    """
    if source.compiler == "nvcc":
        from gemmsim.compile.nvcc import compile_with_nvcc

        return compile_with_nvcc(source, arch)
    outcome = _compiled(source, arch)
    return outcome.cubin or b"", outcome.symbol


def ptx_of_cuda(source: CudaKernel, arch: str) -> str | None:
    """Return the PTX of which `compile_cuda` makes the cubin; None where that is not known. Raises as it does."""
    return None if source.compiler == "nvcc" else _compiled(source, arch).ptx


def _compiled(source: CudaKernel, arch: str) -> Outcome:
    """Compile `source` with NVRTC, without an error."""
    options = [*source.options, "--generate-line-info", f"--include-path={source.path.parent}"]
    options += [f"--include-path={folder}" for folder in header_folders()]
    chosen = any(option.startswith(("-arch", "--gpu-architecture")) for option in source.options)
    for_arch = options if chosen else [*options, f"--gpu-architecture={arch}"]
    outcome, hint = _compile(source, for_arch)
    if outcome.cubin is None and _FEATURE in outcome.first_error and not chosen and arch in _WITH_FEATURES:
        for_arch = [*options, f"--gpu-architecture={arch}a"]
        outcome, hint = _compile(source, for_arch)
    if outcome.cubin is None and outcome.first_error.startswith(_NAME_MAP):
        return _by_part_of_name(source, for_arch)
    if outcome.cubin is None:
        said = _advised(outcome.first_error) + hint
        raise GemmsimError(f"NVRTC cannot compile '{source.path.name}' for {arch}: {said}")
    if not outcome.cubin:
        raise GemmsimError(f"NVRTC made no cubin of '{source.path.name}': -arch needs a real architecture, sm_90")
    if source.entry is None and not kernel_symbols(outcome.cubin):
        raise GemmsimError(f"'{source.path.name}' holds no kernel (no __global__ function){_templates(source)}")
    return outcome


def _compile(source: CudaKernel, options: list[str]) -> tuple[Outcome, str]:
    """Return what NVRTC makes of the source, and words for the end of an error's message."""
    outcome = nvrtc_compile(source.text, source.path, source.entry, options, {})
    if outcome.cubin is not None or outcome.first_error.startswith(_NAME_MAP):
        return outcome, ""
    return _beside_host_code(source, options)


def _by_part_of_name(source: CudaKernel, options: list[str]) -> Outcome:
    """Compile a source whose entry is no name that NVRTC knows: it may lack namespaces, or be a part of a name.

    Raises GemmsimError where no kernel or several have such a name.
    """
    entry, file = source.entry or "", f"'{source.path.name}'"
    base, bracket, arguments = entry.partition("<")
    for name, template in _kernels(source):
        if template and bracket and name.endswith(f"::{base}"):
            outcome, _hint = _compile(replace(source, entry=f"{name}<{arguments}"), options)
            if outcome.cubin and outcome.symbol:
                return outcome
    outcome, _hint = _compile(replace(source, entry=None), options)
    symbols = kernel_symbols(outcome.cubin) if outcome.cubin else ()
    templates = [name for name, template in _kernels(source) if template]
    if templates and (entry in (name.rpartition("::")[2] for name in templates) or not matching(entry, symbols)):
        raise GemmsimError(f"{file} has no kernel '{entry}'{nearest(base, templates)}{_templates(source)}")
    return replace(outcome, cubin=outcome.cubin or b"", symbol=find_entry(entry, symbols, file))


def _kernels(source: CudaKernel) -> list[tuple[str, bool]]:
    return list(kernels(source.text, declarations(source.text, device_macros([source.text]))))


def _templates(source: CudaKernel) -> str:
    names = dict.fromkeys(name for name, template in _kernels(source) if template)
    return f": a template needs its arguments, --entry 'NAME<...>'; there are {', '.join(names)}" if names else ""


def _beside_host_code(source: CudaKernel, options: list[str]) -> tuple[Outcome, str]:
    folders = (source.path.parent, *include_folders(source.options))
    headers = user_headers(source.text, source.path, folders)

    def compile_once(text: str, given: Mapping[str, str]) -> Outcome:
        return nvrtc_compile(text, source.path, source.entry, [*options, *OPTIONS], given)

    return compile_beside_host_code(source.text, source.path, headers, compile_once)


def _advised(error: str) -> str:
    if "cannot open source file" not in error:
        return error
    return error + (" (pip install nvidia-cuda-crt)" if '"crt/' in error else ": give its folder with -I")
