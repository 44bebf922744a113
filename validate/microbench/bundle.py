"""Compiles the microbenchmarks for one architecture into a folder: a cubin for each group, and its entries' names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gemmsim.support.errors import GemmsimError

from ..records.files import write_bytes
from .groups import GROUPS
from .ptx import module

MANIFEST = "microbench.json"


@dataclass(frozen=True)
class MicroBundle:
    """The content of a folder of compiled microbenchmarks.

    modules    group -> (cubin, names of its entries)
    toolchain  Python distribution -> version, for those that compiled the microbenchmarks
    """

    arch: str
    modules: dict[str, tuple[bytes, list[str]]]
    toolchain: dict[str, str]


def prepare(arch: str, folder: Path, groups: Iterable[str] = tuple(GROUPS)) -> None:
    """Assemble the groups for the architecture `arch` ("sm_90") and write them to a folder.

    This needs the compiler, but no GPU.
    """
    from gemmsim.compile.link import link
    from gemmsim.compile.toolchain import tool_versions

    entries = {}
    for name in groups:
        kernels = GROUPS[name].kernels(arch)
        write_bytes(folder / f"{name}.cubin", link([module(arch, kernels)], arch))
        entries[name] = list(kernels)
    manifest = {"version": 1, "arch": arch, "groups": entries, "toolchain": tool_versions()}
    write_bytes(folder / MANIFEST, json.dumps(manifest, indent=1).encode())


def read(folder: Path) -> MicroBundle:
    """Read a folder that `prepare` has written. Raises GemmsimError, one line, where it holds no microbenchmarks."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        modules = {
            name: ((folder / f"{name}.cubin").read_bytes(), list(entries)) for name, entries in data["groups"].items()
        }
        return MicroBundle(data["arch"], modules, data["toolchain"])
    except OSError as error:
        raise GemmsimError(f"cannot read the microbenchmarks in {folder}: {error.strerror}") from None
    except (ValueError, KeyError, AttributeError) as error:
        raise GemmsimError(f"{folder / MANIFEST} is damaged: {type(error).__name__} {error}") from None
