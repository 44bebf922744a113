"""Reads launches of a bundle, which `gemmsim-validate capture` took from a program on a real GPU.

A bundle is a folder with a manifest, whose records `validate/records/record.schema.json` describes, and beside it the
cubins and the contents of arrays. Arrays whose content is not stored hold zeros.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gemmsim.compile.library_code import LIBRARY_CODE, LibraryCode, library_cubin
from gemmsim.compile.names import readable_name
from gemmsim.compile.source import CubinKernel
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.array_files import file_contents
from gemmsim.launch.arrays import Contents, array_argument
from gemmsim.launch.spec import Labels, LaunchSpec
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Address, Argument, Launch, Packed

MANIFEST = "manifest.json"
_VERSION = 1
_NAME_DIGITS = 16  # of the hash in a cubin's file name


def names_bundle(target: str) -> bool:
    """Whether TARGET is a launch of a bundle, FOLDER#NUMBER."""
    folder, mark, _ = target.rpartition("#")
    return bool(mark) and Path(folder, MANIFEST).is_file()


def recorded_launch(target: str, gpu: GpuSpec) -> LaunchSpec:
    """Return the launch that TARGET names: FOLDER#3 is the third of a bundle.

    Raises GemmsimError, one line, where the bundle has no such launch, is of another version or damaged, and where the
    kernel's code is in a library that is not installed.
    """
    folder, _, number = target.rpartition("#")
    records = bundle_records(Path(folder))
    if not number.isdecimal() or not 1 <= int(number) <= len(records):
        raise GemmsimError(f"{target}: the bundle has launches 1 to {len(records)}")
    try:
        return _spec(Path(folder), records[int(number) - 1], target, gpu)
    except (KeyError, TypeError, ValueError) as error:
        raise GemmsimError(f"{target}: the record is damaged ({type(error).__name__}: {error})") from None


def listed_parameters(launch: Mapping[str, Any]) -> tuple[int | Packed, ...] | None:
    """Return the kernel's parameters where the record lists them; None where each argument is a parameter."""
    if "parameters" not in launch:
        return None
    names = launch["arguments"]
    return tuple(names.index(one) if isinstance(one, str) else _packed(one) for one in launch["parameters"])


def _packed(parameter: Mapping[str, Any]) -> Packed:
    places = (Address(one["at_byte"], one["argument"], one["plus_bytes"]) for one in parameter["addresses"])
    return Packed(bytes.fromhex(parameter["bytes"]), tuple(places))


def bundle_records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a bundle. Raises GemmsimError where the folder holds none, or of another version."""
    path = folder / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            raise GemmsimError(f"{path} has version {data['version']}, this gemmsim reads {_VERSION}")
        return list(data["cases"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise GemmsimError(f"{path} is no manifest of a bundle ({type(error).__name__}: {error})") from None


def _spec(folder: Path, record: Mapping[str, Any], target: str, gpu: GpuSpec) -> LaunchSpec:
    subject, launch = record["subject"], record["launch"]
    if subject["arch"] != gpu.arch:
        raise GemmsimError(f"{target} is machine code for {subject['arch']}: {gpu.name} is {gpu.arch}")
    arrays = launch.get("zeros", {})
    unknown = [name for name in launch["arguments"] if name not in arrays]
    if unknown:
        raise GemmsimError(f"{target} names arrays of a problem ({unknown[0]}): `gemmsim-validate compare` predicts it")
    cluster = tuple(launch["cluster"]) if "cluster" in launch else None
    return LaunchSpec(
        kernel=CubinKernel(_code(folder, subject), folder, subject["symbol"], subject["abi"]),
        launch=Launch(
            grid=tuple(launch["grid"]),
            block=tuple(launch["block"]),
            args=tuple(_array(folder, target, name, arrays[name]) for name in launch["arguments"]),
            dynamic_shared_bytes=launch.get("dynamic_shared_bytes", 0),
            parameters=listed_parameters(launch),
            cooperative=launch.get("cooperative", False),
            cluster=cluster,
        ),
        gpu=gpu,
        labels=Labels(readable_name(subject["symbol"]), target),
        results=False,
    )


def _array(folder: Path, target: str, name: str, of: Mapping[str, Any]) -> Argument:
    contents = Contents(of.get("value", 0))
    if "content" in of:
        contents = Contents(file_contents(str(folder / of["content"]), name, target))
    return array_argument(f"{target}: {name}", of["dtype"], tuple(of["shape"]), contents, name)


def _code(folder: Path, subject: Mapping[str, Any]) -> bytes:
    sha256 = subject["cubin_sha256"]
    name = f"{sha256[:_NAME_DIGITS]}.cubin"
    path = folder / name
    if "code_in" in subject:
        path = folder / LIBRARY_CODE / name
        if not path.exists():
            of = subject["code_in"]
            where = of["file"], of["package"], of["version"], sha256, of["section_sha256"]
            return library_cubin(LibraryCode(*where, subject["arch"], subject["symbol"]))
    packed = path.with_name(f"{path.name}.z")  # as the bundles are that ship
    try:
        data = zlib.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    except (OSError, zlib.error) as error:
        raise GemmsimError(f"cannot read {path}: {error}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise GemmsimError(f"{path} is not the cubin that the bundle names")
    return data
