"""Makes a bundle of what a program launched: a folder with a manifest, and the machine code that may be given away.

Its records have the form of `records/record.schema.json`. An array is described by its size; the code of an installed
library by package, version and hash.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmsim.compile.library_code import LIBRARY_CODE
from gemmsim.compile.sections import section_sha256
from gemmsim.support.errors import GemmsimError

from ..gpu_files.device import preset_of
from ..measure.bundle import MANIFEST, VERSION
from ..records.files import cubin_name, write_bytes
from .log import Log
from .machine import Machine
from .owners import Owner, owner_of

_HOST = 1  # CU_MEMORYTYPE_HOST
_NO_EFFECT = {0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 14}  # launch attributes that are recorded, or change no result
_MOST_TIMES = 200


@dataclass(frozen=True)
class Written:
    """What a bundle holds: its records, and sentences on what it does not hold."""

    records: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]


def write_bundle(
    logs: Sequence[Log], machine: Machine, clocks: Sequence[float], folder: Path, library_code: bool = False
) -> Written:
    """Write the bundle of a program's processes to a folder.

    clocks        [least, median, most] of the SM clock in MHz while the program ran; [] where it is not known
    library_code  whether the code of installed libraries is stored in a folder of its own, for those who may

    Raises GemmsimError where there is no launch.
    """
    records: list[dict[str, Any]] = []
    notes = [note for log in logs for note in log.notes]
    major, minor = machine.capability
    for log in logs:
        for launch in log.launches:
            if launch["number"] not in log.cubins:
                notes.append(f"no module brought the kernel {launch['symbol']}")
                continue
            taken = _Taken(log, launch, f"sm_{major}{minor}", preset_of(machine.name), library_code)
            records.append(taken.record(len(records) + 1, machine.described, clocks, folder))
    if not records:
        raise GemmsimError("the program launched no kernel that was captured" + "".join(f"; {one}" for one in notes))
    notes += sorted({note for record in records for note in record.get("errors", ())})
    head = {"version": VERSION, "arch": f"sm_{major}{minor}", "gpu": preset_of(machine.name), "probe": ""}
    lines = ",\n".join(json.dumps(record, sort_keys=True) for record in records)
    text = f'{json.dumps(head)[:-1]}, "counters_wanted": [], "cases": [\n{lines}\n]}}\n'
    write_bytes(folder / MANIFEST, text.encode())
    return Written(tuple(records), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class _Taken:
    """A launch of a log.

    gpu           the preset that predicts it on the machine's GPU
    library_code  whether the code of libraries is stored, too
    """

    log: Log
    launch: dict[str, Any]
    arch: str
    gpu: str
    library_code: bool

    def record(self, number: int, machine: dict[str, Any], clocks: Sequence[float], folder: Path) -> dict[str, Any]:
        """Return the record, and write the cubin where the code is the program's own."""
        launch, cubin = self.launch, self.log.cubins[self.launch["number"]].read_bytes()
        sha256, owner = hashlib.sha256(cubin).hexdigest(), owner_of(launch["callers"])
        name = re.sub(r"[^a-z0-9_.=,-]+", "-", launch["symbol"].lower()).strip("-_.=,")[:80]
        subject: dict[str, Any] = {
            "name": launch["symbol"],
            "abi": "c",
            "symbol": launch["symbol"],
            "arch": self.arch,
            "cubin_sha256": sha256,
            "registers": launch["registers"],
            "static_shared_bytes": launch["static_shared"],
            "local_bytes": launch["local"],
        }
        if owner is None:
            write_bytes(folder / cubin_name(sha256), cubin)
        else:
            if self.library_code:
                write_bytes(folder / LIBRARY_CODE / cubin_name(sha256), cubin)
            subject["code_in"] = _described(owner) | {"section_sha256": section_sha256(cubin, launch["symbol"])}
        record: dict[str, Any] = {
            "id": f"{number}-{name}",
            "kind": "captured",
            "gpu": self.gpu,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "subject": subject,
            "launch": self._launch(folder),
            "machine": machine,
        }
        if times := self.log.times_ns.get(launch["number"]):
            record["time"] = {"activity": _series([one / 1e3 for one in times], clocks)}
        if unknown := [one for one in launch["attributes"] if one not in _NO_EFFECT]:
            record["errors"] = [f"launch attributes {unknown} are not replayed"]
        return record

    def _launch(self, folder: Path) -> dict[str, Any]:
        launch = self.launch
        found: dict[str, Any] = {
            "grid": launch["grid"],
            "block": launch["block"],
            "dynamic_shared_bytes": launch["shared"],
        }
        if launch.get("cluster"):
            found["cluster"] = launch["cluster"]
        if launch["cooperative"]:
            found["cooperative"] = True
        bases = sorted({(one["base"], one["size"], one["type"]) for one in launch["buffers"]})
        names = [f"memory{number}" for number in range(len(bases))]
        arrays: dict[str, Any] = {}
        for name, (base, size, kind) in zip(names, bases, strict=True):
            arrays[name] = {"dtype": "u8", "shape": [size]} | ({"on_host": True} if kind == _HOST else {})
            stored = self.log.folder / f"{launch['number']}-{base}.bin"
            if stored.exists():
                data = stored.read_bytes()
                file = f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
                write_bytes(folder / file, data)
                arrays[name]["content"] = file
        parameters = []
        for number, text in enumerate(launch["parameters"]):
            content, places = bytearray.fromhex(text), []
            for one in launch["buffers"]:
                if one["parameter"] == number:
                    position = bases.index((one["base"], one["size"], one["type"]))
                    content[one["at"] : one["at"] + 8] = bytes(8)
                    plus = one["address"] - one["base"]
                    places.append({"at_byte": one["at"], "argument": position, "plus_bytes": plus})
            parameters.append({"bytes": content.hex(), "addresses": places})
        return found | {"arguments": names, "zeros": arrays, "parameters": parameters}


def _described(owner: Owner) -> dict[str, str]:
    return {"file": owner.file, "package": owner.package, "version": owner.version}


def _series(times_us: Sequence[float], clocks: Sequence[float]) -> dict[str, Any]:
    rounded = [round(one, 3) for one in times_us]
    found: dict[str, Any] = {"median_us": round(statistics.median(rounded), 3), "samples": len(rounded)}
    found["samples_us"] = rounded[:_MOST_TIMES]
    return found | ({"sm_clock_mhz": list(clocks)} if clocks else {})
