"""Compiles forms, and executes their kernels in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gemmsim.compile import CudaKernel
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.decode import decode_cubin, decode_kernels
from gemmsim.isa.program import Program
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.execute import execute
from gemmsim.trace.types import Argument, Launch

from . import atomic_forms, matrix_forms
from .bundle import Compiled, Words
from .form import LANES, Form
from .inputs import draw


def all_forms() -> list[Form]:
    return [*matrix_forms.forms(), *atomic_forms.forms()]


def prepared(arch: str, blocks: int, match: str = "") -> list[Compiled]:
    """Compile the forms whose name contains `match` for `arch` ("sm_90"), those that it has, and draw their words."""
    number, found = int(arch.removeprefix("sm_")), []
    for form in all_forms():
        if match not in form.name or form.since > number:
            continue
        try:
            found.append(Compiled(form, cubin(form, arch), draw(form, blocks)))
        except GemmsimError:  # the architecture lacks the form
            continue
    return found


def cubin(form: Form, arch: str) -> bytes:
    """Compile the form's kernel for `arch` ("sm_90"). Raises GemmsimError where the architecture lacks the form."""
    return compile_cuda(CudaKernel(form.source, Path("form.cu")), arch + form.target)[0]


def together(forms: Sequence[Form], arch: str) -> list[Program]:
    """Compile the kernels of all `forms` at once for `arch`, which must have them all, and decode them."""
    symbols = [f"form_{number}" for number in range(len(forms))]
    texts = [form.source.replace(" form(", f" {symbol}(") for form, symbol in zip(forms, symbols, strict=True)]
    found = dict(decode_kernels(compile_cuda(CudaKernel("".join(texts), Path("forms.cu")), arch)[0], symbols))
    programs = [found[symbol] for symbol in symbols]
    for program in programs:
        if isinstance(program, GemmsimError):
            raise program
    return [program for program in programs if isinstance(program, Program)]


def simulated(arch: str, one: Compiled) -> Words:
    """Execute a form's kernel, as `executed` does, from its cubin for `arch`."""
    return executed(decode_cubin(one.cubin, "form", arch, abi="c"), one)


def executed(program: Program, one: Compiled) -> Words:
    """Execute a form's program in the simulator; return what `out` then holds, uint32 [blocks, 32, words].

    Raises GemmsimError for an instruction that the simulator does not execute.
    """
    blocks, words = len(one.given), one.form.words
    args = (
        Argument("u32", one.given.shape, one.given),
        Argument("u32", (blocks, LANES, words), one.before()),
        Argument("u32", (), one.given.shape[2]),
        Argument("u32", (), words),
    )
    out = execute(program, Launch((blocks, 1, 1), (LANES, 1, 1), args)).outputs[1]
    assert out is not None
    return out.reshape(blocks, LANES, words)
