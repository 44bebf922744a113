"""Kernels that execute one wgmma each, as CUDA C++ text, and operands for them: for tests, and for an H200.

A kernel copies an image to shared memory, makes one multiplication of the warpgroup with the descriptors that it is
given (relative to the image), and stores the accumulators. This module imports NumPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IMAGE_WORDS = 16384  # 64 KiB
DEPTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
_C_TYPES = {"f32": ("float", "f"), "f16": ("unsigned", "r"), "s32": ("int", "r")}


@dataclass(frozen=True)
class Form:
    """One form of wgmma.mma_async: types, number of columns, where A is, which factors are transposed and negated."""

    a: str
    b: str
    d: str
    n: int
    a_in_registers: bool = False
    transposed_a: bool = False
    transposed_b: bool = False
    negated_a: bool = False
    negated_b: bool = False
    saturates: bool = False

    @property
    def registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def depth(self) -> int:
        return DEPTHS[self.a]

    @property
    def name(self) -> str:
        marks = ("r", "ta", "tb", "na", "nb", "sat")
        held = (self.a_in_registers, self.transposed_a, self.transposed_b)
        held += (self.negated_a, self.negated_b, self.saturates)
        ending = "".join(f"_{mark}" for mark, on in zip(marks, held, strict=True) if on)
        return f"{self.a}_{self.b}_{self.d}_{self.n}{ending}"


def statement(form: Form, scale_d: str = "scale_d", descriptor_a: str = "da", descriptor_b: str = "db") -> str:
    """The multiplication as inline PTX on `acc` and, where A is in registers, `a`."""
    count, constraint = form.registers, _C_TYPES[form.d][1]
    accumulators = ", ".join(f"%{i}" for i in range(count))
    if form.a_in_registers:
        a_text, taken = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}", count + 4
        a_in = ", ".join(f'"r"(a[{i}])' for i in range(4))
    else:
        a_text, taken, a_in = f"%{count}", count + 1, f'"l"({descriptor_a})'
    immediates = ""
    if form.d != "s32":
        immediates += f", {-1 if form.negated_a else 1}, {-1 if form.negated_b else 1}"
    if form.a in ("f16", "bf16"):
        immediates += f", {int(form.transposed_a)}" if not form.a_in_registers else ""
        immediates += f", {int(form.transposed_b)}"
    name = f"wgmma.mma_async.sync.aligned.m64n{form.n}k{form.depth}.{form.d}.{form.a}.{form.b}"
    name += ".satfinite" if form.saturates else ""
    text = f"{name} {{{accumulators}}}, {a_text}, %{taken}, p{immediates};"
    outputs = ", ".join(f'"+{constraint}"(acc[{i}])' for i in range(count))
    return (
        f'asm volatile("{{.reg .pred p; setp.ne.b32 p, %{taken + 1}, 0; {text}}}" : {outputs} : {a_in}, '
        f'"l"({descriptor_b}), "r"({scale_d}));'
    )


def source(form: Form) -> str:
    """A kernel `form.name`(image, a, descriptor of A, descriptor of B, scale_d, c, d)."""
    type_ = _C_TYPES[form.d][0]
    a_lines = "unsigned a[4]; for (int i = 0; i < 4; i++) a[i] = a_words[4 * threadIdx.x + i];"
    return f"""
