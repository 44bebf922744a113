"""Reads the table of opcodes, `opcodes.toml`, as `Opcode` rows: what lowers an opcode, where it issues, how it counts.

Code that must know something about an opcode asks its row. The rows name functions and pipes of other packages by
text, since this package imports none of them; a test checks that they exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from gemmsim.isa.program import Instruction
from gemmsim.support.errors import GemmsimError, nearest

TABLE_FILE = Path(__file__).with_suffix(".toml")
# The bytes that each lane accesses, by the modifier that says so; an access without such a modifier takes 4.
ACCESS_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16}
# The same of atomics, which say the type of what they combine.
ATOMIC_BYTES = {
    **{"U64": 8, "S64": 8, "F64": 8, "F32x2": 8, "F32x4": 16},
    **{f"{half}x{count}": 2 * count for half in ("F16", "BF16") for count in (2, 4, 8)},
}


class MixClass(StrEnum):
    """The classes into which reports divide the executed instructions, each by its name there."""

    FMA = "multiply-add"
    FLOAT = "other floating point"
    INTEGER = "integer and address"
    GLOBAL = "global memory"
    SHARED = "shared memory"
    CONTROL = "control and barriers"
    OTHER = "moves, constants, other"


class Kind(StrEnum):
    """What an instruction does besides computing or accessing memory, where other parts of gemmsim must know of it."""

    PLAIN = "plain"
    BRANCH = "branch"  # to the label that it names
    INDEXED_BRANCH = "indexed_branch"  # to where a register says
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    WARP_SYNC = "warp_sync"  # waits for threads of its warp; with a label it branches there
    BARRIER = "barrier"  # waits for other warps of its block
    MEMORY_FENCE = "memory_fence"  # waits until others can see what its warp has written
    COPY_GROUP = "copy_group"  # closes a group of asynchronous copies
    SCOREBOARD_WAIT = "scoreboard_wait"  # waits until at most so many operations of a scoreboard are under way
    MATRIX_ROWS = "matrix_rows"  # a lane's address is that of a row of an 8 x 8 matrix of 16-bit elements
    SHUFFLE = "shuffle"
    SPECIAL_REGISTER = "special_register"  # reads one behind what its SM has asked of L1
    WARPGROUP_MULTIPLY = "warpgroup_multiply"  # multiplies a quarter of a warpgroup's matrices, asynchronously
    BULK_COPY = "bulk_copy"  # a run of bytes or a tile goes between global and shared memory, asynchronously
    BULK_PREFETCH = "bulk_prefetch"  # brings such to L2
    BULK_GROUP = "bulk_group"  # closes a group of bulk stores
    MAP_CACHE = "map_cache"  # drops a tensor map from its cache, or brings it there
    MBARRIER = "mbarrier"  # does something at a barrier in shared memory, or waits there
    WARPGROUP_MEET = "warpgroup_meet"  # waits until the other warps of the warpgroup have arrived, too
    WARPGROUP_WAIT = "warpgroup_wait"  # waits until at most so many groups of such multiplications are under way


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How an opcode accesses memory.

    space      memory space of its address; a "generic" address may lie in any of the other spaces
    operation  load, store, atomic with ("atom") or without ("red") a result, or "ldgsts", which copies from global to
               shared memory; `space` is then that of the source. "tma_ld", "tma_st" and "tma_red" are bulk copies to
               and from shared memory, which go past L1; `space` is that of the other side.
    """

    space: Literal["global", "shared", "local", "generic"]
    operation: Literal["ld", "st", "atom", "red", "ldgsts", "tma_ld", "tma_st", "tma_red"]

    @property
    def load(self) -> bool:
        """Whether the access writes registers."""
        return self.operation in ("ld", "atom")

    @property
    def copy(self) -> bool:
        """Whether the access copies from global to shared memory."""
        return self.operation == "ldgsts"

    @property
    def bulk(self) -> bool:
        """Whether the access is a bulk copy."""
        return self.operation.startswith("tma")


