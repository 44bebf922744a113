"""Reads a cubin's ELF: the code bytes, resources, parameters and constant banks of its kernels.

Attribute numbers of `.nv.info` (EIATTR_*) are those that nvdisasm names when it prints a cubin; the tests check that
what is read here equals what `ptxas -v` reports for the same kernel.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from gemmsim.isa.program import Parameter, Relocation
from gemmsim.support.errors import GemmsimError

EM_CUDA = 190  # e_machine of the ELF specification's registry
_STO_CUDA_ENTRY = 0x10  # bit of st_other that marks a kernel
_STT_FUNC, _SHT_NOBITS = 2, 8
_RESERVED_SHARED_BYTES = 1024  # system use, at the bottom of the window (CUDA programming guide, table of limits)

_MAX_THREADS, _PARAM_CBANK, _REQNTID, _FRAME_SIZE, _MIN_STACK_SIZE = 0x05, 0x0A, 0x10, 0x11, 0x12
_UNKNOWN_SIZE = 0xFFFFFFFF  # what CUDA 13.5 writes as the minimum stack size of kernels that call functions
_KPARAM_INFO, _CBANK_PARAM_SIZE, _REGCOUNT, _NUM_BARRIERS = 0x17, 0x19, 0x2F, 0x4C
_FORMAT_SIZED = 4  # EIFMT_SVAL: a 16-bit size and then so many bytes; an attribute of another format has four bytes


@dataclass(frozen=True)
class Kernel:
    """One kernel of a cubin. `Program` describes the fields that both have.

    symbol_index  its number in the cubin's symbol table
    code          its machine code, 16 bytes for each instruction
    symbols       {function: byte offset in `code`}
    """

    symbol: str
    symbol_index: int
    code: bytes
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


@dataclass(frozen=True)
class Cubin:
    """The content of a cubin.

    arch         "sm_90"
    global_data  initial content of all device globals, see `Program.global_data`
    """

    arch: str
    kernels: tuple[Kernel, ...]
    global_data: bytes


@dataclass(frozen=True)
class _Symbol:
    name: str
    kind: int
    other: int
    section: int
    value: int


@dataclass(frozen=True)
class _Section:
    index: int
    name: str
    data: bytes
    size: int
    align: int
    info: int


def read_cubin(cubin: bytes) -> Cubin:
    """Parse a cubin. Raises GemmsimError, with a message of one line, for data that is not a whole cubin of sm_75 or
    later."""
    if cubin[:4] != b"\x7fELF":
        raise GemmsimError("not a cubin: the file does not start with the ELF magic number")
    try:
        return _read(ELFFile(io.BytesIO(cubin)), len(cubin))
    except GemmsimError:
        raise
    except (ELFError, struct.error, ValueError, IndexError, KeyError, UnicodeDecodeError, AttributeError, TypeError,
            OverflowError, EOFError, AssertionError) as error:  # fmt: skip
        # Which of these pyelftools raises depends on the field that is damaged.
        raise GemmsimError(f"the cubin is truncated or damaged ({type(error).__name__}: {error})") from None


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
            _Section(index, section.name, data, header["sh_size"], max(1, header["sh_addralign"]), header["sh_info"])
        )
    by_name = {section.name: section for section in sections}
    symbols = _symbols(by_name[".symtab"].data, by_name[".strtab"].data)
    sm = _sm(elf)
    if sm < 75:
        raise GemmsimError(f"the cubin is for sm_{sm}; gemmsim reads sm_75 and later")
    placed, global_data = _global_image(by_name)
    info = by_name[".nv.info"].data if ".nv.info" in by_name else b""
    kernels = tuple(
        _kernel(symbol, symbols, sections, by_name, info, sm, placed)
        for symbol in symbols
        if symbol.kind == _STT_FUNC and symbol.other & _STO_CUDA_ENTRY and 0 < symbol.section < len(sections)
    )
    if not kernels:
        raise GemmsimError("the cubin holds no kernel (no __global__ function)")
    return Cubin(f"sm_{sm}", kernels, global_data)


def _sm(elf: ELFFile) -> int:
    """Return the SM version (90): bits [15:8] of e_flags in ABI version 8 (CUDA 13), and bits [7:0] in version 7."""
    flags = elf["e_flags"]
    return int(flags >> 8 & 0xFF if elf["e_ident"]["EI_ABIVERSION"] >= 8 else flags & 0xFF)


def _symbols(table: bytes, names: bytes) -> list[_Symbol]:
    """Read the ELF64 symbols, which pyelftools cannot do: it drops the bits of st_other that CUDA uses."""
    symbols = []
    for name, kind, other, section, value, _size in struct.iter_unpack("<IBBHQQ", table):
        text = names[name : names.index(b"\0", name)].decode()
        symbols.append(_Symbol(text, kind & 15, other, section, value))
    return symbols


def _global_image(by_name: dict[str, _Section]) -> tuple[dict[int, int], bytes]:
    """Make one image of the initial content of all device globals: initialised data, and then zeros.

    Returns {section index: the section's byte offset in the image}, and the image.
    """
    placed, image = {}, b""
    for name in (".nv.global.init", ".nv.global"):
        if section := by_name.get(name):
            image += bytes(-len(image) % section.align)
            placed[section.index] = len(image)
            image += section.data or bytes(section.size)
    return placed, image


def _kernel(
    symbol: _Symbol,
    symbols: list[_Symbol],
    sections: list[_Section],
    by_name: dict[str, _Section],
    module_info: bytes,
    sm: int,
    placed: dict[int, int],
) -> Kernel:
    name = symbol.name
    text = sections[symbol.section]
    if len(text.data) % 16:
        raise GemmsimError(f"the code of '{name}' is {len(text.data)} bytes, not a multiple of 16")
    if f".nv.info.{name}" not in by_name:
        raise GemmsimError(f"the cubin has no section .nv.info.{name}: its parameters are unknown")
    per_symbol = {
        attribute: struct.unpack("<II", value)[1]
        for attribute, value in _attributes(module_info)
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
    constants, relocations = _constants(name, sections, symbols, placed)
    return Kernel(
        symbol=name,
        symbol_index=symbols.index(symbol),
        code=text.data,
        symbols={s.name: s.value for s in symbols if s.section == text.index and s.name and s.kind == _STT_FUNC},
        registers=per_symbol.get(_REGCOUNT, text.info >> 24),
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
        constants=constants,
        relocations=relocations,
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
    return tuple(sorted(found, key=lambda parameter: parameter.ordinal))


def _constants(
    name: str, sections: list[_Section], symbols: list[_Symbol], placed: dict[int, int]
) -> tuple[dict[int, bytes], tuple[Relocation, ...]]:
    """Read the constant banks {bank: content}, and which words in them hold addresses of device globals.

    placed  {section index: the section's byte offset in the image of device globals}

    Bank 0 is left out: it holds the launch parameters.
    """
    banks, relocations = {}, []
    for section in sections:
        bank_text, _, owner = section.name.removeprefix(".nv.constant").partition(".")
        if section.name.startswith(".nv.constant") and bank_text.isdigit() and bank_text != "0" and owner in ("", name):
            banks[int(bank_text)] = section.data
            for prefix, layout in ((".rel", "<QII"), (".rela", "<QIIq")):
                for table in (s for s in sections if s.name == prefix + section.name):
                    for offset, _kind, index, *addend in struct.iter_unpack(layout, table.data):
                        target = symbols[index]
                        if target.section in placed:
                            at = placed[target.section] + target.value
                            inline = 0 if addend else struct.unpack_from("<Q", section.data, offset)[0]
                            relocations.append(Relocation(int(bank_text), offset, at + (addend or [inline])[0]))
    return banks, tuple(relocations)
