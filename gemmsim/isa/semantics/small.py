"""Defines conversions from and to floats of 8 and 6 bits, each of which takes a byte: F2FP with E4M3, E5M2, E3M2, E2M3.

Their values are those of the OCP specifications "8-bit Floating Point" and "Microscaling Formats". Rounding and what is
out of range are as the PTX ISA says of cvt with .satfinite.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.half import single_to_half
from gemmsim.isa.semantics.registry import f32, imm, op, u32


@dataclass(frozen=True, slots=True)
class _Format:
    """A float with a sign, an exponent of `exponent` bits, and a fraction of `fraction` bits.

    largest  bits of the largest finite number
    nan      bits of what is no number; those of the largest number where the format lacks it
    """

    exponent: int
    fraction: int
    largest: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1


FORMATS = {
    "e4m3": _Format(4, 3, 0x7E, 0x7F),
    "e5m2": _Format(5, 2, 0x7B, 0x7F),
    "e3m2": _Format(3, 2, 0x1F, 0x1F),
    "e2m3": _Format(2, 3, 0x1F, 0x1F),
}


def _narrowed(x: Lanes, form: _Format) -> Lanes:
    """Convert a float32 to the bits of a small float: rounded to nearest even, and at most the largest number."""
    bits, dropped = x.bitcast("u32"), 23 - form.fraction
    magnitude, sign = bits & 0x7FFFFFFF, (bits >> 31) << (form.exponent + form.fraction)
    rounded = magnitude + ((1 << dropped - 1) - 1) + ((magnitude >> dropped) & 1)
    normal = (rounded >> dropped) - ((127 - form.bias) << form.fraction)
    # Subnormal numbers are multiples of one unit, which is the last place of this power of two: adding it rounds.
    grid = 2.0 ** (24 - form.bias - form.fraction)
    exponent = 127 + 24 - form.bias - form.fraction
    small = (magnitude.bitcast("f32") + grid).bitcast("u32") - (exponent << 23)
    code = (magnitude < ((128 - form.bias) << 23)).select(small, normal)
    code = (code < form.largest).select(code, code.lift(form.largest))
    return (magnitude > 0x7F800000).select(code.lift(form.nan), code | sign)


def _widened(byte: Lanes, form: _Format) -> Lanes:
    """Convert the bits of a small float to float32. The conversion is exact."""
    width = form.exponent + form.fraction
    magnitude, sign = byte & ((1 << width) - 1), ((byte >> width) & 1) << 31
    exponent, fraction = magnitude >> form.fraction, magnitude & ((1 << form.fraction) - 1)
    normal = ((exponent + (127 - form.bias)) << 23) | (fraction << (23 - form.fraction))
    small = (fraction.convert("f32") * 2.0 ** (1 - form.bias - form.fraction)).bitcast("u32")
    bits = exponent.eq(0).select(small, normal)
    if form.nan != form.largest:  # E5M2 has infinities, E4M3 has none
        above = (fraction << 21) | 0x7F800000 if form.exponent == 5 else magnitude.lift(0x7FFFFFFF)
        bits = (magnitude > form.largest).select(above, bits)
    return (bits | sign).bitcast("f32")


def _positive(x: Lanes, relu: Lanes) -> Lanes:
    """Return x, or 0 in place of a negative x (or -0) where `relu` is set."""
    return (relu.ne(0) & (x <= 0)).select(x.lift(0.0), x)


def _register(name: str, form: _Format) -> None:
    def pack(high: f32, low: f32, merged: u32, relu: imm) -> u32:
        """Pack two float32 as bytes of the low half, below the low half of `merged`."""
        upper, lower = _narrowed(_positive(high, relu), form), _narrowed(_positive(low, relu), form)
        return (merged << 16) | (upper << 8) | lower

    def unpack(a: u32, shift: imm, relu: imm) -> u32:
        """Convert two bytes of `a`, from bit `shift` on, to two halves."""
        halves = [single_to_half(_positive(_widened((a >> shift) >> place & 0xFF, form), relu)) for place in (0, 8)]
        return (halves[1] << 16) | halves[0]

    op(pack, f"pack_{name}")
    op(unpack, f"unpack_{name}")


for _name, _form in FORMATS.items():
    _register(_name, _form)
