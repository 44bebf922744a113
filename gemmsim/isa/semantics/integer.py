"""Defines what integer opcodes compute (IADD3, IMAD, LEA, SHF, IMNMX and others), in vector and uniform forms."""

from __future__ import annotations

from gemmsim.isa.lanes import Lanes
from gemmsim.isa.semantics.registry import imm, op, pred, s32, u32, u64


def zext(x: Lanes) -> Lanes:
    return x.convert("u64")


def sext(x: Lanes) -> Lanes:
    return x.bitcast("s32").convert("s64").bitcast("u64")


def carry(p: Lanes) -> Lanes:
    return p.convert("u64")


@op
def mov(a: u32) -> u32:
    return a


@op
def mov64(a: u64) -> u64:
    return a


@op
def iadd3(a: u32, b: u32, c: u32, negations: imm) -> u32:
    return a + b + c + negations


@op
def iadd3_carry(a: u32, b: u32, c: u32, x: pred, y: pred, negations: imm) -> tuple[u32, pred, pred]:
    """IADD3 with carries: the sum of three addends and two carries in, and two carries out, "at least one" and "at
    least two", since three addends can carry twice."""
    total = zext(a) + zext(b) + zext(c) + carry(x) + carry(y) + zext(negations)
    over = total >> 32
    return total.convert("u32"), over >= 1, over >= 2


@op
def iadd64(a: u64, b: u64, c: u64, negations: imm) -> u64:
    return a + b + c + zext(negations)


@op
def iadd64_carry(a: u64, b: u64, x: pred, negations: imm) -> tuple[u64, pred]:
    """IADD.64 with a carry in (.X) or out: the sum, and whether it exceeds 64 bits."""
    partial = a + b
    total = partial + carry(x) + zext(negations)
    # A complement stands for a negated operand, so at most one of the addends 1 wraps around after a + b did.
    return total, (partial < a) | (total < partial)


@op
def imad(a: u32, b: u32, c: u32, negations: imm) -> u32:
    """IMAD: a*b + c. `negations` belongs to c; -(a*b) is lowered as a product with a negated factor."""
    return a * b + c + negations


@op
def imad_carry(a: u32, b: u32, c: u32, x: pred) -> tuple[u32, pred]:
    """IMAD.X: the low half of the product plus c plus the carry in, and the carry out of that sum."""
    total = zext(a * b) + zext(c) + carry(x)
    return total.convert("u32"), (total >> 32).ne(0)


@op
def imad_wide_u32(a: u32, b: u32, c: u64, negations: imm) -> u64:
    return zext(a) * zext(b) + c + zext(negations)


@op
def imad_wide_s32(a: u32, b: u32, c: u64, negations: imm) -> u64:
    return sext(a) * sext(b) + c + zext(negations)


@op
def imad_wide_carry(a: u32, b: u32, c: u64, x: pred, signed: imm) -> tuple[u64, pred]:
    """IMAD.WIDE with a carry in (.X) or out. The carry is that of the 64-bit sum."""
    product = signed.ne(0).select(sext(a) * sext(b), zext(a) * zext(b))
    partial = product + c
    total = partial + carry(x)
    return total, (partial < product) | (total < partial)


@op
def imad_hi(a: u32, b: u32, c: u64, signed: imm) -> tuple[u32, pred]:
    """IMAD.HI: the high word of a*b + c and the sum's carry. c is a register pair, which division relies on."""
    product = signed.ne(0).select(sext(a) * sext(b), zext(a) * zext(b))
    total = product + c
    return (total >> 32).convert("u32"), total < product


def shift_left(x: Lanes, amount: Lanes) -> Lanes:
    """x << amount. Amounts of the width and more give 0."""
    width = 64 if x.type == "u64" else 32
    return (amount < width).select(x << (amount & (width - 1)), x.lift(0))


def shift_right(x: Lanes, amount: Lanes) -> Lanes:
    """x >> amount. Amounts of the width and more give 0 or, for a signed type, the sign in every bit."""
    width = 64 if x.type in ("u64", "s64") else 32
    if x.type[0] == "s":
        return x >> (amount < width).select(amount, amount.lift(width - 1))
    return (amount < width).select(x >> (amount & (width - 1)), x.lift(0))


