"""Checks what a launch left in its arrays: against a GEMM, against formulas, and against arrays from files."""

from __future__ import annotations

from gemmsim.analysis.findings import Verification
from gemmsim.analysis.verify import verify
from gemmsim.launch.spec import LaunchSpec
from gemmsim.trace.types import Execution, Launch


def check_results(run: Execution, launch: Launch, spec: LaunchSpec, sum_roundoff: float = 0.0) -> Verification:
    """Check the arrays after a run in all ways that `spec` asks for.

    sum_roundoff  error that the kernel's tensor cores make where they sum; 0 where the results' types explain it

    The result is right where every check holds. Its text has a sentence for each check, or for each that does not hold.
    """
    found = [verify(run, launch, spec.verify, sum_roundoff)] if spec.verify else []
    if spec.checks:  # most launches have none, and need not wait for the import
        from gemmsim.analysis.array_checks import check_array

        found += [check_array(run, launch, check, sum_roundoff) for check in spec.checks]
    if not found:
        return verify(run, launch, None)
    if len(found) == 1:
        return found[0]
    known = [one.relative_error for one in found if one.relative_error is not None]
    bad = [one for one in found if one.ok is False]
    text = "; ".join(one.text for one in bad or found)
    return Verification(not bad, max(known, default=None), text)
