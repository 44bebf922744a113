"""Functions of the driver API that load modules and libraries, and find and describe their kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from gemmsim.analysis.limits.occupancy import theoretical_occupancy
from gemmsim.gpu.spec import GpuSpec
from gemmsim.isa.program import Program
from gemmsim.programs.c_calls import (
    INVALID_VALUE,
    NOT_FOUND,
    NOT_SUPPORTED,
    DriverError,
    Handle,
    Int,
    Pointer,
    Size,
    Text,
    Uint,
    entry,
    put_int,
    put_word,
)
from gemmsim.programs.machine import Machine
from gemmsim.programs.modules import DeviceKernel, DeviceModule, image_at
from gemmsim.support.errors import GemmsimError

_MOST_DYNAMIC_SHARED, _CARVEOUT = 8, 9  # CUfunction_attribute
_USUAL_CONSTANT_BANK = 3
_ATTRIBUTES: dict[int, Callable[[Program, GpuSpec], int]] = {
    0: lambda program, gpu: most_threads(program, gpu),
    1: lambda program, gpu: program.static_shared_bytes,
    2: lambda program, gpu: len(program.constants.get(_USUAL_CONSTANT_BANK, b"")),
    3: lambda program, gpu: program.local_bytes,
    4: lambda program, gpu: program.registers,
    5: lambda program, gpu: int(program.arch.removeprefix("sm_").rstrip("af")),  # version of PTX, as of the binary
    6: lambda program, gpu: int(program.arch.removeprefix("sm_").rstrip("af")),
    7: lambda program, gpu: 0,  # no options of the cache
    _CARVEOUT: lambda program, gpu: -1,
}


def most_threads(program: Program, gpu: GpuSpec) -> int:
    """Return how many threads a block of the kernel can have, by its registers and its launch bound."""
    unit = gpu.sm.register_allocation_unit
    a_warp = -(-program.registers * 32 // unit) * unit
    by_registers = gpu.sm.registers // max(a_warp, 1) // gpu.sm.sub_partitions * gpu.sm.sub_partitions * 32
    return min(by_registers, gpu.sm.max_threads_per_block, program.max_threads or gpu.sm.max_threads_per_block)


def load_module(machine: Machine, image: bytes) -> DeviceModule:
    return DeviceModule(image, machine.gpu.arch, machine.settings.use_cache, machine.memory.allocate)


def _load(machine: Machine, image: bytes) -> int:
    return machine.handles.new(load_module(machine, image))


@entry("cuModuleLoadData")
def module_load_data(machine: Machine, module: Pointer, image: Pointer) -> None:
    put_word(module, _load(machine, image_at(image)))


@entry("cuModuleLoadDataEx")
def module_load_data_ex(
    machine: Machine, module: Pointer, image: Pointer, options: Uint, names: Pointer, values: Pointer
) -> None:
    put_word(module, _load(machine, image_at(image)))


@entry("cuModuleLoadFatBinary")
def module_load_fat_binary(machine: Machine, module: Pointer, image: Pointer) -> None:
    put_word(module, _load(machine, image_at(image)))


@entry("cuModuleLoad")
def module_load(machine: Machine, module: Pointer, path: Text) -> None:
    put_word(module, _load(machine, _file(path)))


@entry("cuLibraryLoadData")
def library_load_data(
    machine: Machine,
    library: Pointer,
    image: Pointer,
    options: Pointer,
    values: Pointer,
    count: Uint,
    library_options: Pointer,
    library_values: Pointer,
    library_count: Uint,
) -> None:
    put_word(library, _load(machine, image_at(image)))


@entry("cuLibraryLoadFromFile")
def library_load_from_file(
    machine: Machine,
    library: Pointer,
    path: Text,
    options: Pointer,
    values: Pointer,
    count: Uint,
    library_options: Pointer,
    library_values: Pointer,
    library_count: Uint,
) -> None:
    put_word(library, _load(machine, _file(path)))


@entry("cuModuleUnload", "cuLibraryUnload")
def unload(machine: Machine, module: Handle) -> None:
    machine.handles.drop(module)


@entry("cuModuleGetLoadingMode")
def module_get_loading_mode(machine: Machine, mode: Pointer) -> None:
    put_int(mode, 2)  # CU_MODULE_LAZY_LOADING


@entry("cuLibraryGetModule")
def library_get_module(machine: Machine, module: Pointer, library: Handle) -> None:
    machine.handles.get(library, DeviceModule)
    put_word(module, library)


@entry("cuModuleGetFunction", "cuLibraryGetKernel")
def get_function(machine: Machine, function: Pointer, module: Handle, name: Text) -> None:
    loaded, wanted = machine.handles.get(module, DeviceModule), name.decode()
    if wanted not in loaded.names:
        raise DriverError(NOT_FOUND)
    put_word(function, machine.handles.of(loaded.kernel(wanted)))


@entry("cuModuleGetFunctionCount", "cuLibraryGetKernelCount")
def get_function_count(machine: Machine, count: Pointer, module: Handle) -> None:
    put_int(count, len(machine.handles.get(module, DeviceModule).names))


@entry("cuModuleGetGlobal", "cuLibraryGetGlobal")
def get_global(machine: Machine, address: Pointer, size: Pointer, module: Handle, name: Text) -> None:
    try:
        at, length = machine.handles.get(module, DeviceModule).variable(name.decode())
    except GemmsimError:
        raise DriverError(NOT_FOUND) from None
    put_word(address, at)
    put_word(size, length)


@entry("cuKernelGetFunction")
def kernel_get_function(machine: Machine, function: Pointer, kernel: Handle) -> None:
    machine.handles.get(kernel, DeviceKernel)
    put_word(function, kernel)


@entry("cuFuncGetModule", "cuKernelGetLibrary")
def func_get_module(machine: Machine, module: Pointer, function: Handle) -> None:
    put_word(module, machine.handles.of(machine.handles.get(function, DeviceKernel).module))


@entry("cuFuncGetName", "cuKernelGetName")
def func_get_name(machine: Machine, name: Pointer, function: Handle) -> None:
    put_word(name, machine.handles.get(function, DeviceKernel).name_address)


@entry("cuFuncGetParamInfo", "cuKernelGetParamInfo")
def func_get_param_info(machine: Machine, function: Handle, index: Size, offset: Pointer, size: Pointer) -> None:
    parameters = machine.handles.get(function, DeviceKernel).program.parameters
    if index >= len(parameters):
        raise DriverError(INVALID_VALUE)
    put_word(offset, parameters[index].offset_bytes)
    put_word(size, parameters[index].size_bytes)


@entry("cuFuncGetAttribute")
def func_get_attribute(machine: Machine, value: Pointer, attribute: Int, function: Handle) -> None:
    kernel = machine.handles.get(function, DeviceKernel)
    if attribute == _MOST_DYNAMIC_SHARED:
        usual = machine.gpu.shared.default_max_bytes_per_block - kernel.program.static_shared_bytes
        put_int(value, kernel.dynamic_shared_bytes or usual)
    elif attribute in _ATTRIBUTES:
        put_int(value, _ATTRIBUTES[attribute](kernel.program, machine.gpu))
    else:
        raise DriverError(NOT_SUPPORTED)


@entry("cuKernelGetAttribute")
def kernel_get_attribute(machine: Machine, value: Pointer, attribute: Int, kernel: Handle, device: Int) -> None:
    func_get_attribute(machine, value, attribute, kernel)


@entry("cuFuncSetAttribute")
def func_set_attribute(machine: Machine, function: Handle, attribute: Int, value: Int) -> None:
    kernel = machine.handles.get(function, DeviceKernel)
    if attribute == _MOST_DYNAMIC_SHARED:
        if value + kernel.program.static_shared_bytes > machine.gpu.shared.max_bytes_per_block:
            raise DriverError(INVALID_VALUE)
        kernel.dynamic_shared_bytes = value


@entry("cuKernelSetAttribute")
def kernel_set_attribute(machine: Machine, attribute: Int, value: Int, kernel: Handle, device: Int) -> None:
    func_set_attribute(machine, kernel, attribute, value)


@entry("cuFuncSetCacheConfig")
def func_set_cache_config(machine: Machine, function: Handle, config: Int) -> None:
    """Ignore the wish: the shared memory of an SM is sized as the model of the carve-out does."""


@entry("cuOccupancyMaxActiveBlocksPerMultiprocessor")
def occupancy(machine: Machine, blocks: Pointer, function: Handle, threads: Int, shared: Size) -> None:
    put_int(blocks, blocks_per_sm(machine, function, threads, shared))


@entry("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")
def occupancy_with_flags(
    machine: Machine, blocks: Pointer, function: Handle, threads: Int, shared: Size, flags: Uint
) -> None:
    put_int(blocks, blocks_per_sm(machine, function, threads, shared))


@entry("cuOccupancyMaxPotentialBlockSize")
def potential_block_size(
    machine: Machine,
    grid: Pointer,
    threads: Pointer,
    function: Handle,
    shared_of: Pointer,
    shared: Size,
    limit: Int,
) -> None:
    """Find the block size with the most threads resident on an SM, the largest of those that are equally good."""
    sized = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(shared_of) if shared_of else lambda count: shared
    most = most_threads(machine.handles.get(function, DeviceKernel).program, machine.gpu)
    most = min(most, limit) if limit else most
    counts = range(32, most + 1, 32) if most >= 32 else (most,)
    best = max(counts, key=lambda count: (blocks_per_sm(machine, function, count, sized(count)) * count, count))
    put_int(grid, blocks_per_sm(machine, function, best, sized(best)) * machine.gpu.sm.count)
    put_int(threads, best)


def blocks_per_sm(machine: Machine, function: int, threads: int, shared: int) -> int:
    """Return how many blocks of a kernel an SM holds, 0 where not even one fits."""
    program = machine.handles.get(function, DeviceKernel).program
    try:
        return theoretical_occupancy(
            program.registers, program.static_shared_bytes + shared, threads, machine.gpu
        ).blocks_per_sm
    except GemmsimError:
        return 0


def _file(path: bytes) -> bytes:
    try:
        return Path(path.decode()).read_bytes()
    except OSError:
        raise DriverError(301) from None  # CUDA_ERROR_FILE_NOT_FOUND
