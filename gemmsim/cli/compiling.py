"""Defines the options that say how CUDA C++ is compiled, which several commands share."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gemmsim.cli.group import filled_by

compiler_option = click.option(
    "--compiler",
    type=click.Choice(["nvrtc", "nvcc"]),
    help="For a .cu file; nvcc needs a C++ compiler.  [default: nvrtc]",
)
include_option = click.option("-I", "include", multiple=True, metavar="FOLDER", help="Where a .cu file's headers are.")
define_option = click.option("-D", "define", multiple=True, metavar="NAME[=VALUE]", help="A macro for a .cu file.")
std_option = click.option("--std", metavar="NAME", help="C++ of a .cu file: c++17, c++20.")
fast_math_option = click.option("--use_fast_math", "fast_math", is_flag=True, help="For a .cu file.")
registers_option = click.option("--maxrregcount", type=int, metavar="N", help="Most registers, for a .cu file.")
compile_option = click.option(
    "--compile-option", "compile_options", multiple=True, metavar="OPTION", help="Any other: -Xptxas=-O1."
)


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options that say how a .cu file is compiled, as typed."""

    compiler: str | None = filled_by(compiler_option)
    include: tuple[str, ...] = filled_by(include_option, ())
    define: tuple[str, ...] = filled_by(define_option, ())
    std: str | None = filled_by(std_option)
    fast_math: bool = filled_by(fast_math_option, default=False)
    maxrregcount: int | None = filled_by(registers_option)
    compile_options: tuple[str, ...] = filled_by(compile_option, ())

    def given(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the compiler, None where none was named, and the words for it: NVRTC and nvcc spell them alike."""
        words = [f"-I{folder}" for folder in self.include] + [f"-D{macro}" for macro in self.define]
        if self.std is not None:
            words.append(f"--std={self.std}")
        if self.fast_math:
            words.append("--use_fast_math")
        if self.maxrregcount is not None:
            words.append(f"--maxrregcount={self.maxrregcount}")
        return self.compiler, (*words, *self.compile_options)
