"""Device code that a program loads: its kernels, and the variables of the module."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from gemmsim.compile import CubinKernel, KernelSource, PtxKernel, compile_kernel, default_cache
from gemmsim.compile.magic import ELF, FATBIN
from gemmsim.isa.program import GLOBAL_DATA, OperandKind, Program, Symbol
from gemmsim.programs.allocations import Allocation
from gemmsim.programs.c_calls import INVALID_VALUE, NO_BINARY_FOR_GPU, DriverError
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.contents import trace_depends_on_contents
from gemmsim.trace.launch_data.module_data import device_globals, find_symbol
from gemmsim.trace.types import Argument, Variable

_LAUNCHES_KERNELS = "cudaCDP2"  # in the names of the device runtime's functions for it, which a linker misses
_WRAPPER_MAGIC = 0x466243B1  # first word of the record by which programs of nvcc hand over a fat binary


@dataclass(eq=False)
class DeviceModule:
    """A loaded module.

    image         its content: a cubin, a fat binary or PTX
    arch          of the GPU
    use_cache     whether kernels that were decoded before are taken from the cache
    allocate      allocates device memory
    kernels       those that the program has asked for, by name
    image_memory  the image of device globals, once a kernel needs it
    constants     memory in which the program sets `__constant__` variables, by symbol
    """

    image: bytes
    arch: str
    use_cache: bool
    allocate: Callable[[int], Allocation]
    kernels: dict[str, DeviceKernel] = field(default_factory=dict)
    image_memory: Allocation | None = None
    constants: dict[str, Allocation] = field(default_factory=dict)

    def kernel(self, name: str) -> DeviceKernel:
        """Return the kernel of this name. Raises GemmsimError where the module has none."""
        if name not in self.kernels:
            self.kernels[name] = DeviceKernel(self, name)
            try:
                _ = self.kernels[name].program
            except GemmsimError as error:
                del self.kernels[name]
                if _LAUNCHES_KERNELS in str(error):
                    what = "dynamic parallelism (a kernel that launches kernels)"
                    raise GemmsimError(f"the program uses {what}, which gemmsim does not simulate") from error
                raise
        return self.kernels[name]

    @cached_property
    def names(self) -> list[str]:
        """The symbols of the module's kernels."""
        from gemmsim.compile.binary import symbols_in

        return symbols_in(self.image)

    @property
    def is_ptx(self) -> bool:
        return not self.image.startswith((ELF, FATBIN))

    def source(self, name: str) -> KernelSource:
        """What to compile for the kernel of this name. All parameters are passed as bytes, so the ABI is that of C."""
        path = Path("the program")
        if self.is_ptx:
            return PtxKernel(self.image.rstrip(b"\0").decode(), path, name, "c")
        return CubinKernel(self.image, path, name, "c")

    def variables(self, program: Program) -> Allocation | None:
        """Return the memory of the image of device globals, with what it holds now; None where the module has none."""
        if not program.global_bytes:
            return None
        if self.image_memory is None:
            self.image_memory = self.allocate(program.global_bytes)
            image = device_globals(program, {}, self.image_memory.address).value
            self.image_memory.content[:] = np.asarray(image)
        return self.image_memory

    def contents(self, program: Program) -> tuple[tuple[str, Argument], ...]:
        """Return what the variables of the module hold now, (name, content)."""
        found = []
        for symbol in program.symbols:
            memory, at = self.image_memory, _place(symbol)
            if symbol.name in self.constants:
                content = self.constants[symbol.name].content
            elif memory is not None and at is not None and not symbol.constant:
                content = memory.content[at : at + symbol.size_bytes]
            else:
                continue
            found.append((symbol.name, Argument("u8", content.shape, content)))
        return tuple(found)

    def store(self, program: Program, memory: Allocation, after: Mapping[str, Variable]) -> None:
        """Keep what a launch has stored to the variables."""
        for symbol in program.symbols:
            variable, at = after.get(symbol.name, after.get(symbol.shown)), _place(symbol)
            if variable is not None and variable.stored and at is not None:
                memory.content[at : at + symbol.size_bytes] = variable.content

    def variable(self, name: str) -> tuple[int, int]:
        """Return (device address, bytes) of a variable. Raises GemmsimError where the module has none of this name."""
        program = self.kernel(self.names[0]).program
        symbol = find_symbol(program, name)
        at, memory = _place(symbol), self.variables(program)
        if not symbol.constant and at is not None and memory is not None:
            return memory.address + at, symbol.size_bytes
        if symbol.name not in self.constants:
            self.constants[symbol.name] = self.allocate(symbol.size_bytes)
            bank, start = next((one.bank, one.offset_bytes) for one in symbol.places if one.bank != GLOBAL_DATA)
            initial = program.constants[bank][start : start + symbol.size_bytes]
            self.constants[symbol.name].content[:] = np.frombuffer(initial, np.uint8)
        return self.constants[symbol.name].address, symbol.size_bytes


