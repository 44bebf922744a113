"""Says which instructions access memory, in which space, by which operation and how wide."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.matrix import MATRIX_ROW_BYTES, matrix_count
from gemmsim.isa.opcodes import ACCESS_BYTES, ATOMIC_BYTES, Kind, row_of
from gemmsim.isa.program import Instruction
from gemmsim.support.warp import WARP_LANES

# An access of 256 bits (sm_100 and later) is recorded as two of 128.
_WIDTHS = ACCESS_BYTES | ATOMIC_BYTES | {"256": 16}
_SECTOR_BYTES = 32  # a lane of a bulk copy's record stands for a sector
_EVICT_FIRST = {"ld": {"EF", "NA", "LU"}, "st": {"EF"}}  # modifiers of loads and stores of global memory
_ROWS = 8  # lanes that give an address for each matrix of LDSM and STSM


@dataclass(frozen=True, slots=True)
class Access:
    """What one static memory instruction asks for.

    space        "global", "local", "shared", or "dshared" (shared memory of another block of the cluster)
    op           "ld", "st", "atom", "red", "ldgsts" (global to shared; space is that of its source), "zeros" (an LDGSTS
                 that reads nothing), or those of bulk copies, "tma_ld", "tma_st" and "tma_red"
    width_bytes  bytes a lane
    routable     False where the lanes of a load can never merge into fewer wavefronts than its width needs (LDSM)
    lanes        how many lanes give an address: 8 for each matrix of LDSM and STSM, else all
    bypasses     whether what it reads goes past L1: an LDGSTS that says so (cp.async.cg), or a load that must see what
                 other SMs have stored (ld.cg, ld.volatile, and ld.acquire and ld.relaxed of the GPU's scope or wider).
                 L1 is not coherent, so PTX has such loads served by L2 (PTX ISA, "Cache Operators").
    last_use     whether a load says that its data is not read again (LDL.LU, which fills a spilled register)
    evict_first  whether L2 is told to replace it before other data: a load or a store with .EF (ld.cs, st.cs), a load
                 with .NA (L1::no_allocate) or .LU (ld.lu), to which an H200's L2 does the same (h200_l2_capacity.json)
    arithmetic   of an atomic, "int", "float" or "cas" (compare and swap), else ""
    """

    space: str
    op: str
    width_bytes: int
    routable: bool = True
    lanes: int = WARP_LANES
    bypasses: bool = False
    last_use: bool = False
    evict_first: bool = False
    arithmetic: str = ""

    @property
    def on_chip(self) -> bool:
        """Whether the access is to shared memory, its own block's or another's, and so to no cache."""
        return self.space in ("shared", "dshared")

    @property
    def copies(self) -> bool:
        """Whether the instruction copies from global to shared memory."""
        return self.op == "ldgsts"

    @property
    def bulk(self) -> bool:
        """Whether the instruction is a bulk copy, which does not pass L1."""
        return self.op.startswith("tma")

    @property
    def lane_bytes(self) -> int:
        """Bytes a lane as L1's stages see them; a bulk copy, which they do not see, counts as narrow."""
        return 4 if self.bulk else self.width_bytes

    @property
    def merges(self) -> bool:
        """Whether the instruction's lanes may merge into fewer wavefronts than its width needs (rule 2 of `banks`)."""
        return self.op == "ld" and self.routable and self.on_chip


def access_of(instruction: Instruction) -> Access | None:
    """Return how `instruction` accesses memory; None where it does not.

    The space of a generic access is given as "global"; `generic.split_by_space` tells where it goes.
    """
    row = row_of(instruction)
    if row.memory is None:
        return None
    space = "global" if row.memory.space == "generic" else row.memory.space
    op, modifiers = row.memory.operation, instruction.modifiers
    if row.memory.bulk:
        return Access(space, op, _SECTOR_BYTES, bypasses=True)
    if row.kind is Kind.MATRIX_ROWS:
        return Access(space, op, MATRIX_ROW_BYTES, routable=False, lanes=_ROWS * matrix_count(modifiers))
    width = next((_WIDTHS[m] for m in modifiers if m in _WIDTHS), 4)
    if row.memory.copy:
        return Access(space, op, width, bypasses="BYPASS" in modifiers)
    if op in ("atom", "red"):
        return Access(space, op, width, arithmetic=_arithmetic(modifiers))
    strong = space == "global" and op == "ld" and "STRONG" in modifiers and not {"CTA", "SM"} & {*modifiers}
    last_use = space == "local" and op == "ld" and "LU" in modifiers
    evict_first = space == "global" and bool(_EVICT_FIRST[op] & {*modifiers})
    return Access(space, op, width, bypasses=strong, last_use=last_use, evict_first=evict_first)


def _arithmetic(modifiers: tuple[str, ...]) -> str:
    if {"CAS", "CAST"} & {*modifiers}:
        return "cas"
    return "float" if any(m.startswith(("F", "BF")) and m[-1].isdigit() for m in modifiers) else "int"