@op
def lea(a: u32, b: u32, shift: imm, negations: imm) -> tuple[u32, pred]:
    """LEA: (a << shift) + b, and the carry of that sum. Bit 0 of `negations` says that the shifted value is to be
    negated, for which `a` arrives without its sign; bit 1 says that b was negated."""
    shifted = shift_left(a, shift)
    flipped = (negations & 1).ne(0).select(~shifted, shifted)
    total = zext(flipped) + zext(b) + zext((negations & 1) + (negations >> 1))
    return total.convert("u32"), (total >> 32).ne(0)


@op
def lea_x(a: u32, b: u32, x: pred, shift: imm, inverted: imm) -> tuple[u32, pred]:
    """LEA.X is LEA with a carry in. `inverted` says that the shifted value is to be inverted."""
    shifted = shift_left(a, shift)
    flipped = inverted.ne(0).select(~shifted, shifted)
    total = zext(flipped) + zext(b) + carry(x)
    return total.convert("u32"), (total >> 32).ne(0)


@op
def lea_hi(a: u32, b: u32, c: u32, x: pred, shift: imm, negations: imm) -> tuple[u32, pred]:
    """LEA.HI(.X): the high word of (c:a << shift) plus b plus the carry in, and the carry of that sum."""
    return _lea_high((zext(c) << 32) | zext(a), b, x, shift, negations)


@op
def lea_hi_sx32(a: u32, b: u32, x: pred, shift: imm, negations: imm) -> tuple[u32, pred]:
    """LEA.HI(.X).SX32 is LEA.HI with `a`, sign-extended, as the 64-bit value."""
    return _lea_high(sext(a), b, x, shift, negations)


def _lea_high(pair: Lanes, b: Lanes, x: Lanes, shift: Lanes, negations: Lanes) -> tuple[Lanes, Lanes]:
    """Compute LEA.HI. Bit 0 of `negations` says that the shifted 64-bit value is to be negated, bit 1 that b was
    negated, and bit 2 that the shifted value is to be inverted (the form with .X)."""
    shifted = shift_left(pair, zext(shift))
    negated = (~shifted) + 1
    value = (negations & 1).ne(0).select(negated, (negations & 4).ne(0).select(~shifted, shifted)) >> 32
    total = value + zext(b) + zext((negations >> 1) & 1) + carry(x)
    return total.convert("u32"), (total >> 32).ne(0)


# SHF shifts the 64-bit value high:low and keeps its high word (.HI) or its low word. A left shift of 32-bit data is
# SHF.L.U32 a, n, RZ: low is a, and the result is the low word. Without .W the amount saturates at the width.


def funnel(low: Lanes, high: Lanes) -> Lanes:
    return (zext(high) << 32) | zext(low)


def amount_of(n: Lanes, wrap: Lanes, width: int) -> Lanes:
    return zext(wrap.ne(0).select(n & (width - 1), (n < width).select(n, n.lift(width))))


@op
def shf_l(low: u32, n: u32, high: u32, width: imm, wrap: imm, hi: imm) -> u32:
    """SHF.L: shift the 64-bit value high:low to the left. `width`, 32 or 64, is the width of the data, which limits the
    amount."""
    narrow, wide = amount_of(n, wrap, 32), amount_of(n, wrap, 64)
    amount = width.eq(32).select(narrow, wide)
    shifted = shift_left(funnel(low, high), amount)
    return hi.ne(0).select((shifted >> 32).convert("u32"), shifted.convert("u32"))


@op
def shf_r_u(low: u32, n: u32, high: u32, width: imm, wrap: imm, hi: imm) -> u32:
    amount = width.eq(32).select(amount_of(n, wrap, 32), amount_of(n, wrap, 64))
    pair = funnel(low, high)
    kept = shift_right(pair, amount).convert("u32")
    # .HI keeps the high word. It is high >> n, which needs no bits from below.
    upper = shift_right(zext(high), amount).convert("u32")
    return hi.ne(0).select(upper, kept)


