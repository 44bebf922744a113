"""The command `gemmsim decode`, which says what kernels a file holds and what gemmsim lacks to execute them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import click

from gemmsim.cli.compiling import CompileOptions
from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.group import gathered
from gemmsim.cli.output import emit

if TYPE_CHECKING:
    from gemmsim.compile.listing import ListedKernel
    from gemmsim.report.decoded import DecodedKernel


@click.command("decode")
@click.argument("file")
@click.option("--entry", metavar="NAME", help="Only this kernel, or those of which this is a part.")
@click.option("--gpu", metavar="NAME|FILE.toml", help="Only what runs on this GPU.")
@gathered("compiling", CompileOptions)
@format_option("text", "json")
@output_option
def command(
    file: str, entry: str | None, gpu: str | None, compiling: CompileOptions, output_format: str, output: str | None
) -> None:
    """Say which kernels a file holds, what they need, and what is missing.

    \b
    gemmsim decode prog
    gemmsim decode prog --entry sgemm --gpu h200 --format json
    gemmsim decode my.cu --entry 'sgemm<128,8>'

    FILE is a cubin, a fatbin, an executable, library or object file made by
    nvcc, or a .cu or .ptx file. These are compiled for --gpu, or the GPU that
    is the default.
    """
    from gemmsim.cli.defaults import default_gpu
    from gemmsim.compile.listing import list_kernels
    from gemmsim.compile.source import CubinKernel
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.own import own_source
    from gemmsim.report.decoded import render_json, render_text

    source, _name = own_source(file, entry, (), *compiling.given())
    arch = load_gpu(gpu).arch if gpu else None if isinstance(source, CubinKernel) else load_gpu(default_gpu()).arch
    kernels = [_decoded(kernel) for kernel in list_kernels(source, arch)]
    emit((render_json if output_format == "json" else render_text)(file, kernels), output)


def _decoded(kernel: ListedKernel) -> DecodedKernel:
    from gemmsim.compile.names import cpp_name, parameter_types
    from gemmsim.report.decoded import DecodedKernel, MissingRow, ParameterRow, VariableRow
    from gemmsim.support.errors import GemmsimError
    from gemmsim.trace.lower import missing

    name, program = cpp_name(kernel.symbol), kernel.program
    if program is None:
        return DecodedKernel(name, kernel.symbol, kernel.arch, kernel.origin, {}, kernel.problem)
    try:
        gaps, problem = missing(program), ""
    except GemmsimError as error:
        gaps, problem = (), str(error)
    types = parameter_types(kernel.symbol)
    if len(types) != len(program.parameters):
        types = ("",) * len(program.parameters)
    most_shared = _most_shared_bytes(program.arch)
    return DecodedKernel(
        name=name,
        symbol=kernel.symbol,
        arch=program.arch,
        origin=program.origin,
        toolchain=program.toolchain,
        problem=problem,
        instructions=len(program.instructions),
        registers=program.registers,
        static_shared_bytes=program.static_shared_bytes,
        maximal_dynamic_shared_bytes=most_shared and most_shared - program.static_shared_bytes,
        local_bytes=program.local_bytes,
        barriers=program.barriers,
        max_threads=program.max_threads,
        parameters=tuple(
            ParameterRow(type_, one.offset_bytes, one.size_bytes)
            for type_, one in zip(types, program.parameters, strict=True)
        ),
        constant_bytes={bank: len(data) for bank, data in sorted(program.constants.items())},
        variables=tuple(
            VariableRow(one.shown, "constant" if one.constant else "global", one.size_bytes) for one in program.symbols
        ),
        calls=program.externals,
        missing=tuple(MissingRow(gap.name, gap.count, gap.text) for gap in gaps),
    )


@lru_cache
def _most_shared_bytes(arch: str) -> int | None:
    """Return the most shared memory of a block on GPUs of this architecture; None where no GPU of it is known."""
    from gemmsim.gpu import load_gpu, preset_names

    gpus = (load_gpu(name) for name in preset_names())
    return next((gpu.shared.max_bytes_per_block for gpu in gpus if gpu.arch == arch), None)