extern "C" __global__ void __launch_bounds__(128) {form.name}(const unsigned* image, const unsigned* a_words,
    unsigned long long da, unsigned long long db, int scale_d, const {type_}* c, {type_}* d)
{{
    extern __shared__ __align__(1024) unsigned shared[];
    for (int i = threadIdx.x; i < {IMAGE_WORDS}; i += 128) shared[i] = image[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    unsigned base = (unsigned)__cvta_generic_to_shared(shared) >> 4;
    da += base;
    db += base;
    {type_} acc[{form.registers}];
    for (int i = 0; i < {form.registers}; i++) acc[i] = c[threadIdx.x * {form.registers} + i];
    {a_lines if form.a_in_registers else ""}
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    {statement(form)}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {form.registers}; i++) d[threadIdx.x * {form.registers} + i] = acc[i];
}}
"""


def descriptor(start: int, leading: int, stride: int, swizzle: int = 0, base: int = 0) -> int:
    """PTX ISA, "Matrix descriptor format": byte offsets in units of 16; swizzle of 0, 128, 64 or 32 bytes."""
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    return start >> 4 & 0x3FFF | (leading >> 4 & 0x3FFF) << 16 | (stride >> 4 & 0x3FFF) << 32 | base << 49 | mode << 62


FORMS = (
    *(Form("f16", "f16", "f32", n) for n in (8, 24, 64, 128, 256)),
    *(Form("f16", "f16", "f16", n) for n in (8, 64, 256)),
    *(Form("bf16", "bf16", "f32", n) for n in (16, 128)),
    *(Form("tf32", "tf32", "f32", n) for n in (8, 40, 256)),
    Form("e4m3", "e4m3", "f32", 64),
    Form("e4m3", "e5m2", "f32", 32),
    Form("e5m2", "e4m3", "f32", 256),
    Form("e5m2", "e5m2", "f16", 64),
    Form("e4m3", "e4m3", "f16", 16),
    Form("s8", "s8", "s32", 64),
    Form("s8", "u8", "s32", 256),
    Form("u8", "s8", "s32", 96, saturates=True),
    Form("u8", "u8", "s32", 8),
    Form("f16", "f16", "f32", 64, transposed_a=True),
    Form("f16", "f16", "f32", 128, transposed_b=True),
    Form("bf16", "bf16", "f32", 256, transposed_a=True, transposed_b=True),
    Form("f16", "f16", "f16", 72, transposed_a=True, transposed_b=True),
    Form("f16", "f16", "f32", 64, a_in_registers=True),
    Form("bf16", "bf16", "f32", 64, a_in_registers=True, transposed_b=True),
    Form("tf32", "tf32", "f32", 16, a_in_registers=True),
    Form("e4m3", "e5m2", "f32", 64, a_in_registers=True),
    Form("e5m2", "e4m3", "f16", 8, a_in_registers=True),
    Form("s8", "s8", "s32", 128, a_in_registers=True),
    Form("u8", "s8", "s32", 16, a_in_registers=True, saturates=True),
    Form("f16", "f16", "f32", 8, negated_a=True),
    Form("bf16", "bf16", "f32", 8, negated_b=True),
    Form("tf32", "tf32", "f32", 8, negated_a=True, negated_b=True),
    Form("e4m3", "e4m3", "f32", 8, negated_a=True),
    Form("f16", "f16", "f16", 8, a_in_registers=True, negated_a=True, negated_b=True),
)


@dataclass(frozen=True)
class Layout:
    """Where a factor lies in the image: offsets of its descriptor, and whether it is transposed."""

    transposed: bool
    start: int
    leading: int
    stride: int
    swizzle: int
    base: int = 0

    @property
    def descriptor(self) -> int:
        return descriptor(self.start, self.leading, self.stride, self.swizzle, self.base)


def layouts(transposed: bool, at: int) -> list[Layout]:
    """Layouts of a factor of up to 256 lines that begins near the byte `at`, a multiple of 1024: those that the PTX ISA
    draws, with steps along k, then with other offsets."""
    found = [
        Layout(transposed, at, 128, 256, 0),
        Layout(transposed, at, 4096, 128, 0),
        Layout(transposed, at + 48, 144, 544, 0),
        Layout(transposed, at, 512 if transposed else 16, 1536 if transposed else 256, 32),
        Layout(transposed, at, 1024, 2048 if transposed else 512, 64),
        Layout(transposed, at, 4096, 1024, 128),
        Layout(transposed, at + 1024, 2048, 1024, 128),
    ]
    if transposed:
        return found
    more = [Layout(False, at + 32, 0, 512, 64), *(Layout(False, at + 32 * n, 16, 1024, 128) for n in (1, 2, 3))]
    return [*found, *more]


def odd_layouts(transposed: bool, at: int) -> list[Layout]:
    """Layouts whose repeating pattern does not begin where it would without a base offset, and offsets across it."""
    return [
        Layout(transposed, at + 128, 4096, 1024, 128, 1),
        Layout(transposed, at + 512, 4096, 1024, 128, 4),
        Layout(transposed, at + 512, 4096, 1024, 128, 0),
        Layout(transposed, at + 128, 1024, 512, 64, 1),
        Layout(transposed, at + 128, 512, 256, 32, 1),
        Layout(transposed, at, 4096, 1152, 128),
        Layout(transposed, at, 4096, 1040, 128),
        Layout(transposed, at + 16, 4096, 1024, 128),
        Layout(transposed, at + 112, 4096, 1024, 128),
        Layout(transposed, at + 16, 2048, 256, 32),
        Layout(transposed, at + 384, 2048, 1024, 128, 5),
    ]


def _pack(codes: NDArray, bits: int) -> NDArray[np.uint32]:
    return np.ascontiguousarray(codes.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])).view(np.uint32)


_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s32": 32, "f32": 32}
_FIELDS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}
_SMALL = {  # -2 to 2
    "f16": (0, 0x3C00, 0xBC00, 0x4000, 0xC000),
    "bf16": (0, 0x3F80, 0xBF80, 0x4000, 0xC000),
    "tf32": (0, 0x3F800000, 0xBF800000, 0x40000000, 0xC0001FFF),
    "f32": (0, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000),
    "e4m3": (0, 0x38, 0xB8, 0x40, 0xC0),
    "e5m2": (0, 0x3C, 0xBC, 0x40, 0xC0),
}


def draw(kind: str, type_: str, words: int, random: np.random.Generator) -> NDArray[np.uint32]:
    """Words of random elements of a type.

    kind  "small": sums of them are exact; "spread": finite, exponents within `near` of each other or far apart;
          "bits": any bits, so also infinities, NaN and subnormal numbers
    """
    bits = _BITS[type_]
    count = words * 32 // bits
    if type_ in ("s8", "u8", "s32") or kind == "bits":
        return random.integers(0, 1 << 32, words, np.uint32)
    if kind == "small":
        return _pack(random.choice(np.array(_SMALL[type_], np.int64), count), bits)
    exponents, fraction = _FIELDS[type_]
    middle, width = 1 << exponents - 1, {"near": 3, "spread": min(12, (1 << exponents - 1) - 2)}[kind]
    exponent = np.clip(middle + random.integers(-width, width + 1, count), 0, 2 * middle - 2)
    codes = random.integers(0, 2, count) << exponents + fraction | exponent << fraction
    return _pack(codes | random.integers(0, 1 << fraction, count), bits)


@dataclass(frozen=True)
class Case:
    """Operands of one launch of a form's kernel."""

    form: Form
    label: str
    seed: int
    kind: str
    a: Layout
    b: Layout
    scale_d: int = 1

    def operands(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """The image, registers of A [128 * 4] and accumulators [128 * registers]. A's half of the image comes first."""
        random, half = np.random.default_rng(self.seed), IMAGE_WORDS // 4
        image = np.concatenate(
            [draw(self.kind, self.form.a, half, random), draw(self.kind, self.form.b, IMAGE_WORDS - half, random)]
        )
        registers = draw(self.kind, self.form.a, 512, random)
        return image, registers, draw(self.kind, self.form.d, 128 * self.form.registers, random)


B_AT = IMAGE_WORDS  # byte of the image at which B's part begins


def cases() -> list[Case]:
    """What is run: each form over all layouts, with small elements and with those whose sums are rounded."""
    found: list[Case] = []

    def add(form: Form, label: str, kind: str, a: Layout, b: Layout, scale_d: int = 1) -> None:
        found.append(Case(form, label, len(found), kind, a, b, scale_d))

    for form in FORMS:
        all_a, all_b = layouts(form.transposed_a, 0), layouts(form.transposed_b, B_AT)
        for i in range(max(len(all_a), len(all_b))):
            add(form, f"layout {i}", "small", all_a[i % len(all_a)], all_b[(i + i // len(all_a)) % len(all_b)])
        swizzled_a, swizzled_b = all_a[5], all_b[5]
        add(form, "zero", "small", swizzled_a, swizzled_b, 0)
        for kind in ("near", "spread", "bits"):
            for repeat in range(2):
                add(form, f"{kind} {repeat}", kind, swizzled_a, swizzled_b, 1 - repeat if kind == "near" else 1)
    for form in (
        Form("f16", "f16", "f32", 64),
        Form("f16", "f16", "f32", 64, transposed_a=True),
        Form("f16", "f16", "f32", 128, transposed_b=True),
    ):
        for i, odd in enumerate(odd_layouts(form.transposed_a, 0)):
            add(form, f"odd A {i}", "small", odd, layouts(form.transposed_b, B_AT)[5])
        for i, odd in enumerate(odd_layouts(form.transposed_b, B_AT)):
            add(form, f"odd B {i}", "small", layouts(form.transposed_a, 0)[5], odd)
    return found
