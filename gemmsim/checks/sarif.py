"""Writes outcomes of checks in the format SARIF 2.1.0 (OASIS), which code hosts show next to the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gemmsim.checks.outcome import Checked, Outcome
from gemmsim.checks.places import within
from gemmsim.isa.program import SourceLine
from gemmsim.support.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "%SRCROOT%"  # the usual name for the folder of a checkout
# Descriptions of defects of a kernel that are reported even where the user gave no expectation.
_DEFECTS = {
    "race": "Two threads use the same bytes of memory and nothing orders them.",
    "unwaited copy": "Shared memory is used while an asynchronous copy to it may still be under way.",
    "unwaited wgmma": "Operands or results of a wgmma are used before a wait for its group.",
    "missing fence": "wgmma or TMA uses what threads wrote, and no fence lies between.",
    "mbarrier phase": "An arrival or a wait at an mbarrier is not in the phase that it takes itself to be in.",
    "expected bytes": "Other bytes come to an mbarrier than were expected.",
    "uninitialised read": "Shared memory is read that no thread of the block has written.",
    "out of bounds": "An access lies outside all that the kernel was given.",
    "misaligned": "An address is not a multiple of the access's size.",
    "divergent barrier": "Not all threads of the block reach a barrier.",
    "ended block": "Shared memory of a block of the cluster is used that may have ended.",
    "fault": "The kernel traps.",
    "verified": "The result is not that of NumPy in double precision.",
    "baseline": "A quantity has moved further from its baseline than it may.",
}


def render(checked: Checked) -> str:
    """Write one SARIF run, with a rule for each kind of expectation and a result for each outcome that does not hold.

    Code hosts show every result as a finding, so outcomes that hold are left out. They leave out results without a
    place, so that what concerns no line in particular stands where the kernel begins.
    """
    rules = sorted({outcome.rule for outcome in checked.outcomes})
    run = {
        "tool": {"driver": {"name": "gemmsim", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, rules.index(one.rule), checked.line_of(one)) for one in checked.failed],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def rule_id(rule: str) -> str:
    """Return the stable name that SARIF wants of a rule: "out of bounds" gives "gemmsim/out-of-bounds"."""
    return "gemmsim/" + rule.replace(" ", "-")


def _rule(rule: str) -> dict[str, Any]:
    text = _DEFECTS.get(rule, f"An expectation of {rule} does not hold.")
    return {"id": rule_id(rule), "shortDescription": {"text": text}, "defaultConfiguration": {"level": "error"}}


def _result(outcome: Outcome, index: int, line: SourceLine) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": rule_id(outcome.rule),
        "ruleIndex": index,
        "kind": "fail",
        "level": "error",
        "message": {"text": "\n".join((outcome.message, *outcome.details))},
        "locations": [{"physicalLocation": _location(line)}],
    }
    if outcome.related:
        result["relatedLocations"] = [
            {"physicalLocation": _location(line), "message": {"text": text}} for line, text in outcome.related
        ]
    return result


def _location(line: SourceLine) -> dict[str, Any]:
    here = within(line)
    artifact = {"uri": Path(line.file).as_uri()} if here is None else {"uri": quote(here), "uriBaseId": _ROOT}
    return {"artifactLocation": artifact, "region": {"startLine": line.line}}
