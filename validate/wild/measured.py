"""Says of the kernels in `measured.toml` where what an H200 measured stands beside what is predicted."""

from __future__ import annotations

from collections.abc import Sequence

from ..documents.sections import Section
from ..records.case import Case
from ..records.files import FOLDER

RECORDS = FOLDER / "h200_foreign"


def measured_section(cases: Sequence[Case]) -> Section:
    """Return the section: how many launches were measured, and which page compares them with their predictions.

    Figures of predictions stand on that page alone. It is written again when the model changes, and needs no checkouts.

    cases  all records of the folder RECORDS
    """
    kernels = len({case.name for case in cases})
    return Section(
        "Kernels of others on an H200",
        (
            f"{len(cases)} launches of {kernels} kernels that others wrote, or that Triton compiled, for sm_90 were "
            "measured: counters by Nsight Compute, and times of launches whose operands are in no cache. "
            "[Accuracy](accuracy.md) compares them with what is predicted, in the rows *of others* and by kernel. No "
            "number of a GPU file names these records as its source.",
            "`validate/records/h200_foreign` holds them with the machine code that ran; `gemmsim-validate compare "
            "validate/records/h200_foreign` shows all counters, `gemmsim-validate wild-bundle` compiles the kernels "
            "again.",
        ),
    )