def _place(symbol: Symbol) -> int | None:
    """Return where in the image of device globals a variable lies."""
    return next((one.offset_bytes for one in symbol.places if one.bank == GLOBAL_DATA), None)


@dataclass(eq=False)
class DeviceKernel:
    """A kernel of a loaded module. dynamic_shared_bytes: how many the program has allowed it."""

    module: DeviceModule
    name: str
    dynamic_shared_bytes: int = 0

    @cached_property
    def source(self) -> KernelSource:
        return self.module.source(self.name)

    @cached_property
    def program(self) -> Program:
        cache = default_cache() if self.module.use_cache else None
        program = compile_kernel(self.source, self.module.arch, cache)
        own = not self.module.is_ptx and f"the {self.module.arch} cubin" in program.origin
        return replace(program, origin="") if own else program  # nothing was chosen that a reader should know of

    @cached_property
    def constants(self) -> frozenset[int]:
        """The 32-bit constants in the kernel's code."""
        operands = (operand for one in self.program.instructions for operand in one.operands)
        return frozenset(o.value & 0xFFFFFFFF for o in operands if o.kind is OperandKind.IMMEDIATE)

    @cached_property
    def name_address(self) -> int:
        """Where in this process the kernel's name stands."""
        return ctypes.cast(self._name, ctypes.c_void_p).value or 0

    @cached_property
    def _name(self) -> ctypes.Array[ctypes.c_char]:
        return ctypes.create_string_buffer(self.name.encode())

    @cached_property
    def depends_on_contents(self) -> bool:
        """Whether what a launch does depends on what its arrays hold."""
        return trace_depends_on_contents(self.program)


def image_at(address: int) -> bytes:
    """Return the module that begins at an address of this process: a cubin, a fat binary, its wrapper, or PTX."""
    head = ctypes.string_at(address, 4)
    if head == ELF:
        return ctypes.string_at(address, _elf_bytes(address))
    if head == FATBIN:
        _, _, header, size = struct.unpack("<IHHQ", ctypes.string_at(address, 16))
        return ctypes.string_at(address, header + size)
    if struct.unpack("<I", head)[0] == _WRAPPER_MAGIC:
        return image_at(ctypes.c_uint64.from_address(address + 8).value)
    text = ctypes.string_at(address)
    if b".version" not in text:
        raise DriverError(NO_BINARY_FOR_GPU if text else INVALID_VALUE)
    return text


def _elf_bytes(address: int) -> int:
    """Return the size of the ELF file at an address: its tables of sections and segments, and what they list."""
    head = ctypes.string_at(address, 64)
    segments_at, sections_at = struct.unpack_from("<QQ", head, 32)
    segment_size, segments, section_size, sections = struct.unpack_from("<HHHH", head, 54)
    ends = [64, segments_at + segment_size * segments, sections_at + section_size * sections]
    for number in range(sections):
        kind, _, _, offset, size = struct.unpack_from(
            "<IQQQQ", ctypes.string_at(address + sections_at + section_size * number, 64), 4
        )
        ends.append(offset + (0 if kind == 8 else size))  # SHT_NOBITS takes no room
    return max(ends)
