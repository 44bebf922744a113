"""Says in words what opcodes do that gemmsim does not execute, for the messages that refuse them."""

from __future__ import annotations

_TEXTURES = "textures and surfaces: arguments cannot be texture objects"
_WGMMA = "Hopper's asynchronous matrix multiplication, wgmma"
_TENSOR_MEMORY = "the tensor memory of sm_100, tcgen05"

# opcode -> what it belongs to
_FAMILIES = {
    **dict.fromkeys("TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED SUQUERY".split(), _TEXTURES),  # noqa: SIM905
    **dict.fromkeys("BGMMA WARPGROUPSET".split(), _WGMMA),  # noqa: SIM905
    **dict.fromkeys("LDTM STTM UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCBAR UTCATOMSWS UTCCP".split(), _TENSOR_MEMORY),  # noqa: SIM905
}


def described(opcode: str) -> str:
    """Return "opcode TEX (textures and surfaces: ...)"; only "opcode NAME" for one of no family that is known."""
    family = _FAMILIES.get(opcode)
    return f"opcode {opcode} ({family})" if family else f"opcode {opcode}"
