"""Sets the kernels of `measured.toml`, as an H200 ran them, beside their predictions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, median

from ..compare.halves import of_half
from ..compare.judge import Judged
from ..documents.sections import Section, table
from ..records.case import STUDY
from ..records.files import FOLDER

_OF_WGMMA = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum"  # none elsewhere
RECORDS = FOLDER / "h200_foreign"


def measured_section(judged: Sequence[Judged]) -> Section:
    """Return the section: what agrees in all; for each launch for study, the exact counters that agree and the time.

    judged  all records of the folder RECORDS with their predictions
    """
    rows = []
    for one in sorted(of_half(judged, STUDY), key=lambda one: one.case.id):
        size = f"{one.title}, {one.case.size}"
        if one.prediction.error or one.time is None:
            rows.append((size, "-", one.prediction.error or "not timed", "", "", ""))
            continue
        exact = [number for number in one.numbers if number.kind == "exact"]
        off = [f"{number.name} {number.error_pct:+.1f} %" for number in exact if not number.agrees]
        agree = f"{len(exact) - len(off)} of {len(exact)}"
        times = (f"{one.time.predicted:.1f}", f"{one.time.measured:.1f}", f"{one.time.error_pct:+.1f}")
        rows.append((size, agree, ", ".join(off), *times))
    columns = ("kernel, M = N = K", "exact counters equal", "not equal", "predicted us", "measured us", "error %")
    return Section("Kernels of others on an H200", _text(judged), table(columns, rows, numeric=(1, 3, 4, 5)))


def _summary(judged: Sequence[Judged]) -> str:
    exact = [number for one in judged for number in one.numbers if number.kind == "exact"]
    equal = sum(number.agrees for number in exact)
    errors = [abs(one.time.error_pct) for one in judged if one.time is not None]
    equals = f"{equal} of {len(exact)} exact counters are equal within the noise of a counter, 0.5 %."
    found = f"{len(judged)} launches, {equals}"
    if errors:
        found += (
            f" Times are off by {mean(errors):.1f} % on average, {median(errors):.1f} % in the median, "
            f"{max(errors):.1f} % at worst."
        )
    return found


def _text(judged: Sequence[Judged]) -> tuple[str, ...]:
    kernels = len({one.title for one in judged})
    found = [f"{len(judged)} launches of {kernels} kernels that others wrote, or that Triton compiled, for sm_90."]
    for name, of_name in (("Without wgmma", False), ("With wgmma", True)):
        if some := [one for one in judged if bool(one.case.counters.get(_OF_WGMMA)) is of_name]:
            found.append(f"{name}: {_summary(some)}")
    return (
        " ".join(found),
        "No number of the GPU was chosen by these records. Two rules were found on some of them: reads that merge on "
        "their way to L2 take nothing of its bandwidth (on 25 of Triton's 49, chosen by a hash of name and size), and "
        "bank conflicts where asynchronous copies write count (on the half for study). The table shows that half; the "
        "other one is to judge by. "
        "`validate/records/h200_foreign` holds them with the machine code that ran; `gemmsim-validate compare "
        "validate/records/h200_foreign` shows all counters, `gemmsim-validate wild-bundle` compiles the kernels again.",
        "Times are of launches whose operands are in no cache; the counters are Nsight Compute's. A wait at an "
        "mbarrier is repeated on the GPU as long as it lasts: of kernels with such waits reports do not call "
        "instructions and wavefronts of shared loads exact, though they are compared here.",
    )
