"""Lists the forms of atomics and reductions of the PTX ISA, and of conversions to small floats."""

from __future__ import annotations

from collections.abc import Iterator

from .form import Form, kernel

# operations and least compute capability, by type
_SCALAR = {
    "u32": ("add", "min", "max", "inc", "dec"),
    "s32": ("add", "min", "max"),
    "b32": ("and", "or", "xor", "exch", "cas"),
    "u64": ("add", "min", "max"),
    "s64": ("min", "max"),
    "b64": ("and", "or", "xor", "exch", "cas"),
    "f32": ("add",),
    "f64": ("add",),
    "noftz.f16": ("add",),
    "noftz.f16x2": ("add",),
    "noftz.bf16": ("add",),
    "noftz.bf16x2": ("add",),
    "b16": ("cas",),
    "b128": ("exch", "cas"),
}
_SINCE = {"noftz.bf16": 90, "noftz.bf16x2": 90, "b128": 90}
_VECTORS = {
    "f32": ((2, 4), ("add",)),
    "noftz.f16": ((2, 4, 8), ("add", "min", "max")),
    "noftz.bf16": ((2, 4, 8), ("add", "min", "max")),
    "noftz.f16x2": ((2, 4), ("add", "min", "max")),
    "noftz.bf16x2": ((2, 4), ("add", "min", "max")),
}
_LETTERS = {"f32": "f", "f64": "d", "u64": "l", "s64": "l", "b64": "l"}
_DRAWN = {
    "f32": ("f32",),
    "f64": ("f64", "f64 high"),
    "noftz.f16": ("f16",),
    "noftz.f16x2": ("f16",),
    "noftz.bf16": ("bf16",),
    "noftz.bf16x2": ("bf16",),
}
_BYTES = {"b128": 16, "b16": 2, "noftz.f16": 2, "noftz.bf16": 2}


def _bytes(kind: str) -> int:
    return _BYTES.get(kind, 8 if kind.endswith("64") else 4)


def scalar() -> Iterator[Form]:
    """Yield atom and red in global, shared and generic memory, each lane at an address of its own."""
    for kind, operations in _SCALAR.items():
        for operation in operations:
            for space in ("global", "shared", ""):
                for reducing in (False, True):
                    if reducing and operation in ("exch", "cas"):
                        continue
                    yield _scalar(kind, operation, space, reducing)


def _scalar(kind: str, operation: str, space: str, reducing: bool) -> Form:
    """Make the form. A lane's input is the value in memory, which is 16 bytes, and then up to two operands of 16
    bytes each, of which the second may equal the first word in memory; its output, memory and then the result."""
    where, bits = f".{space}" if space else "", kind.rpartition(".")[2]
    text = f"{'red' if reducing else 'atom'}{where}.relaxed.gpu.{operation}.{kind}"
    size = _bytes(kind)
    letter = "h" if size == 2 else _LETTERS.get(bits, "r")
    type_ = {"h": "unsigned short", "f": "float", "d": "double", "l": "unsigned long long", "r": "unsigned"}[letter]
    compare = operation == "cas"
    if size == 16:
        values = ", ".join(f"v{n}" for n in range(1 + compare))
        ins = ", ".join(f'"l"(((const unsigned long long *)i)[{n}])' for n in range(2, 4 + 2 * compare))
        # Results come first in an asm statement, so that the numbers are shifted by two.
        operands = "".join(f"mov.b128 v{n}, {{%{3 + 2 * n}, %{4 + 2 * n}}}; " for n in range(1 + compare))
        results = '"=l"(((unsigned long long *)o)[2]), "=l"(((unsigned long long *)o)[3])'
        call = (
            f'asm volatile("{{ .reg .b128 d, v0, v1; {operands}{text} d, [%2], {values}; '
            f'mov.b128 {{%0, %1}}, d; }}" : {results} : "POINTER"(at), {ins} : "memory");'
        )
    else:
        names = ", ".join(f"%{1 + (not reducing) + n}" for n in range(1 + compare))
        ins = ", ".join(f'"{letter}"(((const {type_} *)i)[{(16 + 16 * n) // size}])' for n in range(1 + compare))
        result = "" if reducing else "%0, "
        out = "" if reducing else f'"={letter}"(((({type_} *)o))[{16 // size}])'
        call = f'asm volatile("{text} {result}[%{0 if reducing else 1}], {names};" : {out} '
        call += f': "POINTER"(at), {ins} : "memory");'
    if space == "global":
        body = f"    unsigned *at = o;\n    {call.replace('POINTER', 'l')}"
    else:
        place = "(unsigned)__cvta_generic_to_shared(tile + lane * 4)" if space else "tile + lane * 4"
        kind_of = "unsigned" if space else "unsigned *"
        body = f"""\
    __shared__ __align__(128) unsigned tile[128];
    for (int w = 0; w < 4; w++) tile[lane * 4 + w] = i[w];
    __syncwarp();
    {kind_of} at = {place};
    {call.replace("POINTER", "r" if space else "l")}
    __syncwarp();
    for (int w = 0; w < 4; w++) o[w] = tile[lane * 4 + w];"""
    drawn = _DRAWN.get(kind, ("b32",))
    group = (drawn * 4)[:4]
    reads = group + (("same",) * 4 if compare else group) + group
    since = max(_SINCE.get(kind, 75), 90 if kind == "b128" else 75)
    return Form(text, kernel(body), reads, 8, since)


