"""The command `gemmsim doctor`, which checks that everything gemmsim needs is installed and works."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click

from gemmsim.cli.forms import format_option, output_option
from gemmsim.cli.output import emit
from gemmsim.support.errors import GemmsimError
from gemmsim.support.version import __version__

FAILED = 2  # exit status where something is missing


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check of the installation.

    ok    whether nothing is missing; where it is False, the command fails
    text  what was found, or what is missing and how to get it
    """

    name: str
    ok: bool
    text: str


@click.command("doctor")
@format_option("text", "json")
@output_option
def command(output_format: str, output: str | None) -> int:
    """Check what this installation can do, and say what is missing.

    Exit status 2 where something is.
    """
    checks = [_run(name, probe) for name, probe in PROBES.items()]
    if output_format == "json":
        emit(json.dumps({"version": __version__, "checks": [asdict(check) for check in checks]}, indent=2), output)
    else:
        lines = [f"gemmsim {__version__}, Python {platform.python_version()}, {platform.platform()}"]
        lines += [f"{'ok     ' if check.ok else 'MISSING'}  {check.name}: {check.text}" for check in checks]
        emit("\n".join(lines), output)
    return 0 if all(check.ok for check in checks) else FAILED


def _run(name: str, probe: Callable[[], str]) -> Check:
    try:
        return Check(name, True, probe())
    except (GemmsimError, ImportError, OSError) as error:
        return Check(name, False, " ".join(str(error).split()))


def _kernels() -> str:
    from gemmsim.launch.ladder import kernel_infos

    return ", ".join(kernel_infos())


def _gpus() -> str:
    from gemmsim.gpu import load_gpu, preset_names

    return ", ".join(load_gpu(name).name for name in preset_names())


def _compiler() -> str:
    import cuda.core
    import numba_cuda

    return f"numba-cuda {numba_cuda.__version__}, cuda.core {cuda.core.__version__}: kernels compile without a GPU"


def _disassembler() -> str:
    from gemmsim.compile.toolchain import find_nvdisasm

    return f"nvdisasm at {find_nvdisasm()}"


def _shipped() -> str:
    """Say how many programs are shipped, that is, kernels compiled beforehand, and with which tools they were made.

    Raises GemmsimError where there are no shipped programs and no compiler either.
    """
    from gemmsim.compile.shipped import FOLDER, can_compile, read_index
    from gemmsim.compile.toolchain import tool_versions
    from gemmsim.launch.ladder import kernel_infos, kernel_path

    folder = kernel_path(next(iter(kernel_infos().values()))).parent / FOLDER
    index = read_index(folder)
    if not index.files:
        text = f"none in {folder}; python -m gemmsim_kernels.ship makes them"
        if can_compile(tool_versions()):
            return text
        raise GemmsimError(text)
    used = "" if not can_compile(tool_versions()) or tool_versions() == index.toolchain else "not used, as "
    tools = ", ".join(f"{name} {index.toolchain.get(name)}" for name in ("numba-cuda", "nvidia-nvjitlink"))
    why = f" ({used}made with {tools})"
    return f"{len(index.files)} programs of {len(set(index.files.values()))} rungs and types{why}"


def _cache() -> str:
    from gemmsim.compile import default_cache

    folder = default_cache().folder
    probe = folder / ".doctor"
    folder.mkdir(parents=True, exist_ok=True)
    probe.touch()
    probe.unlink()
    return str(folder)


PROBES: dict[str, Callable[[], str]] = {
    "built-in kernels": _kernels,
    "GPUs": _gpus,
    "compiler": _compiler,
    "disassembler": _disassembler,
    "shipped programs": _shipped,
    "cache": _cache,
}
