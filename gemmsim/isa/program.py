"""Defines `Program` and its parts: decoded machine code, which is what the GPU would run, as immutable data.

A `Program` is one kernel of one cubin after decoding: instructions with operands, predicates and the compiler's control
bits, basic blocks, source lines, and the resources that decide occupancy. It holds no object of the toolchain, so it
can be stored, shipped and read on a machine without CUDA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

INSTRUCTION_BYTES = 16  # every instruction of Volta and later is one 128-bit word

# The index of RZ, URZ, PT and UPT, which read as zero or true and drop what is written to them. Their encodings differ
# between generations: URZ is 63 up to sm_90 and 255 from sm_100 on.
ZERO = -1


class OperandKind(StrEnum):
    """The kinds of things that an operand can name."""

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
    """One operand of an instruction, as nvdisasm prints it.

    Where a field's meaning depends on the kind, the kind stands before it.

    kind       what the operand names
    index      number of the register, predicate or barrier; `ZERO` for RZ, URZ, PT and UPT. ADDRESS, indexed CONSTANT:
               the base register, `ZERO` where there is none
    value      IMMEDIATE: the integer as printed (signed; mask it to the width that the opcode wants) or, of a float
               literal, the 32 bits of the encoding's immediate field (upper half of a double, both halves of a packed
               pair). CONSTANT, TARGET: byte offset. ADDRESS: displacement in bytes, signed. IMMEDIATE with the bank
               `ADDRESS_BANK`: byte offset of the word in that bank
    bank       CONSTANT: its bank. ADDRESS, bindless CONSTANT: the uniform register of the descriptor. IMMEDIATE:
               `ADDRESS_BANK` where it is half the address of a device global, which the launch fixes; else 0
    uniform    ADDRESS, CONSTANT: the uniform register that is added to the base, `ZERO` where there is none
    scale      ADDRESS: factor on the base register (4 of `R3.X4`)
    wide       ADDRESS: whether the base register is a 64-bit pair (`R2.64`)
    negate, absolute, invert   whether the operand is printed as `-x`, as `|x|`, and as `~x` or `!p`
    suffix     what follows the name, without the dot and without `reuse`: "64", "H0_H0", "B1", ...
    name       SPECIAL: its name ("SR_TID.X"). ADDRESS: kind of its descriptor ("desc", "gdesc") or empty. CONSTANT:
               "cx" where it is bindless. IMMEDIATE: the literal where it is printed as floating point, "set" for a
               set of bits `{2,0}`, and the text of half an address that the loader writes (`32@lo(table)`)
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


_LIBRARY = re.compile(
    r"[/\\]site-packages[/\\]|[/\\](cuda[^/\\]*|nvidia)[/\\](.*[/\\])?include[/\\]"
)  # files that are not the user's


@dataclass(frozen=True, slots=True)
class Control:
    """The compiler's scheduling bits of one instruction (Volta and later, bits 105 to 125 of the encoding).

    stall_cycles   cycles the warp waits after issuing this instruction
    yield_hint     True where the scheduler is asked to prefer another warp
    write_barrier  scoreboard (0 to 5) that is released when the result is written; None without one
    read_barrier   scoreboard that is released when the sources have been read; None without one
    wait_mask      bit i is set where the instruction must not issue before scoreboard i is free
    reuse_mask     operand slots whose registers stay in the register reuse cache
    """

    stall_cycles: int
    yield_hint: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse_mask: int


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source file."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction.

    offset      byte offset from the start of the kernel
    opcode      the mnemonic's first part ("IMAD")
    modifiers   the mnemonic's other parts (("WIDE", "U32"))
    predicate   its guard (`@!P0` is an inverted PREDICATE operand); None where it always executes
    sources     its source lines, innermost first; more than one where the code was inlined
    text        the instruction as nvdisasm prints it
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


# Numbers that stand in the place of a constant bank's number in `Relocation` and `Place`. GLOBAL_DATA is the image of
# the module's device globals. ADDRESS_BANK is no bank of the GPU: it holds the addresses of device globals that the
# loader would write into immediates of the code, 8 bytes for each.
GLOBAL_DATA = -1
ADDRESS_BANK = 32