@dataclass(frozen=True, slots=True)
class Opcode:
    """What gemmsim knows of one opcode: a row of the table `opcodes.toml`.

    name              "IMAD"
    lowering          "module.function" below `gemmsim.trace.lower`; empty where nothing executes the opcode yet
    port              pipe or port that it needs to issue (`gemmsim.sm.pipes`); empty where it needs none
    port_from_sm_100  its port from sm_100 on, where that differs from `port`; else empty
    mix               its class in the instruction mix that reports show
    kind              what it does besides computing and accessing memory
    memory            how it accesses memory; None where that is not through L1 or shared memory
    precision         precision of its operations and matrices: "fp32", "tensor_bf16"; empty where none are counted
    operations        arithmetic operations of each thread (Nsight Compute's count); 0 where none are counted
    slots             number of issue intervals for which it occupies its pipe; for the tensor pipe, see
                      `gemmsim.sm.pipes`
    passes_barrier    False where it waits at a barrier at which its pipe's other instructions need not wait; else True
    half_work         modifiers of shapes with half the multiply-adds of the shape for which `GpuSpec.mma` has times
    shapes            {modifier: (rows of A, depth)} of a matrix multiplication
    variants          {modifier: the opcode's row with that modifier}, for the modifiers that change something
    """

    name: str
    port: str
    mix: MixClass
    lowering: str = ""
    port_from_sm_100: str = ""
    kind: Kind = Kind.PLAIN
    memory: MemoryAccess | None = None
    precision: str = ""
    operations: int = 0
    slots: float = 1.0
    passes_barrier: bool = True
    half_work: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    variants: Mapping[str, Opcode] = field(default_factory=dict)

    def modified_by(self, modifiers: Collection[str]) -> Opcode:
        """Return the opcode's row as `modifiers` change it. At most one of them may change something."""
        if not self.variants:
            return self
        return next((self.variants[m] for m in modifiers if m in self.variants), self)


def opcode_row(opcode: str, modifiers: Collection[str] = ()) -> Opcode:
    """Return the `Opcode` of the mnemonic `opcode`, as `modifiers` change it. Raises GemmsimError for an opcode that
    the table lacks."""
    row = OPCODES.get(opcode)
    if row is None:
        hint = nearest(opcode, OPCODES)
        raise GemmsimError(f"opcode {opcode} is not in gemmsim's table of opcodes, {TABLE_FILE.name}{hint}")
    return row.modified_by(modifiers)


def row_of(instruction: Instruction) -> Opcode:
    """Return the `Opcode` of an instruction, as its modifiers change it. Raises what `opcode_row` raises."""
    return _kept_row(instruction.opcode, instruction.modifiers)


@cache
def _kept_row(opcode: str, modifiers: tuple[str, ...]) -> Opcode:
    """`opcode_row`, which is asked several times for each instruction of a program."""
    return opcode_row(opcode, modifiers)


def _read(text: str) -> Mapping[str, Opcode]:
    """Parse the table's text to {opcode: row}. Raises GemmsimError, which names the row, where a row is not valid."""
    document = tomllib.loads(text)
    shapes = {name: {shape: tuple(sizes) for shape, sizes in row.items()} for name, row in document["shapes"].items()}
    table: dict[str, Opcode] = {}
    for section in ("executes", "decodes_only"):
        for name, row in document[section].items():
            try:
                if name in table or bool(row.get("lowering")) != (section == "executes"):
                    raise ValueError(f"does not belong to [{section}]")
                opcode = Opcode(name, **_typed(row), shapes=MappingProxyType(shapes.get(name, {})))
                changes = document["modifiers"].get(name, {})
                variants = {modifier: replace(opcode, **_typed(change)) for modifier, change in changes.items()}
                table[name] = replace(opcode, variants=MappingProxyType(variants)) if variants else opcode
            except (KeyError, TypeError, ValueError) as error:
                raise GemmsimError(f"{TABLE_FILE.name}, {name}: {error}") from error
    return MappingProxyType(table)


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    """Convert the fields of a row from TOML's types to those of `Opcode`."""
    typed = dict(row)
    if "mix" in row:
        typed["mix"] = MixClass[row["mix"].upper()]
    if "kind" in row:
        typed["kind"] = Kind(row["kind"])
    if "memory" in row:
        space, operation = row["memory"].split()
        typed["memory"] = MemoryAccess(space, operation)
    if "slots" in row:
        typed["slots"] = float(row["slots"])
    if "half_work" in row:
        typed["half_work"] = tuple(row["half_work"])
    return typed


OPCODES = _read(TABLE_FILE.read_text(encoding="utf-8"))
