"""What this package concludes from a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """kind: see `find_bottleneck`; sentence: one line with the numbers that say so; share_pct: of that unit's peak."""

    kind: str
    sentence: str
    share_pct: float


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change.

    rule      name of the rule that said it
    title     what is the matter, one line
    evidence  the numbers that say so
    change    what to do about it
    gain      expected gain with its arithmetic, "" where it is not computable
    """

    rule: str
    title: str
    evidence: str
    change: str
    gain: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """Outcome of comparing C with NumPy in float64.

    ok              None where nothing was compared
    relative_error  max |C - reference| / max |reference| over the elements compared, None where nothing was
    text            one line for people: what was compared, or why not
    """

    ok: bool | None
    relative_error: float | None
    text: str
