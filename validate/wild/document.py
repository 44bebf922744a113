"""Writes docs/compatibility.md: which kernels of public repositories ran and were right, by architecture."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from ..documents.sections import Section, table
from .manifest import ARCHITECTURES, Case
from .outcomes import NOT_COMPILED, REFUSED, RIGHT, WRONG, Outcome

TITLE = "Compatibility"
MADE_BY = "gemmsim-validate wild --root CHECKOUTS --results RESULTS --format md"
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?")  # numbers in reasons, which do not make them different ones


def sections(cases: Sequence[Case], outcomes: Sequence[Outcome]) -> list[Section]:
    """Return the page: summary, table by architecture, table by repository, what failed and why, and the sources.

    cases  all of the manifest; outcomes of other cases are left out
    """
    by_id = {case.id: case for case in cases}
    outcomes = [one for one in outcomes if one.case in by_id]
    return [
        _summary(by_id, outcomes),
        _by_architecture(outcomes),
        _by_repository(by_id, outcomes),
        _wrong(outcomes),
        _reasons("Refused", REFUSED, outcomes, "Each reason once, with the number of pairs and one of them."),
        _reasons(
            "Not compiled",
            NOT_COMPILED,
            outcomes,
            "These pairs never reached gemmsim: their own compiler, or a missing checkout, stopped them.",
        ),
        _sources(cases),
    ]


def _summary(by_id: dict[str, Case], outcomes: Sequence[Outcome]) -> Section:
    counts = _counts(outcomes)
    ran = len(outcomes) - counts[NOT_COMPILED]
    share = f"{100 * counts[RIGHT] / ran:.1f} %" if ran else "none"
    kernels = len({one.case for one in outcomes})
    repositories = len({by_id[one.case].repository.name for one in outcomes})
    pairs = sum(len(case.architectures) for case in by_id.values())
    untried = pairs - len(outcomes)
    return Section(
        "What was tried",
        (
            f"{kernels} cases from {repositories} repositories, each a kernel with a launch and one compiler, make "
            f"{ran} pairs with an architecture. {counts[RIGHT]} of them ({share}) run and are right, {counts[WRONG]} "
            f"run and are wrong, {counts[REFUSED]} are refused."
            + (f" {untried} of the manifest's {pairs} pairs have not been tried yet." if untried else ""),
            "Right means: every block was executed, each element of the results lies within the rounding error that "
            "its sum allows around NumPy's in float64, and counters and a time were predicted.",
            "The manifest (`validate/wild/manifest`) names repository, commit, file, entry, launch and reference, and "
            "holds none of the repositories' code. A matmul in Triton, in three forms, is gemmsim's own.",
        ),
    )


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counts = dict.fromkeys((RIGHT, WRONG, REFUSED, NOT_COMPILED), 0)
    for one in outcomes:
        counts[one.status] += 1
    return counts


def _by_architecture(outcomes: Sequence[Outcome]) -> Section:
    rows = []
    for arch in ARCHITECTURES:
        counts = _counts([one for one in outcomes if one.arch == arch])
        ran = counts[RIGHT] + counts[WRONG] + counts[REFUSED]
        if ran:
            share = f"{100 * counts[RIGHT] / ran:.1f} %"
            rows.append((arch, str(ran), str(counts[RIGHT]), str(counts[WRONG]), str(counts[REFUSED]), share))
    columns = ("architecture", "pairs", "ran and right", "ran and wrong", "refused", "right")
    return Section("By architecture", (), table(columns, rows, numeric=range(1, 6)))


def _by_repository(by_id: dict[str, Case], outcomes: Sequence[Outcome]) -> Section:
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for one in outcomes:
        case = by_id[one.case]
        groups[case.repository.name, case.compiler].append(one)
    rows = []
    for (name, compiler), found in sorted(groups.items()):
        cells = []
        for arch in ARCHITECTURES:
            counts = _counts([one for one in found if one.arch == arch])
            ran = counts[RIGHT] + counts[WRONG] + counts[REFUSED]
            cells.append(f"{counts[RIGHT]} of {ran}" if ran else "-")
        rows.append((name, compiler, str(len({one.case for one in found})), *cells))
    columns = ("repository", "compiler", "cases", *ARCHITECTURES)
    return Section("By repository", ("Pairs that ran and were right.",), table(columns, rows, range(2, 8)))


def _wrong(outcomes: Sequence[Outcome]) -> Section:
    rows = [(one.case, one.arch, one.reason) for one in outcomes if one.status == WRONG]
    if not rows:
        return Section("Ran and wrong", ("None.",))
    return Section("Ran and wrong", (), table(("case", "architecture", "what differs"), rows))


def _reasons(title: str, status: str, outcomes: Sequence[Outcome], text: str) -> Section:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if one.status == status:
            groups[_VARIES.sub("#", one.reason)].append(one)
    if not groups:
        return Section(title, ("None.",))
    rows = []
    for found in sorted(groups.values(), key=lambda found: (-len(found), found[0].reason)):
        cases = len({one.case for one in found})
        architectures = ", ".join(arch for arch in ARCHITECTURES if any(one.arch == arch for one in found))
        rows.append((str(len(found)), found[0].reason, f"{cases}, as {found[0].case}", architectures))
    return Section(title, (text,), table(("pairs", "reason", "cases", "architectures"), rows, numeric=(0,)))


def _sources(cases: Sequence[Case]) -> Section:
    repositories = {case.repository: 0 for case in cases}
    for case in cases:
        repositories[case.repository] += 1
    rows = [
        (one.name, one.commit[:12], one.licence, str(count)) for one, count in sorted(repositories.items(), key=str)
    ]
    columns = ("repository", "commit", "licence", "cases")
    return Section("Sources", (), table(columns, rows, numeric=(3,)))