@dataclass(frozen=True, slots=True)
class Relocation:
    """The 8-byte word at `offset_bytes` of a bank is the address of the image of device globals + `addend_bytes`.

    bank  number of a constant bank, `ADDRESS_BANK`, or `GLOBAL_DATA` for a word of the image itself. In bank 0 the
          word is one that the driver fills
    """

    bank: int
    offset_bytes: int
    addend_bytes: int


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a variable: a byte offset in a constant bank or, where `bank` is `GLOBAL_DATA`, in the image."""

    bank: int
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A `__device__` or `__constant__` variable of the module.

    name    its name in the cubin
    shown   its name as people write it: the last part of a mangled name
    places  where its content lies: one place, or two for a `__constant__` variable, which lies in its bank and, for
            code that takes its address, in the image of device globals
    """

    name: str
    shown: str
    size_bytes: int
    places: tuple[Place, ...]

    @property
    def constant(self) -> bool:
        """Whether it is a `__constant__` variable."""
        return any(place.bank != GLOBAL_DATA for place in self.places)


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A basic block: instructions [start, stop) by index, entered only at the first and left only at the last.

    successors  the blocks that may run next: indices into `Program.blocks`, sorted
    """

    start: int
    stop: int
    successors: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """One kernel, decoded.

    name, symbol       readable name ("tiled"), and the name in the cubin
    arch               architecture ("sm_90")
    abi                "numba" where an array argument is 5 + 2*ndim words, "c" where it is one pointer
    registers          number of registers of a thread, as the driver would report it
    static_shared_bytes, barriers   bytes of shared memory and number of barriers of a block
    local_bytes        bytes of local memory of a thread: stack and spills
    parameter_base     byte offset of the parameters in constant bank 0
    constants          {bank: initial content} of the other constant banks
    max_threads        most threads of a block, the kernel's launch bound; None where there is none
    toolchain          {tool: version} of the tools that made the program
    source             {file name: text} of the files that source lines name, where they could be read
    cubin_sha256       hash of the whole cubin; of a source that gemmsim compiles, without debug information, which says
                       in which folder the source was
    reserved_shared_bytes  bytes at the bottom of the shared window that the system uses (sm_90 and later: the kernel's
                       data starts at this address); `static_shared_bytes` does not contain them
    global_data        initial content of the module's device globals (`__device__` variables, tables of math functions,
                       texts of printf and assert); this is the image up to `global_bytes`, of which the rest is zero
    relocations        words of `constants` and of the image that hold addresses in the image
    origin             where ready machine code was taken from: "the sm_80 cubin in prog"; empty for compiled sources
    global_bytes       size of the image of device globals
    symbols            the variables of the module, sorted by name
    cluster            (x, y, z): blocks of a cluster, where the kernel says so (`__cluster_dims__`); else None
    max_cluster_blocks most blocks of a cluster, where the kernel says so (`__launch_bounds__`); else None
    externals          functions that the code calls and the module lacks (vprintf, malloc, ...); the address of number
                       i is 16 i bytes behind the code
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
    origin: str = ""
    global_bytes: int = 0
    symbols: tuple[Symbol, ...] = ()
    externals: tuple[str, ...] = ()
    cluster: tuple[int, int, int] | None = None
    max_cluster_blocks: int | None = None

    def line_of(self, instruction: Instruction) -> SourceLine | None:
        """Return where an instruction stands in the user's code; None where the code has no lines.

        That is its innermost line that is not in a file of CUDA or of a Python package; else the innermost.
        """
        known = [line for line in instruction.sources if line.file in self.source]
        own = [line for line in known if not _LIBRARY.search(line.file)]
        return next(iter((*own, *known, *instruction.sources)), None)

    @property
    def usual_parameter_base(self) -> int:
        """Where parameters begin in constant bank 0 on this architecture. Those of more than 4 KiB begin elsewhere.

        The fields that the driver fills in front of the parameters depend on the architecture alone.
        """
        number = int("".join(filter(str.isdigit, self.arch)) or 0)
        return 0x380 if number >= 100 else 0x210 if number >= 90 else 0x160
