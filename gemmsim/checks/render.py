"""Writes the outcomes of checks as text or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from gemmsim.checks.outcome import Outcome

SCHEMA_VERSION = 1
WIDTH = 80
_INDENT = " " * 6


def render_text(outcomes: Sequence[Outcome]) -> str:
    """Write each outcome on a line, as `ok` or `FAIL` and its message. Under a failure stand its details.

    The last line says how many of the expectations hold.
    """
    lines = []
    for outcome in outcomes:
        head = f"{'ok' if outcome.ok else 'FAIL':<{len(_INDENT)}}{outcome.message}"
        lines += textwrap.wrap(head, WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
        lines += [f"{_INDENT}{detail}".rstrip() for detail in outcome.details]
    failed = sum(not outcome.ok for outcome in outcomes)
    return "\n".join([*lines, f"{len(outcomes) - failed} of {len(outcomes)} hold"]) + "\n"


def render_json(outcomes: Sequence[Outcome]) -> str:
    data = {
        "schema_version": SCHEMA_VERSION,
        "ok": all(outcome.ok for outcome in outcomes),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }
    return json.dumps(data, indent=2) + "\n"
