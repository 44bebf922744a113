"""Checks that predictions change only together with MODEL_VERSION, by digests of a few launches in predictions.json.

`python -m gemmsim_validate.predictions` renews the file. It refuses where predictions have changed but MODEL_VERSION
has not, so that two models never share a version. Stored results of a sweep, and readers who compare reports, rely on
that.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import click

from gemmsim.support.version import MODEL_VERSION

FILE = Path(__file__).parent / "predictions.json"
# Launches as (kernel, M = N = K, GPU, caches). Together they cover each architecture, each way to memory, tensor cores,
# and a launch of which only some blocks are executed.
LAUNCHES = (
    ("tiled", 64, "h200", "cold"),
    ("tiled", 64, "h200", "warm"),
    ("naive", 40, "t4", "cold"),
    ("vectorized", 128, "a100", "cold"),
    ("async_pipelined", 128, "rtx4090", "cold"),
    ("split_k", 64, "rtx5070ti", "cold"),
    ("blocktile_2d", 128, "rtxa6000", "cold"),
    ("tensorcore_pipelined", 128, "a100", "cold"),
    ("tensorcore_warptiled", 128, "h200", "cold"),
    ("coalesced", 1024, "a100", "cold"),
)
PREDICTED = ("time", "counters", "occupancy", "stalls", "pipes", "lines")  # keys of a report as JSON
DIGITS = 9  # significant digits that count: further ones may differ between processors


def digests() -> dict[str, str]:
    """Return the SHA-256 of the prediction of each launch, by the launch's name, such as "tiled 64 h200 cold".

    The launches run the compiled programs that ship, so it makes no difference which compiler is installed here.
    """
    from gemmsim.api import conclude, count
    from gemmsim.compile.shipped import shipped_program
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.cases import LadderCase, ladder_launch
    from gemmsim.report.json import as_dict
    from gemmsim.report.layout.data import plain

    found = {}
    for kernel, size, gpu, caches in LAUNCHES:
        case = LadderCase(kernel, size, size, size, warm_caches=caches == "warm")
        request = ladder_launch(case, load_gpu(gpu))
        program = shipped_program(request.kernel, request.gpu.arch, {})
        report = plain(as_dict(conclude(count(request, program), request, accesses=False)))
        del report["time"]["engine"]  # says which engine predicted, and both predict the same
        text = json.dumps(_rounded({name: report[name] for name in PREDICTED}), sort_keys=True)
        found[f"{kernel} {size} {gpu} {caches}"] = hashlib.sha256(text.encode()).hexdigest()
    return found


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value


def problem(found: dict[str, str], version: int, path: Path = FILE) -> str:
    """Compare the digests `found`, which the model of version `version` gives, with those in the file `path`.

    Return "" where both agree, else one line that says what changed and what to do.
    """
    held = json.loads(path.read_text(encoding="utf-8"))
    digests_held = held["sha256"]
    changed = [launch for launch, digest in found.items() if digests_held.get(launch, digest) != digest]
    renew = "run python -m gemmsim_validate.predictions to renew the digests"
    if changed and version == held["model_version"]:
        where = "gemmsim/support/version.py"
        return f"predictions changed ({', '.join(changed)}): raise MODEL_VERSION in {where} and {renew}"
    if changed or version != held["model_version"] or found.keys() != digests_held.keys():
        return f"MODEL_VERSION or the list of launches changed: {renew}"
    return ""


def main() -> int:
    """Renew the file and return 0; where MODEL_VERSION must be raised first, leave the file and return 2."""
    found = digests()
    line = problem(found, MODEL_VERSION, FILE) if FILE.exists() else ""
    if "raise MODEL_VERSION" in line:
        click.echo(f"error: {line}", err=True)
        return 2
    FILE.write_text(json.dumps({"model_version": MODEL_VERSION, "sha256": found}, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
