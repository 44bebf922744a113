"""Which instructions access memory, where, how and how wide."""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.program import Instruction

# opcode -> (space, op). Generic LD, ST and ATOM are taken as global: the kernels modelled here use them for nothing
# else.
_MEMORY = {
    "LDG": ("global", "ld"),
    "LD": ("global", "ld"),
    "STG": ("global", "st"),
    "ST": ("global", "st"),
    "ATOMG": ("global", "atom"),
    "ATOM": ("global", "atom"),
    "RED": ("global", "red"),
    "REDG": ("global", "red"),
    "LDGSTS": ("global", "ldgsts"),
    "LDL": ("local", "ld"),
    "STL": ("local", "st"),
    "LDS": ("shared", "ld"),
    "LDSM": ("shared", "ld"),
    "STS": ("shared", "st"),
    "STSM": ("shared", "st"),
    "ATOMS": ("shared", "atom"),
}
_WIDTH_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_MATRIX_ROW_BYTES = 16  # LDSM and STSM: each lane addresses one row of an 8 x 8 matrix of 16-bit elements


@dataclass(frozen=True, slots=True)
class Access:
    """What one static memory instruction asks for.

    space        "global", "local" or "shared"
    op           "ld", "st", "atom", "red" or "ldgsts" (global to shared; space is that of its source)
    width_bytes  bytes a lane
    routable     False where the lanes of a load can never share a wavefront below the floor of its width (LDSM)
    lanes        that give an address: 8 a matrix of LDSM and STSM
    bypasses     LDGSTS whose data goes past L1 (cp.async.cg)
    """

    space: str
    op: str
    width_bytes: int
    routable: bool = True
    lanes: int = 32
    bypasses: bool = False


def access_of(instruction: Instruction) -> Access | None:
    """How `instruction` accesses memory; None where it does not."""
    if instruction.opcode not in _MEMORY:
        return None
    space, op = _MEMORY[instruction.opcode]
    if instruction.opcode in ("LDSM", "STSM"):
        matrices = next((int(m) for m in instruction.modifiers if m in ("2", "4")), 1)
        return Access(space, op, _MATRIX_ROW_BYTES, routable=False, lanes=8 * matrices)
    width = next((_WIDTH_BYTES[m] for m in instruction.modifiers if m in _WIDTH_BYTES), 4)
    return Access(space, op, width, bypasses=op == "ldgsts" and "BYPASS" in instruction.modifiers)
