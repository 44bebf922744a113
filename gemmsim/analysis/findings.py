"""Defines the classes of what is concluded from a launch: its bottleneck, advice, and whether its result is right."""

from __future__ import annotations

from dataclasses import dataclass

# Why results are not known to be right or wrong
NOT_EXECUTED = (
    "not checked: iterations of the executed blocks' loops were counted and not executed (--full executes all)"
)


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What holds a launch back.

    kind       one of the kinds that the docstring of `find_bottleneck` lists
    sentence   one line, with the numbers that say so
    share_pct  percent of its peak that the limiting or busiest unit reaches; for the kind "launch", percent of the time
               that launch overhead takes
    """

    kind: str
    sentence: str
    share_pct: float


@dataclass(frozen=True, slots=True)
class Advice:
    """One change of the kernel or launch that is advised.

    rule      name of the function that found it
    title     the problem, one line
    evidence  the numbers that show it
    change    what to do about it
    gain      expected gain with its arithmetic, "" where it cannot be computed
    time_us   predicted time with the problem gone and all else as it is; None where that is not known
    cures     (instruction, part that is left) of the memory accesses that would cost less without the problem
    left      which costs of them that is: "wavefronts" alone, or "all", sectors too
    at_best   part of the kernel's time that is left where the problem is gone, for one that is no instruction's
    """

    rule: str
    title: str
    evidence: str
    change: str
    gain: str = ""
    time_us: float | None = None
    cures: tuple[tuple[int, float], ...] = ()
    left: str = "all"
    at_best: float | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of comparing arrays after a launch with NumPy in float64, or with arrays from a file.

    ok              whether they are right, None where nothing was compared
    relative_error  max |array - reference| / max |reference| of the elements compared, None where there are none
    text            one line for people: what was compared, or why nothing was
    """

    ok: bool | None
    relative_error: float | None
    text: str
