"""Reads a cubin's ELF: the code bytes, resources, parameters and constant banks of its kernels.

Attribute numbers of `.nv.info` (EIATTR_*) are those that nvdisasm names when it prints a cubin; the tests check that
what is read here equals what `ptxas -v` reports for the same kernel.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from gemmsim.compile.image import CodeSection, ElfSymbol, Module, Section, image_of
from gemmsim.compile.sections import is_kernel, read_symbols
from gemmsim.isa.program import Parameter, Relocation, Symbol
from gemmsim.support.errors import GemmsimError

EM_CUDA = 190  # e_machine of the ELF specification's registry
_SHT_NOBITS = 8
_RESERVED_SHARED_BYTES = 1024  # system use, at the bottom of the window (CUDA programming guide, table of limits)

_MAX_THREADS, _PARAM_CBANK, _REQNTID, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x0A, 0x10, 0x11, 0x12
_UNKNOWN_SIZE = 0xFFFFFFFF  # what CUDA 13.5 writes as the minimum stack size of kernels that call functions
_KPARAM_INFO, _CBANK_PARAM_SIZE, _REGCOUNT, _NUM_BARRIERS = 0x17, 0x19, 0x2F, 0x4C
_CTA_PER_CLUSTER, _MAX_CLUSTER_RANK = 0x3D, 0x3F
_LARGE_KPARAM_INFO = 0x45  # in place of _KPARAM_INFO where the parameters take more than 4 KiB
# Which of these pyelftools raises depends on the field that is damaged.
_DAMAGE = (ELFError, struct.error, ValueError, IndexError, KeyError, UnicodeDecodeError, AttributeError, TypeError,
           OverflowError, EOFError, AssertionError)  # fmt: skip
_FORMAT_SIZED = 4  # EIFMT_SVAL: a 16-bit size and then so many bytes; an attribute of another format has four bytes


@dataclass(frozen=True)
class Kernel:
    """One kernel of a cubin. `Program` describes the fields that both have.

    code       the machine code of the kernel and behind it that of the functions that it may call, 16 bytes for each
               instruction
    functions  the sections of the code, the kernel's own first
    symbols    {function: byte offset in `code`}
    """

    symbol: str
    code: bytes
    functions: tuple[CodeSection, ...]
    symbols: dict[str, int]
    registers: int
    static_shared_bytes: int
    reserved_shared_bytes: int
    local_bytes: int
    barriers: int
    parameters: tuple[Parameter, ...]
    parameter_base: int
    max_threads: int | None
    constants: dict[int, bytes] = field(default_factory=dict)
    relocations: tuple[Relocation, ...] = ()
    global_data: bytes = b""
    global_bytes: int = 0
    variables: tuple[Symbol, ...] = ()
    externals: tuple[str, ...] = ()
    cluster: tuple[int, int, int] | None = None
    max_cluster_blocks: int | None = None


@dataclass(frozen=True)
class Cubin:
    """The content of a cubin.

    arch  "sm_90"
    """

    arch: str
    kernels: tuple[Kernel, ...]


def read_cubin(cubin: bytes) -> Cubin:
    """Parse a cubin. Raises GemmsimError, with a message of one line, for data that is not a whole cubin of sm_75 or
    later."""
    if cubin[:4] != b"\x7fELF":
        raise GemmsimError("not a cubin: the file does not start with the ELF magic number")
    try:
        return _read(ELFFile(io.BytesIO(cubin)), len(cubin))
    except GemmsimError:
        raise
    except _DAMAGE as error:
        raise GemmsimError(f"the cubin is truncated or damaged ({type(error).__name__}: {error})") from None


def sha256_without_lines(cubin: bytes) -> str:
    """Return a hash of all sections of a cubin but those of debug information, in which the paths of sources stand."""
    digest = hashlib.sha256()
    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        if "debug" not in section.name:
            digest.update(section.name.encode() + section.header["sh_size"].to_bytes(8, "little") + section.data())
    return digest.hexdigest()


def _read(elf: ELFFile, file_bytes: int) -> Cubin:
    if elf["e_machine"] not in ("EM_CUDA", EM_CUDA):
        raise GemmsimError(f"not a cubin: the ELF file is for {elf['e_machine']}, not for an NVIDIA GPU")
    for table, entries, entry_bytes in (("e_phoff", "e_phnum", "e_phentsize"), ("e_shoff", "e_shnum", "e_shentsize")):
        if elf[table] + elf[entries] * elf[entry_bytes] > file_bytes:
            raise GemmsimError(f"the cubin is truncated: its headers end beyond the file's {file_bytes} bytes")
    sections = []
    for index, section in enumerate(elf.iter_sections()):
        header = section.header
        nobits = header["sh_type"] in ("SHT_NOBITS", _SHT_NOBITS)
        if not nobits and header["sh_offset"] + header["sh_size"] > file_bytes:
            raise GemmsimError(f"the cubin is truncated: section {index} ends beyond the file's {file_bytes} bytes")
        data = b"" if nobits else section.data()
        sections.append(
            Section(index, section.name, data, header["sh_size"], max(1, header["sh_addralign"]), header["sh_info"])
        )
    by_name = {section.name: section for section in sections}
    module = Module(tuple(sections), tuple(read_symbols(by_name[".symtab"].data, by_name[".strtab"].data)))
    sm = _sm(elf)
    if sm < 75:
        raise GemmsimError(f"the cubin is for sm_{sm}; gemmsim reads sm_75 and later")
    kernels = tuple(
        _kernel(symbol, module, by_name, sm)
        for symbol in module.symbols
        if is_kernel(symbol) and symbol.section < len(sections)
    )
    if not kernels:
        raise GemmsimError("the cubin holds no kernel (no __global__ function)")
    return Cubin(f"sm_{sm}", kernels)


def _sm(elf: ELFFile) -> int:
    """Return the SM version (90): bits [15:8] of e_flags in ABI version 8 (CUDA 13), and bits [7:0] in version 7."""
    flags = elf["e_flags"]
    return int(flags >> 8 & 0xFF if elf["e_ident"]["EI_ABIVERSION"] >= 8 else flags & 0xFF)


def _kernel(symbol: ElfSymbol, module: Module, by_name: dict[str, Section], sm: int) -> Kernel:
    name = symbol.name
    info, symbols = by_name[".nv.info"].data if ".nv.info" in by_name else b"", module.symbols
    if f".nv.info.{name}" not in by_name:
        raise GemmsimError(f"the cubin has no section .nv.info.{name}: its parameters are unknown")
    per_symbol = {
        attribute: struct.unpack("<II", value)[1]
        for attribute, value in _attributes(info)
        if attribute in (_REGCOUNT, _FRAME_SIZE, _MIN_STACK_SIZE)
        and symbols[struct.unpack_from("<I", value)[0]].name == name
    }
    attributes = list(_attributes(by_name[f".nv.info.{name}"].data))
    single = dict(attributes)
    base, _size = struct.unpack_from("<HH", single[_PARAM_CBANK], 4) if _PARAM_CBANK in single else (0, 0)
    threads = single.get(_REQNTID) or single.get(_MAX_THREADS)
    x, y, z = struct.unpack_from("<III", threads) if threads else (0, 0, 0)
    shared = by_name[f".nv.shared.{name}"].size if f".nv.shared.{name}" in by_name else 0
    reserved = _RESERVED_SHARED_BYTES if sm >= 90 else 0  # from sm_90 on the section includes it
    image = image_of(symbol, module, sm)
    return Kernel(
        symbol=name,
        code=image.code,
        functions=image.functions,
        symbols=image.labels,
        registers=per_symbol.get(_REGCOUNT, module.sections[symbol.section].info >> 24),
        static_shared_bytes=max(0, shared - reserved),
        reserved_shared_bytes=reserved,
        local_bytes=max(
            (size for key in (_FRAME_SIZE, _MIN_STACK_SIZE) if (size := per_symbol.get(key, 0)) != _UNKNOWN_SIZE),
            default=0,
        ),
        barriers=single[_NUM_BARRIERS][0] if _NUM_BARRIERS in single else 0,
        parameters=_parameters(attributes),
        parameter_base=base,
        max_threads=x * y * z or None,
        constants=image.constants,
        relocations=image.relocations,
        global_data=image.global_data,
        global_bytes=image.global_bytes,
        variables=image.variables,
        externals=image.externals,
        cluster=struct.unpack_from("<III", single[_CTA_PER_CLUSTER]) if _CTA_PER_CLUSTER in single else None,
        max_cluster_blocks=(
            struct.unpack_from("<I", single[_MAX_CLUSTER_RANK])[0] if _MAX_CLUSTER_RANK in single else None
        ),
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (attribute, value) of each record of a `.nv.info` section.

    A record has a format and an attribute. Then, as the format says, comes either a size and a value, or a value of two
    bytes.
    """
    position = 0
    while position < len(data):
        layout, attribute, size = struct.unpack_from("<BBH", data, position)
        position += 4
        if layout == _FORMAT_SIZED:
            value = data[position : position + size]
            if len(value) != size:
                raise GemmsimError("the cubin is truncated: an attribute ends beyond its .nv.info section")
            position += size
            yield attribute, value
        else:
            yield attribute, struct.pack("<H", size)


def _parameters(attributes: list[tuple[int, bytes]]) -> tuple[Parameter, ...]:
    found = []
    for attribute, value in attributes:
        if attribute == _KPARAM_INFO:  # index, ordinal, offset, then size in bits [31:18] of the last word
            _index, ordinal, offset, word = struct.unpack("<IHHI", value)
            found.append(Parameter(ordinal, offset, word >> 18))
        elif attribute == _LARGE_KPARAM_INFO:  # the same, but the last word is the size
            _index, ordinal, offset, size = struct.unpack("<IHHI", value)
            found.append(Parameter(ordinal, offset, size))
    return tuple(sorted(found, key=lambda parameter: parameter.ordinal))