def vectors() -> Iterator[Form]:
    """Yield the vector forms of atom and red of sm_90, on 8 or 16 bytes of global memory."""
    for kind, (lengths, operations) in _VECTORS.items():
        for length in lengths:
            for operation in operations:
                for reducing in (False, True):
                    yield _vector(kind, length, operation, reducing)


def _vector(kind: str, length: int, operation: str, reducing: bool) -> Form:
    text = f"{'red' if reducing else 'atom'}.relaxed.gpu.global.{operation}"
    text += f".noftz.v{length}.{kind[6:]}" if kind.startswith("noftz") else f".v{length}.{kind}"
    letter, type_ = (
        ("f", "float") if kind == "f32" else ("r", "unsigned") if kind.endswith("x2") else ("h", "unsigned short")
    )
    outs = ", ".join(f'"={letter}"((({type_} *)(o + 4))[{n}])' for n in range(length)) if not reducing else ""
    ins = ", ".join(f'"{letter}"(((const {type_} *)(i + 4))[{n}])' for n in range(length))
    first = 0 if reducing else length
    result = "" if reducing else "{" + ", ".join(f"%{n}" for n in range(length)) + "}, "
    names = "{" + ", ".join(f"%{first + 1 + n}" for n in range(length)) + "}"
    body = f'    asm volatile("{text} {result}[%{first}], {names};" : {outs} : "l"(o), {ins} : "memory");'
    return Form(text, kernel(body), (_DRAWN[kind][0],) * 8, 8, 90)


def together() -> Iterator[Form]:
    """Yield reductions in which all lanes meet at one address, and whose outcome does not depend on their order."""
    for kind, operations in (("u32", ("add", "min", "max")), ("b32", ("and", "or", "xor")), ("u64", ("add", "max"))):
        for operation in operations:
            for space in ("global", "shared"):
                letter, type_ = ("l", "unsigned long long") if kind == "u64" else ("r", "unsigned")
                text = f"red.{space}.relaxed.gpu.{operation}.{kind}"
                call = f'asm volatile("{text} [%0], %1;" : : "POINTER"(at), "{letter}"(*({type_} *)i) : "memory");'
                shared = """\
    __shared__ __align__(128) unsigned tile[2];
    if (lane < 2) tile[lane] = in[lane];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(tile);
    CALL
    __syncwarp();
    if (lane < 2) out[lane] = tile[lane];"""
                body = f"    unsigned *at = out;\n    {call.replace('POINTER', 'l')}"
                if space == "shared":
                    body = shared.replace("CALL", call.replace("POINTER", "r"))
                yield Form(f"{text} together", kernel(body), ("b32", "b32"), 2)


def conversions() -> Iterator[Form]:
    """Yield the conversions from and to floats of 16, 8 and fewer bits, and to TF32."""
    for kind in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield _convert(f"cvt.rn.satfinite{relu}.{kind}.f32", ("f32", "f32"), 2, "h", "f", 89)
            yield _convert(f"cvt.rn.satfinite{relu}.{kind}.f16x2", ("f16",), 1, "h", "r", 89)
            yield _convert(f"cvt.rn{relu}.f16x2.{kind}", ("b32",), 1, "r", "h", 89)
    for kind in ("f16x2", "bf16x2"):
        for relu in ("", ".relu", ".satfinite", ".relu.satfinite"):
            for mode in ("rn", "rz"):
                yield _convert(f"cvt.{mode}{relu}.{kind}.f32", ("f32", "f32"), 2, "r", "f", 80)
    for kind in ("f16", "bf16"):
        for relu in ("", ".relu"):
            for mode in ("rn", "rz"):
                yield _convert(f"cvt.{mode}{relu}.{kind}.f32", ("f32",), 1, "h", "f", 80)
    for mode in ("rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite", "rn.satfinite"):
        yield _convert(f"cvt.{mode}.tf32.f32", ("f32",), 1, "r", "f", 80 if mode == "rna" else 90)
    for kind in ("e2m3x2", "e3m2x2"):
        yield _convert(f"cvt.rn.satfinite.{kind}.f32", ("f32", "f32"), 2, "h", "f", 100, "a")
        yield _convert(f"cvt.rn.f16x2.{kind}", ("b32",), 1, "r", "h", 100, "a")
    for mode in ("rz", "rp"):
        yield _convert(f"cvt.{mode}.satfinite.ue8m0x2.f32", ("f32", "f32"), 2, "h", "f", 100, "a")
    yield _convert("cvt.rn.bf16x2.ue8m0x2", ("b32",), 1, "r", "h", 100, "a")


def _convert(
    text: str, reads: tuple[str, ...], operands: int, result: str, letter: str, since: int, target: str = ""
) -> Form:
    type_ = {"h": "unsigned short", "f": "float", "r": "unsigned"}
    ins = ", ".join(f'"{letter}"(((const {type_[letter]} *)(i + {n}))[0])' for n in range(operands))
    names = ", ".join(f"%{1 + n}" for n in range(operands))
    body = f"""\
    {type_[result]} to;
    asm volatile("{text} %0, {names};" : "={result}"(to) : {ins});
    o[0] = to;"""
    return Form(text, kernel(body), reads, 1, since, target)


def forms() -> list[Form]:
    """Return all forms of this module."""
    return [*scalar(), *vectors(), *together(), *conversions()]
