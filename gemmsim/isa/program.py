"""Decoded machine code: what the GPU would run, as immutable data.

A `Program` is one kernel of one cubin after decoding: instructions with operands, predicates and the compiler's control
bits, basic blocks, source lines, and the resources that decide occupancy. It holds no toolchain object, so it can be
stored, shipped and read on a machine that has no CUDA at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

INSTRUCTION_BYTES = 16  # every instruction of Volta and later is one 128-bit word

# Architectural "zero" and "true" names, normalised: nvdisasm prints RZ, URZ, PT and UPT, whose encodings differ between
# generations (URZ is 63 up to sm_90 and 255 from sm_100 on). Index -1 means "reads as zero/true, writes vanish".
ZERO = -1


class OperandKind(StrEnum):
    REGISTER = "R"
    UNIFORM_REGISTER = "UR"
    PREDICATE = "P"
    UNIFORM_PREDICATE = "UP"
    BARRIER = "B"  # convergence barrier register (BSSY, BSYNC)
    IMMEDIATE = "imm"
    CONSTANT = "c"
    ADDRESS = "mem"
    SPECIAL = "SR"
    TARGET = "target"  # byte offset of a branch target in the kernel


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand as printed by nvdisasm, parsed.

    kind       what it names
    index      register, predicate or barrier number; `ZERO` for RZ/URZ/PT/UPT; base register of an ADDRESS or of an
               indexed CONSTANT (`ZERO` where there is none)
    value      IMMEDIATE: the integer as printed (signed; mask it to the width the opcode wants), for float literals the
               32 bits of the encoding's immediate field (upper half of a double; both halves of a packed pair);
               CONSTANT: byte offset; ADDRESS: displacement in bytes
               (signed); TARGET: byte offset
    bank       constant bank of a CONSTANT; uniform register of an ADDRESS's or bindless CONSTANT's descriptor
    uniform    ADDRESS or CONSTANT: index of the uniform register added to the base, `ZERO` where there is none
    scale      ADDRESS: factor on the base register (`R3.X4` is 4)
    wide       ADDRESS: the base register is a 64-bit pair (`R2.64`)
    negate, absolute, invert   `-x`, `|x|`, and `~x` or `!p`
    suffix     what follows the name, without the dot (`reuse` excluded): "64", "H0_H0", "B1", ...
    name       SPECIAL: its name ("SR_TID.X"); ADDRESS: kind of its descriptor ("desc", "gdesc") or empty; CONSTANT:
               "cx"
               where bindless; IMMEDIATE: the literal where printed as floating point, "set" for a set of bits `{2,0}`
    """

    kind: OperandKind
    index: int = ZERO
    value: int = 0
    bank: int = 0
    uniform: int = ZERO
    scale: int = 1
    wide: bool = False
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    suffix: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """The compiler's scheduling bits of one instruction (Volta and later, bits 105 to 125 of the encoding).

    stall_cycles   cycles the warp waits after issuing this instruction
    yield_hint     True where the scheduler is asked to prefer another warp
    write_barrier  scoreboard (0 to 5) released when the result is written, None where none
    read_barrier   scoreboard released when the sources have been read, None where none
    wait_mask      bit i set: do not issue before scoreboard i is free
    reuse_mask     operand slots kept in the register reuse cache
    """

    stall_cycles: int
    yield_hint: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse_mask: int


@dataclass(frozen=True, slots=True)
class SourceLine:
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction.

    offset      byte offset from the start of the kernel
    opcode      base opcode ("IMAD"); `modifiers` are what follows it, split at the dots (("WIDE", "U32"))
    predicate   guard (`@!P0` is an inverted PREDICATE operand), None where it always executes
    sources     source lines, innermost first; more than one where the instruction was inlined
    text        the instruction as nvdisasm prints it, for people
    encoding    the 128-bit word
    """

    offset: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Operand | None
    control: Control
    sources: tuple[SourceLine, ...]
    text: str
    encoding: int

    @property
    def mnemonic(self) -> str:
        return ".".join((self.opcode, *self.modifiers))

    @property
    def index(self) -> int:
        return self.offset // INSTRUCTION_BYTES


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: `offset_bytes` from the start of the parameter space, `size_bytes` long."""

    ordinal: int
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """The 8-byte word at `offset_bytes` of a constant bank is the address of `Program.global_data` + `addend_bytes`."""

    bank: int
    offset_bytes: int
    addend_bytes: int


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions [start, stop) by index; control enters only at the first and leaves only at the last.

    successors  indices into `Program.blocks`, sorted
    """

    start: int
    stop: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """One kernel, decoded.

    name               readable name ("tiled"); `symbol` is the name in the cubin
    arch               "sm_90"
    abi                "numba": an array argument is 5 + 2*ndim words; "c": an array argument is one pointer
    registers          registers a thread, as the driver would report them
    static_shared_bytes, local_bytes (a thread: stack and spills), barriers
    parameter_base     byte offset of the parameters in constant bank 0
    constants          initial content of other constant banks, {bank: bytes}
    max_threads        launch bound of the kernel, None where there is none
    toolchain          {tool: version} that made it
    source             {file name: text} of the files that source lines point into, where they could be read
    cubin_sha256       of the whole cubin
    reserved_shared_bytes  bytes for the system at the bottom of the shared window (sm_90 and later: the kernel's data
                       starts at this address); not in `static_shared_bytes`
    global_data        initial content of the module's device globals (`__device__` variables, tables of math functions)
    relocations        words of `constants` that hold addresses into `global_data`
    """

    name: str
    symbol: str
    arch: str
    abi: str
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    registers: int
    static_shared_bytes: int
    local_bytes: int
    barriers: int
    parameters: tuple[Parameter, ...]
    parameter_base: int
    constants: dict[int, bytes] = field(default_factory=dict)
    max_threads: int | None = None
    toolchain: dict[str, str] = field(default_factory=dict)
    source: dict[str, str] = field(default_factory=dict)
    cubin_sha256: str = ""
    reserved_shared_bytes: int = 0
    global_data: bytes = b""
    relocations: tuple[Relocation, ...] = ()
