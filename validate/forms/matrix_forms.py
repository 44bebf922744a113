"""Lists the forms of the matrix instructions of the PTX ISA: mma, mma.sp, ldmatrix, stmatrix and movmatrix."""

from __future__ import annotations

from collections.abc import Iterator

from .form import Form, assembly, kernel

_WORD_BITS = 32
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "e4m3": 8, "e5m2": 8}
# rows, depth and least compute capability of the dense forms, by the types of A and B
_DENSE = {
    ("f16", "f16"): ((16, 8, 75), (16, 16, 80)),
    ("bf16", "bf16"): ((16, 8, 80), (16, 16, 80)),
    ("tf32", "tf32"): ((16, 4, 80), (16, 8, 80)),
    **{
        (a, b): ((8, 16, 75), (16, 16, 80), (16, 32, 80)) for a in ("s8", "u8") for b in ("s8", "u8")
    },
    **{(a, b): ((8, 32, 75), (16, 32, 80), (16, 64, 80)) for a in ("s4", "u4") for b in ("s4", "u4")},
    **{(a, b): ((16, 16, 89), (16, 32, 89)) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")},
}  # fmt: skip
# depth of the sparse forms, which all have 16 rows
_SPARSE = {
    ("f16", "f16"): (16, 32),
    ("bf16", "bf16"): (16, 32),
    ("tf32", "tf32"): (8, 16),
    ("s8", "s8"): (32, 64),
    ("u8", "s8"): (32, 64),
    ("s4", "s4"): (64, 128),
    ("u4", "u4"): (64, 128),
    ("e4m3", "e4m3"): (64,),
    ("e5m2", "e4m3"): (64,),
}


def _accumulators(kind: str) -> tuple[str, ...]:
    if kind in ("f16", "e4m3", "e5m2"):
        return ("f32", "f16")
    return ("f32",) if kind in ("bf16", "tf32") else ("s32",)


def _group(kind: str, elements: int) -> tuple[str, int]:
    """Return the asm letter and the number of registers that hold so many elements a lane of an accumulator."""
    return ("f", elements) if kind == "f32" else ("r", elements if kind == "s32" else elements // 2)


def dense() -> Iterator[Form]:
    """Yield the forms of mma on dense matrices, with integers, halves, TF32 and eight-bit floats."""
    for (a, b), shapes in _DENSE.items():
        for rows, depth, since in shapes:
            for kind in _accumulators(a):
                for saturating in ("", ".satfinite") if kind == "s32" else ("",):
                    yield _dense(a, b, rows, depth, kind, saturating, since)
    for rows, depth in ((8, 128), (16, 128), (16, 256)):
        for how, since in (("xor", 75), ("and", 80)):
            text = f"mma.sync.aligned.m{rows}n8k{depth}.row.col.s32.b1.b1.s32.{how}.popc"
            counts = (rows * depth // 1024, depth // 128, rows // 4)
            yield _multiply(text, ("b1", "b1", "s32"), counts, "s32", max(since, 75 if rows == 8 else 80))


def _dense(a: str, b: str, rows: int, depth: int, kind: str, saturating: str, since: int) -> Form:
    text = f"mma.sync.aligned.m{rows}n8k{depth}.row.col{saturating}.{kind}.{a}.{b}.{kind}"
    counts = (rows * depth * _BITS[a] // 1024, 8 * depth * _BITS[b] // 1024, rows * 8 // 32)
    return _multiply(text, (a, b, kind), counts, kind, since)


def _multiply(text: str, kinds: tuple[str, str, str], counts: tuple[int, int, int], kind: str, since: int) -> Form:
    letter, registers = _group(kind, counts[2])
    body = assembly(text, ((letter, registers),), (("r", counts[0]), ("r", counts[1]), (letter, registers)))
    reads = (kinds[0],) * counts[0] + (kinds[1],) * counts[1] + (kinds[2],) * registers
    return Form(text, kernel(body), reads, registers, since)


def double() -> Iterator[Form]:
    """Yield the forms of mma in double precision."""
    for rows, depth, since in ((8, 4, 80), (16, 4, 90), (16, 8, 90), (16, 16, 90)):
        text = f"mma.sync.aligned.m{rows}n8k{depth}.row.col.f64.f64.f64.f64"
        a, b, c = rows * depth // 32, depth // 4, rows // 4
        body = assembly(text, (("d", c),), (("d", a), ("d", b), ("d", c)))
        yield Form(text, kernel(body), ("f64", "f64 high") * (a + b + c), 2 * c, since)


def sparse() -> Iterator[Form]:
    """Yield the forms of mma.sp, of which each two or four neighbours in k of A hold one or two that are not zero."""
    for (a, b), depths in _SPARSE.items():
        for depth in depths:
            for kind in _accumulators(a):
                for selector in _selectors(a, depth):
                    yield _sparse(a, b, depth, kind, selector)


def _selectors(kind: str, depth: int) -> range:
    """Return which lanes of four may provide the metadata."""
    pairs = {("f16", 16): 4, ("bf16", 16): 4, ("tf32", 8): 4, ("f16", 32): 2, ("bf16", 32): 2, ("tf32", 16): 2}
    pairs |= {("s8", 32): 2, ("u8", 32): 2, ("s4", 64): 2, ("u4", 64): 2}
    return range(pairs.get((kind, depth), 1))


def _sparse(a: str, b: str, depth: int, kind: str, selector: int) -> Form:
    since = 89 if a.startswith("e") else 80
    text = f"mma.sp::ordered_metadata.sync.aligned.m16n8k{depth}.row.col.{kind}.{a}.{b}.{kind}"
    counts = (16 * depth // 2 * _BITS[a] // 1024, 8 * depth * _BITS[b] // 1024)
    letter, registers = _group(kind, 4)
    groups = (("r", counts[0]), ("r", counts[1]), (letter, registers), ("r", 0))
    body = assembly(text, ((letter, registers),), groups, f", {selector:#x}")
    metadata = "pairs" if a == "tf32" else "nibble pairs" if a in ("s4", "u4") else "quads"
    reads = (a,) * counts[0] + (b,) * counts[1] + (kind,) * registers + (metadata,)
    return Form(f"{text} {selector}", kernel(body), reads, registers, since)


def moves() -> Iterator[Form]:
    """Yield ldmatrix, stmatrix and movmatrix. The matrices lie in shared memory, rows in an order of their own."""
    own_row = "(lane * 5 + 3) % 32 * 16"  # byte offset of the row that the lane's address names
    load = """\
    __shared__ __align__(128) unsigned tile[128];
    for (int w = 0; w < 4; w++) tile[lane * 4 + w] = i[w];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + OWN;
    TEXT"""
    store = """\
    __shared__ __align__(128) unsigned tile[128];
    for (int w = 0; w < 4; w++) tile[lane * 4 + w] = lane;
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile) + OWN;
    TEXT
    __syncwarp();
    for (int w = 0; w < 4; w++) o[w] = tile[lane * 4 + w];"""
    for count in (1, 2, 4):
        for trans in ("", ".trans"):
            registers = ", ".join(f"%{w}" for w in range(count))
            text = f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            results = ", ".join(f'"=r"(o[{w}])' for w in range(count))
            body = f'asm volatile("{text} {{{registers}}}, [%{count}];" : {results} : "r"(at) : "memory");'
            yield Form(text, kernel(load.replace("OWN", own_row).replace("TEXT", body)), ("b32",) * 4, count)
            text = f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"
            operands = ", ".join(f'"r"(i[{w}])' for w in range(count))
            body = f'asm volatile("{text} [%{count}], {{{registers}}};" : : {operands}, "r"(at) : "memory");'
            yield Form(text, kernel(store.replace("OWN", own_row).replace("TEXT", body)), ("b32",) * 4, 4, 90)
    for count in (1, 2):
        registers = ", ".join(f"%{w}" for w in range(2 * count))
        results = ", ".join(f'"=r"(o[{w}])' for w in range(2 * count))
        text = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.b8"
        body = f'asm volatile("{text} {{{registers}}}, [%{2 * count}];" : {results} : "r"(at) : "memory");'
        yield Form(text, kernel(load.replace("OWN", own_row).replace("TEXT", body)), ("b32",) * 4, 2 * count, 100, "a")
    for count in (1, 2, 4):
        registers = ", ".join(f"%{w}" for w in range(count))
        operands = ", ".join(f'"r"(i[{w}])' for w in range(count))
        text = f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8"
        body = f'asm volatile("{text} [%{count}], {{{registers}}};" : : {operands}, "r"(at) : "memory");'
        yield Form(text, kernel(store.replace("OWN", own_row).replace("TEXT", body)), ("b32",) * 4, 4, 100, "a")
    text = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield Form(text, kernel(assembly(text, (("r", 0),), (("r", 0),))), ("b32",), 1)


def forms() -> list[Form]:
    """Return all forms of this module."""
    return [*dense(), *double(), *sparse(), *moves()]