@op
def shf_r_s(low: u32, n: u32, high: u32, width: imm, wrap: imm, hi: imm) -> u32:
    amount = width.eq(32).select(amount_of(n, wrap, 32), amount_of(n, wrap, 64))
    pair = funnel(low, high).bitcast("s64")
    kept = shift_right(pair, amount.bitcast("s64")).bitcast("u64").convert("u32")
    upper = shift_right(sext(high).bitcast("s64"), amount.bitcast("s64")).bitcast("u64").convert("u32")
    return hi.ne(0).select(upper, kept)


@op
def imnmx_s32(a: s32, b: s32, smaller: pred) -> s32:
    return smaller.select((a < b).select(a, b), (a > b).select(a, b))


@op
def imnmx_u32(a: u32, b: u32, smaller: pred) -> u32:
    return smaller.select((a < b).select(a, b), (a > b).select(a, b))


@op
def iabs(a: s32) -> s32:
    return (a < 0).select(a.lift(0) - a, a)


@op
def popc(a: u32) -> u32:
    return a.count("ctpop")


@op
def flo_u32(a: u32, distance: imm) -> u32:
    """FLO: the number of the leading one's bit or, with .SH, its distance from the top; all ones where none is set."""
    zeros = a.count("ctlz")
    place = distance.ne(0).select(zeros, a.lift(31) - zeros)
    return a.eq(0).select(a.lift(0xFFFFFFFF), place)


@op
def flipped_if_negative(a: s32) -> s32:
    """Return ~a of a negative integer: its highest one is the highest bit that differs from the sign, as FLO asks."""
    return (a < 0).select(~a, a)


@op
def brev(a: u32) -> u32:
    return a.count("bitreverse")


@op
def sgxt(a: u32, bits: u32, signed: imm) -> u32:
    """SGXT: the low `bits` bits of a, extended by zeros or by their sign."""
    kept = (bits < 32).select(bits, bits.lift(32))
    up = zext(a.lift(32) - kept)
    wide = shift_left(zext(a), up).convert("u32")
    filled = shift_right(wide.bitcast("s32"), up.convert("u32").bitcast("s32")).bitcast("u32")
    zeroed = shift_right(wide, up.convert("u32"))
    return kept.eq(0).select(a.lift(0), signed.ne(0).select(filled, zeroed))


@op
def bmsk(a: u32, b: u32, wrap: imm) -> u32:
    """BMSK: `b` ones from bit `a` on. .C clamps both numbers at 32, and .W takes them modulo 32."""
    start = wrap.ne(0).select(a & 31, (a < 32).select(a, a.lift(32)))
    size = wrap.ne(0).select(b & 31, (b < 32).select(b, b.lift(32)))
    ones = shift_left(zext(a.lift(1)), zext(size)) - 1
    return shift_left(ones, zext(start)).convert("u32")


@op
def idp4a(a: u32, b: u32, c: u32, signed_a: imm, signed_b: imm) -> u32:
    """IDP.4A: the dot product of four bytes, added to c."""
    total = c
    for byte in range(4):
        x, y = (a >> (8 * byte)) & 0xFF, (b >> (8 * byte)) & 0xFF
        x = (signed_a.ne(0) & (x >= 128)).select(x - 256, x)
        y = (signed_b.ne(0) & (y >= 128)).select(y - 256, y)
        total = total + x * y
    return total


@op
def vabsdiff(a: u32, b: u32, c: u32, signed: imm) -> u32:
    bigger = signed.ne(0).select(a.bitcast("s32") > b.bitcast("s32"), a > b)
    return bigger.select(a - b, b - a) + c


@op
def address64(base: u64, uniform: u64, displacement: imm) -> u64:
    """Compute the address of a global access. The displacement is signed."""
    return base + uniform + sext(displacement)


@op
def address32(base: u32, uniform: u32, scale: imm, displacement: imm) -> u64:
    """Compute the address of a shared or local access, zero-extended."""
    return zext(base * scale + uniform + displacement)


@op
def first_bytes(a: u32, left_out: u32, size: imm) -> u32:
    """Return the word a of an item for LDGSTS.ZFILL, with zeros in place of the item's last `left_out` bytes.

    `size` is how many of the item's bytes lie from this word on.
    """
    kept = (size.bitcast("s32") > left_out.bitcast("s32")).select(size - left_out, a.lift(0))
    ones = shift_left(zext(a.lift(1)), zext((kept < 4).select(kept, kept.lift(4))) << 3) - 1
    return a & ones.convert("u32")
