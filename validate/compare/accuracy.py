"""Reads and writes `accuracy.json`, the committed errors of every case for study, and finds errors that became worse.

A test uses this to notice a change of the code that makes predictions worse. Errors of single cases to judge by are
written nowhere, so that nobody reads them by mistake; their means stand in docs/judgements.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from ..records.case import STUDY
from ..records.files import write_bytes
from .figures import figures
from .judge import Judged

PATH = Path(__file__).parents[1] / "accuracy.json"
SCHEMA_VERSION = 1
# A mean error counts as worse when it exceeds the committed one by more than the sum of SLACK, in percent or points,
# and the share SLACK_SHARE of the committed mean.
SLACK, SLACK_SHARE = 0.3, 0.05
# A single case counts as worse when its absolute error grows by more than this, in percent or points.
CASE_SLACK = 8.0


def errors_of(row: Judged) -> dict[str, float]:
    """Return a case's signed errors in percent or points, by counter; the error of the time has the name "time".

    Exact counters are left out, as they must agree with the measurement anyway.
    """
    found = {n.name: round(n.error_pct, 2) for n in row.numbers if n.kind == "modelled" and isfinite(n.error)}
    if row.time:
        found["time"] = round(row.time.error_pct, 2)
    return found


def write(judged: Iterable[Judged], path: Path = PATH) -> None:
    """Write the errors of all cases for study that could be predicted, one case a line."""
    kept = [row for row in judged if row.case.half == STUDY and not row.prediction.error]
    cases = {_name(row): errors_of(row) for row in kept}
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(cases[name], sort_keys=True)}" for name in sorted(cases))
    write_bytes(path, f'{{"schema_version":{SCHEMA_VERSION},"cases":{{\n{lines}\n}}}}\n'.encode())


def read(path: Path = PATH) -> dict[str, dict[str, float]]:
    """Return the errors in a file: case -> counter -> error, as `errors_of` gives them.

    Raises GemmsimError where the file cannot be read or is of another form.
    """
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["schema_version"] != SCHEMA_VERSION:
            raise GemmsimError(f"{path} has schema version {data['schema_version']}, not {SCHEMA_VERSION}")
        return {str(name): dict(errors) for name, errors in data["cases"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise GemmsimError(f"cannot read the figures in {path}: {error}") from None


def worse(judged: Sequence[Judged], committed: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return one line for each error that has become worse than the committed one.

    For each counter, the cases that both `judged` and `committed` have are compared: first the mean of their absolute
    errors, then the error of each case.
    """
    found = []
    names = {name for errors in committed.values() for name in errors}
    for name in sorted(names):
        pairs = [
            (_name(row), now[name], committed[_name(row)][name])
            for row in judged
            if name in (now := errors_of(row)) and name in committed.get(_name(row), {})
        ]
        if not pairs:
            continue
        mean = figures([(case, new) for case, new, _ in pairs]).mean
        was = figures([(case, old) for case, _, old in pairs]).mean
        if mean > was * (1 + SLACK_SHARE) + SLACK:
            found.append(f"{name}: mean error {mean:.2f}, was {was:.2f}, over {len(pairs)} cases")
        for case, new, old in pairs:
            if abs(new) > abs(old) + CASE_SLACK:
                found.append(f"{name} of {case}: {new:+.1f}, was {old:+.1f}")
    return found


def _name(row: Judged) -> str:
    return row.case.key
