"""Keeps what a GPU computed as digests, so that results can be checked where there is no GPU and no file of outputs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bundle import Bundle
from .outputs import Outputs

RECORDED = Path(__file__).with_name("h200.json")
_HEX_DIGITS = 16


def digest(values: NDArray[np.uint64]) -> str:
    """Return the start of the SHA-256 of an array, in hex."""
    return hashlib.sha256(np.ascontiguousarray(values, np.uint64).tobytes()).hexdigest()[:_HEX_DIGITS]


def digests_of(bundle: Bundle, outputs: Outputs) -> dict[str, Any]:
    """Return the document to keep of a GPU's outputs: {symbol: [digest of the inputs, digest of the outputs]}, and the
    facts of the run."""
    facts = {key: outputs.facts[key] for key in ("device", "driver", "arch", "toolchain") if key in outputs.facts}
    cases = {
        case.symbol: [digest(bundle.inputs(case)), digest(outputs.values[case.symbol])]
        for case in bundle.cases
        if case.symbol in outputs.values
    }
    return facts | {"rows": bundle.rows, "cases": cases}


def compare_digests(bundle: Bundle, ours: Outputs, recorded: dict[str, Any]) -> dict[str, Any]:
    """Compare gemmsim's outputs with recorded digests; the result is shaped like that of `compare.compare`.

    A case whose inputs are not those of the record, or that the record lacks, is "not measured".
    """
    rows = []
    for case in bundle.cases:
        row: dict[str, Any] = {"instruction": case.instruction, "symbol": case.symbol}
        known = recorded["cases"].get(case.symbol)
        if case.symbol in ours.failed:
            row |= {"status": "refused", "why": ours.failed[case.symbol]}
        elif known is None or known[0] != digest(bundle.inputs(case)):
            row["status"] = "not measured"
        else:
            row["status"] = "equal" if digest(ours.values[case.symbol]) == known[1] else "differs"
        rows.append(row)
    count = {status: sum(row["status"] == status for row in rows) for status in sorted({r["status"] for r in rows})}
    theirs = {key: value for key, value in recorded.items() if key != "cases"}
    return {"arch": bundle.arch, "ours": ours.facts, "theirs": theirs, "count": count, "cases": rows}


def read_digests() -> dict[str, Any]:
    """Return the digests that are kept of an H200."""
    document: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return document


def write_digests(path: Path, document: dict[str, Any]) -> None:
    """Write digests to a file, one case a line."""
    head = {key: value for key, value in document.items() if key != "cases"}
    lines = ",\n".join(f"  {json.dumps(symbol)}: {json.dumps(row)}" for symbol, row in document["cases"].items())
    path.write_text(json.dumps(head)[:-1] + f', "cases": {{\n{lines}\n}}}}\n', encoding="utf-8")
