"""Defines conversions from and to floats of 8 and fewer bits: F2FP with E4M3, E5M2, E3M2, E2M3, E2M1 and E8.

Their values are those of the OCP specifications "8-bit Floating Point" and "Microscaling Formats", where E8 is E8M0.
Two E2M1 take a byte, and each other one takes a byte of its own. Rounding and what is out of range are as the PTX ISA
says of cvt with .satfinite; of E8M0, as CUDA's cuda_fp8.hpp computes where there is no instruction for it.
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

    @property
    def bits(self) -> int:
        """The number of bits that a number takes in a register."""
        return 4 if self.exponent + self.fraction == 3 else 8


FORMATS = {
    "e4m3": _Format(4, 3, 0x7E, 0x7F),
    "e5m2": _Format(5, 2, 0x7B, 0x7F),
    "e3m2": _Format(3, 2, 0x1F, 0x1F),
    "e2m3": _Format(2, 3, 0x1F, 0x1F),
    "e2m1": _Format(2, 1, 0x7, 0x7),
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
        """Pack two float32 below the low bits of `merged`: as bytes below its low half, or as one below 24 bits."""
        upper, lower = _narrowed(_positive(high, relu), form), _narrowed(_positive(low, relu), form)
        return (merged << 2 * form.bits) | (upper << form.bits) | lower

    def unpack(a: u32, shift: imm, relu: imm) -> u32:
        """Convert two numbers of `a`, from bit `shift` on, to two halves."""
        numbers = [(a >> shift) >> place & ((1 << form.bits) - 1) for place in (0, form.bits)]
        halves = [single_to_half(_positive(_widened(number, form), relu)) for number in numbers]
        return (halves[1] << 16) | halves[0]

    op(pack, f"pack_{name}")
    op(unpack, f"unpack_{name}")


for _name, _form in FORMATS.items():
    _register(_name, _form)


def _power(x: Lanes, up: Lanes, saturating: Lanes) -> Lanes:
    """Convert the magnitude of a float32 to E8M0, a power of two: the next one below it or, with `up`, above it.

    E8M0 begins at 2**-127, which stands for all that is less. 0xFF is no number; it also stands for what is too large,
    or 0xFE does where `saturating`.
    """
    magnitude = x.bitcast("u32") & 0x7FFFFFFF
    exponent = magnitude >> 23
    between = (magnitude & 0x7FFFFF).ne(0) & (magnitude > 0x00400000) & (magnitude < 0x7F800000)
    power = (between & up.ne(0)).select(exponent + 1, exponent)
    large = power.eq(0xFF) & (magnitude <= 0x7F800000) & saturating.ne(0)
    return large.select(power.lift(0xFE), power)


@op
def pack_e8(high: f32, low: f32, merged: u32, up: imm, saturating: imm) -> u32:
    """Pack the magnitudes of two float32 as powers of two, as bytes below the low half of `merged`."""
    return (merged << 16) | (_power(high, up, saturating) << 8) | _power(low, up, saturating)


@op
def unpack_e8(a: u32, shift: imm) -> u32:
    """Convert two powers of two of `a`, from bit `shift` on, to two bfloat16."""
    halves = []
    for place in (0, 8):
        power = (a >> shift) >> place & 0xFF
        half = power.eq(0).select(power.lift(0x0040), power << 7)
        halves.append(power.eq(0xFF).select(power.lift(0x7FFF), half))
    return (halves[1] << 16) | halves[0]
